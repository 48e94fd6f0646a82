# Atoll's whole manual for developers: every target has its one line, `make` prints them.
# What is done once leaves a stamp, so that every target can be called at any time.

.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= $(shell nproc)

export PATH := $(CURDIR)/$(BIN):$(PATH)
export CMAKE_BUILD_PARALLEL_LEVEL ?= $(JOBS)
# What pip builds, the release tests and the wheel's tests need again: by the same name of the
# compiler, and from any folder, ccache has it.
export CC CXX
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# One file of the lock has 400 MB; a slow moment must not end the set-up.
export PIP_DEFAULT_TIMEOUT ?= 60
export PIP_RETRIES ?= 10
export NO_MKDOCS_2_WARNING := 1

# hwloc and numactl are what tests and `make perf` compare with.
SYSTEM_PACKAGES := g++ ccache python3-venv python3-dev pkgconf libhwloc-dev libnuma-dev \
    nlohmann-json3-dev libgtest-dev hwloc numactl
TEST_PACKAGES := spin gdb g++-aarch64-linux-gnu qemu-user libboost-context-dev
# libtbbmalloc2: another malloc, for the axis of that name.
ENGINE_PACKAGES := maven libtbbmalloc2
PEER_PACKAGES := libabsl-dev libbenchmark-dev libboost-fiber-dev libcds-dev libtbb-dev
BROWSER_PACKAGES := chromium chromium-driver

NATIVE_SOURCES := $(shell find native CMakeLists.txt CMakePresets.json -type f 2>/dev/null)
CXX_CODE := $(filter %.cpp %.hpp %.h,$(NATIVE_SOURCES))
RESULTS := build/test

.PHONY: help
help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

# ---- Set up ------------------------------------------------------------------------------

.PHONY: setup
setup: $(VENV)/.installed  ## Make .venv with .venv/bin/atoll and .venv/bin/atoll-exec

.PHONY: system
system:
	@tools/system_packages $(SYSTEM_PACKAGES)

# What builds the one dependency that has no wheel (pyspark) comes first, so that pip need
# not fetch a build environment, which no hash would guard.
$(VENV)/.locked: requirements.lock tools/lock_subset.py | system
	@"$(PYTHON)" tools/check_python.py
	"$(PYTHON)" -m venv $(VENV)
	@echo "== installing requirements.lock; unpacking pyspark alone takes 1 to 4 minutes"
	$(BIN)/python tools/lock_subset.py setuptools wheel > $(VENV)/bootstrap.txt
	$(BIN)/pip install --quiet --require-hashes -r $(VENV)/bootstrap.txt
	$(BIN)/pip install --progress-bar off --require-hashes --no-build-isolation -r requirements.lock
	@touch $@

$(VENV)/.installed: $(VENV)/.locked pyproject.toml $(NATIVE_SOURCES) | system
	@echo "== building the native parts"
	$(BIN)/pip install --quiet --no-build-isolation --no-deps --editable .
	@touch $@

# The engine `spark` needs a JDK 17.
.PHONY: jdk
jdk: setup
	@$(BIN)/atoll engine install spark

# ---- The main job ------------------------------------------------------------------------

.PHONY: demo
demo: setup jdk  ## Set up, then measure this machine: topology, plan, bench, verify, report
	$(BIN)/atoll demo

# ---- Tests -------------------------------------------------------------------------------
# Each suite leaves JUnit files in build/test/TARGET; the summary says what ran and what did not,
# and decides the outcome. So a failing suite (the leading '-') does not hide the ones after it.

# In CI, where the sanitizers run all C++ tests anyway, `make test` runs the runtime's, as optimised
# code races otherwise, and those of the simulator, whose programs run in guests.
RELEASE_ROOMS := $(if $(filter true,$(CI)),cachesim;runtime)

# $(call built,PRESET): configure and build what a CMake preset has.
built = cmake --preset $(1) --log-level=WARNING \
    $(if $(filter release,$(1)),-DATOLL_TEST_ROOMS="$(RELEASE_ROOMS)") && cmake --build --preset $(1)

# $(call native,PRESET,TARGET): build and run the C++ tests of a preset. One that hangs ends after
# 5 minutes, if it does not say itself how long it may take.
native = $(call built,$(1)) && \
    ctest --preset $(1) -j $(JOBS) --timeout 300 \
    --output-junit $(CURDIR)/$(RESULTS)/$(2)/native-$(1).xml

# $(call in_turns,TARGET,NAME,WHAT): two processes of pytest share the tests, as most of them wait
# much, and a guest boots on little more than one core. Ctrl-C reaches both (tests/conftest.py).
# One that was broken off counts as not run.
in_turns = mkdir -p $(RESULTS)/$(1)/turns; \
    run() { exec $(BIN)/pytest $(3) --turns=$(RESULTS)/$(1)/turns \
        --junit-xml=$(RESULTS)/$(1)/$(2)-$$1.xml; }; \
    trap 'kill $$(jobs -p)' TERM HUP; trap wait INT; \
    run 1 & first=$$!; run 2 >$(RESULTS)/$(1)/$(2)-2.log 2>&1 & second=$$!; \
    wait $$first || [ $$? = 1 ] || rm -f $(RESULTS)/$(1)/$(2)-1.xml; \
    wait $$second || [ $$? = 1 ] || rm -f $(RESULTS)/$(1)/$(2)-2.xml; \
    echo "==== the other process"; cat $(RESULTS)/$(1)/$(2)-2.log

.PHONY: test
test: setup  ## Unit, golden and property tests, native release tests, DuckDB
	@tools/system_packages $(TEST_PACKAGES)
	@rm -rf $(RESULTS)/test && mkdir -p $(RESULTS)/test
	-$(call native,release,test)
	-@$(call in_turns,test,python,tests/engines tests/unit tests/golden)
	@$(BIN)/python -m tools.test_summary --want native-release --want python-1 --want python-2 \
	    $(RESULTS)/test

# 1 GB is fetched where an engine is not there yet; what cannot be had is skipped, with its reason,
# and does not keep the others from being fetched.
.PHONY: test-engines
test-engines: setup  ## Every engine but Presto: install, bench, up, verify, down; all answers
	@tools/system_packages $(ENGINE_PACKAGES)
	@rm -rf $(RESULTS)/test-engines && mkdir -p $(RESULTS)/test-engines
	@for engine in spark trino postgresql mariadb flink; do \
	    $(BIN)/atoll engine install $$engine || [ $$? != 130 ]; done
	-@$(call in_turns,test-engines,installed,tests/engines -m 'installed and not long')
	@$(BIN)/python -m tools.test_summary --want installed-1 --want installed-2 \
	    $(RESULTS)/test-engines

.PHONY: test-san
test-san: setup  ## Native tests under ASan, UBSan and TSan; the fuzz driver; DuckDB under ASan
	@rm -rf $(RESULTS)/test-san && mkdir -p $(RESULTS)/test-san
	-$(call native,asan,test-san)
	-$(call native,tsan,test-san)
	-$(BIN)/pytest tests/engines/test_duckdb_stress.py::test_twenty_seconds_under_asan \
	    --junit-xml=$(RESULTS)/test-san/duckdb.xml
	@$(BIN)/python -m tools.test_summary --want native-asan --want native-tsan --want duckdb \
	    $(RESULTS)/test-san

# What test-san builds first. CI does it beside tests that mostly wait.
.PHONY: sanitizers
sanitizers: setup
	$(call built,asan)
	$(call built,tsan)

.PHONY: test-browser
test-browser: setup  ## Open the report in headless Chromium
	@tools/system_packages $(BROWSER_PACKAGES)
	@rm -rf $(RESULTS)/test-browser && mkdir -p $(RESULTS)/test-browser
	-$(BIN)/pytest tests/browser --junit-xml=$(RESULTS)/test-browser/browser.xml
	@$(BIN)/python -m tools.test_summary --want browser $(RESULTS)/test-browser

.PHONY: test-wheel
test-wheel: setup  ## Build the wheel and use it outside the checkout
	@rm -rf $(RESULTS)/test-wheel && mkdir -p $(RESULTS)/test-wheel
	-$(BIN)/pytest tests/wheel --junit-xml=$(RESULTS)/test-wheel/wheel.xml
	@$(BIN)/python -m tools.test_summary --want wheel $(RESULTS)/test-wheel

.PHONY: test-vm
test-vm: setup  ## Placement, inspect and knobs on emulated machines with nodes and chiplets
	@rm -rf $(RESULTS)/test-vm && mkdir -p $(RESULTS)/test-vm
	-$(BIN)/python -m tools.ensure_guest
	-@$(call in_turns,test-vm,vm,tests/vm)
	@$(BIN)/python -m tools.test_summary --want vm-1 --want vm-2 $(RESULTS)/test-vm

.PHONY: test-vm-boots
test-vm-boots: setup  ## 50 boots in a row, each with a smoke test
	@$(BIN)/python -m tools.ensure_guest
	$(BIN)/python -m tests.vm.boots 50

# Also when one of them fails the others run: a reader wants the whole picture.
TEST_TARGETS := test test-engines test-san test-browser test-wheel test-vm
.PHONY: test-all
test-all:  ## test, test-engines, test-san, test-browser, test-wheel and test-vm
	@failed=0; for target in $(TEST_TARGETS); do \
	    $(MAKE) --no-print-directory $$target || failed=1; done; \
	$(BIN)/python -m tools.test_summary $(TEST_TARGETS:%=$(RESULTS)/%); exit $$failed

.PHONY: test-long
test-long: setup jdk  ## Tests that take long: TPC-H at scale factor 1, hours of stress; never in CI
	@rm -rf $(RESULTS)/test-long && mkdir -p $(RESULTS)/test-long
	-$(BIN)/pytest tests -m long --junit-xml=$(RESULTS)/test-long/long.xml
	@$(BIN)/python -m tools.test_summary --want long $(RESULTS)/test-long

# Spin tries every interleaving of the runtime's queues and of its sleep; with a fence taken away it
# has to find the fault.
.PHONY: models
models: setup  ## Check the models of the runtime's queues and parking (spin)
	@tools/system_packages $(TEST_PACKAGES)
	$(BIN)/python -m tools.check_models

# ---- Checks ------------------------------------------------------------------------------

.PHONY: lint
lint: setup  ## Style, types, layers, file formats, docs, house rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror $(CXX_CODE)
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m tools.schemas --check
	$(BIN)/python -m tools.house
	$(BIN)/mkdocs build --strict --site-dir build/site  # --quiet would also quiet --strict

.PHONY: format
format: setup  ## Format the code and mend what ruff can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CXX_CODE)

.PHONY: docs
docs: setup  ## Generate the file formats' pages and build the site into site/
	$(BIN)/python -m tools.schemas
	$(BIN)/mkdocs build --strict
	@echo "site/index.html"

.PHONY: messages
messages: setup  ## Write tests/golden/messages again, from what the unit tests provoke
	rm -rf tests/golden/messages
	ATOLL_WRITE_MESSAGES=1 $(BIN)/pytest -q tests/unit

# ---- Speed -------------------------------------------------------------------------------

.PHONY: peers
peers:
	@tools/system_packages $(PEER_PACKAGES)

.PHONY: perf
perf: setup peers  ## Compare Atoll's own code with its peers; prints a line for each bar
	$(BIN)/python -m perf

.PHONY: perf-cachesim perf-duckdb perf-engines perf-exec perf-indexes perf-inspect \
    perf-live perf-operators perf-plan perf-probe perf-runtime perf-suites perf-tuning perf-workloads
perf-cachesim: setup  ## The same for simulated caches in the guest (5 minutes)
perf-duckdb: setup  ## The same for DuckDB on the task runtime beside plain DuckDB (14 minutes)
perf-engines: setup  ## The same for what Atoll adds around the installed engines (an hour)
perf-exec: setup  ## The same for atoll-exec beside numactl
perf-indexes: setup peers  ## The same for the indexes of W4 beside theirs (crates: needs cargo)
perf-inspect: setup  ## The same for atoll inspect of a large process (9 GiB of memory)
perf-live: setup  ## The same for the cost of atoll serve and atoll top (6 minutes)
perf-operators: setup  ## The same for the planner of operators
perf-plan: setup  ## The same for topology and planning
perf-probe: setup  ## The same for the kernels of atoll measure (needs cargo; 10 minutes)
perf-runtime: setup peers  ## The same for the task runtime beside its peers (rayon: needs cargo)
perf-suites: setup  ## The same for the suites, a pass and a report (20 minutes)
perf-tuning: setup perf-indexes  ## The same for the fast workloads beside DuckDB
perf-workloads: setup  ## The same for graphs, GUPS, StreamCluster, SGD; PEERS=DIR has others' sources
perf-cachesim perf-duckdb perf-engines perf-exec perf-indexes perf-inspect perf-live perf-operators perf-plan \
    perf-probe perf-runtime perf-suites perf-tuning perf-workloads:
	$(BIN)/python -m perf $(@:perf-%=%)

# ---- Keeping house -----------------------------------------------------------------------

.PHONY: lock
lock: system  ## Compile requirements.in to requirements.lock (UPGRADE=--upgrade)
	"$(PYTHON)" -m venv --clear build/lock
	build/lock/bin/pip install --quiet --require-hashes -r tools/lock_tools.txt
	build/lock/bin/pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras $(UPGRADE) \
	    --no-emit-index-url --no-emit-find-links --output-file requirements.lock requirements.in

.PHONY: clean
clean:  ## Remove what was built; .venv and the user's cache stay
	rm -rf build site dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
