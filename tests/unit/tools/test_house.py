"""The smaller tools: parts of the lock, house rules, generated schemas."""

from __future__ import annotations

import importlib.metadata
import json
import re
import sys
from pathlib import Path

import jsonschema
import pytest
from packaging.specifiers import SpecifierSet

from atoll.engines import registry
from tools import commit_subject, house, lock_subset, schemas

LOCK = """#
# made by pip-compile
#
a==1 \\
    --hash=sha256:aa
    # via -r requirements.in
b-c==2 \\
    --hash=sha256:bb \\
    --hash=sha256:b2
    # via a
d==3 \\
    --hash=sha256:dd
    # via
    #   b-c
    #   x
x==4 \\
    --hash=sha256:ee
    # via -r requirements.in

# The following packages are considered to be unsafe in a requirements file:
setuptools==5 \\
    --hash=sha256:ff
    # via -r requirements.in
"""


def test_only_the_board_of_the_simulated_caches_is_for_others() -> None:
    board, caches = '#include "cachesim/board_of_guest.hpp"\n', '#include "cachesim/caches.hpp"\n'
    (found,) = house.simulation_includes("native/src/runtime/x.cpp", board + caches)
    assert found.startswith("native/src/runtime/x.cpp:2: includes a part of the simulation")
    for name in ("native/src/cachesim/x.cpp", "native/tests/cachesim/x.cpp"):
        assert house.simulation_includes(name, caches) == []


def test_a_built_program_is_refused_and_an_image_is_not() -> None:
    found = house.built_program("s", Path(sys.executable).read_bytes())
    assert found == "s: is a built program; remove it"
    assert house.built_program("a.png", b"\x89PNG\r\n") == ""


@pytest.mark.parametrize(
    "line",
    [
        "import subprocess",
        "from subprocess import run",
        "from os import environ",
        "os.environ['X']",
        "os.geteuid()",
        "len(os.sched_getaffinity(0))",
        "open('/proc/self/stat')",
        "Path(f'/sys/devices/{x}').read_text()",
        "os.listdir('/proc')",
    ],
)
def test_only_the_host_reaches_for_the_system(line: str) -> None:
    fault = "src/atoll/bench/x.py:1: uses "
    (found,) = house.system_reads("src/atoll/bench/x.py", line, {})
    assert found.startswith(fault)
    assert (
        house.system_reads("src/atoll/host/x.py", line, {"src/atoll/host/": "it is the seam"}) == []
    )
    assert house.system_reads("tests/x.py", line, {}) == []


@pytest.mark.parametrize(
    "line", ["host.read_text('/proc/stat')", "host.stat('/proc/1')", "os.path.join('/sys', 'x')"]
)
def test_what_goes_through_a_host_is_fine(line: str) -> None:
    assert house.system_reads("src/atoll/bench/x.py", line, {}) == []


@pytest.mark.parametrize(
    "line",
    [
        "from tests.unit.bench.test_entrants import SPARK",
        "    import tests.unit.bench.test_entrants",
        "from tests.unit.bench import test_entrants",
    ],
)
def test_a_test_file_that_imports_another_is_a_fault(line: str) -> None:
    (fault,) = house.test_imports("tests/unit/bench/test_x.py", f'"""Doc."""\n{line}\n')
    assert fault.startswith("tests/unit/bench/test_x.py:2: ") and "test_entrants;" in fault


@pytest.mark.parametrize(
    "line", ["from tests.parts.bench import machine", "from tools import test_summary as summary"]
)
def test_a_test_file_may_import_parts_and_tools(line: str) -> None:
    assert house.test_imports("tests/unit/bench/test_x.py", line) == []


def test_subset_follows_what_is_needed() -> None:
    part = lock_subset.subset(LOCK, ["a"])
    assert [line.split()[0] for line in part.splitlines() if "==" in line] == [
        "a==1",
        "b-c==2",
        "d==3",
    ]
    assert "--hash=sha256:b2" in part
    assert "setuptools" not in part


def test_subset_of_an_unknown_project() -> None:
    with pytest.raises(KeyError, match="nope"):
        lock_subset.subset(LOCK, ["nope"])


def test_the_lock_pins_what_requirements_ask_for(root: Path) -> None:
    locked = lock_subset.blocks((root / "requirements.lock").read_text())
    for line in (root / "requirements.in").read_text().splitlines():
        name = line.partition("#")[0].strip()
        if name:
            name = re.split(r"[\[=<>]", name)[0]  # the lock names no extras
            assert "--hash=sha256:" in locked[name]


def test_what_is_locked_runs_on_the_python_of_debian_12() -> None:
    for found in importlib.metadata.distributions():
        wanted = found.metadata["Requires-Python"] or ""
        assert SpecifierSet(wanted).contains("3.11.2"), f"{found.name} wants Python {wanted}"


def test_a_long_file_needs_a_reason() -> None:
    text = "\n" * 401
    assert "401 lines" in house.too_long("src/big.py", text, {})
    assert house.too_long("src/big.py", text, {"src/big.py": "a table of the kernel's"}) == ""
    assert house.too_long("src/big.py", text, {"src/big.py": ""}) != ""  # no reason, no leave
    assert house.too_long("src/fits.py", "\n" * 400, {}) == ""


@pytest.mark.parametrize("folder", ["root", "work", "home/somebody"])
def test_paths_of_a_machine_are_found(folder: str) -> None:
    assert house.machine_paths("x.md", f"fine\nsee /{folder}/project/x") == [
        "x.md:2: names a path of this machine"
    ]


@pytest.mark.parametrize("text", ["/sys/kernel", "tests/work/x", "~/work/x", "$(ROOT)/work/x"])
def test_other_paths_pass(text: str) -> None:
    assert house.machine_paths("x.md", text) == []


PACKAGES = {"trino": "trino", "presto": "trino", "mariadb": "mariadb", "mysql": "mariadb"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("src/atoll/bench/x.py", 'if engine == "trino":'),
        ("src/atoll/bench/x.py", "# as MariaDB has it"),
        ("src/atoll/engines/mariadb/x.py", "_PRESTO = 1"),
        ("src/atoll/cli/x.py", "trino; atoll down"),
    ],
)
def test_an_engine_named_outside_its_package_is_a_fault(name: str, text: str) -> None:
    (fault,) = house.engine_names(name, f"fine\n{text}\n", PACKAGES, {})
    assert fault.startswith(f"{name}:2: names the engine ")
    assert house.engine_names(name, text, PACKAGES, {name: "a reason"}) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("src/atoll/engines/trino/x.py", "trino, presto"),
        ("docs/x.md", "trino"),
        ("tests/unit/x.py", "trino"),
        ("src/atoll/cli/x.py", 'epilog="Example: atoll plan trino; atoll up trino -d"'),
    ],
)
def test_an_engine_may_be_named_here(name: str, text: str) -> None:
    assert house.engine_names(name, text, PACKAGES, {}) == []


def test_the_registry_names_every_engine(root: Path) -> None:
    packages = house.engine_packages((root / house.REGISTRY).read_text())
    assert set(registry.names()) | set(registry.names(registry.RENDERED)) <= packages.keys()


def test_schemas_are_valid_and_strict() -> None:
    for name in schemas.FORMATS:
        made = schemas.schema(name)
        jsonschema.Draft202012Validator.check_schema(made)
        text = json.dumps(made)
        assert '"additionalProperties": false' in text


def test_a_file_without_its_version_does_not_fit_the_schema() -> None:
    fault = jsonschema.Draft202012Validator(schemas.schema("plan"))
    missing = {error.message for error in fault.iter_errors({"engine": "spark"})}
    assert "'format' is a required property" in missing
    assert "'version' is a required property" in missing


def test_the_page_has_no_link_that_leads_nowhere() -> None:
    page = schemas.page()
    targets = {part.split(")")[0] for part in page.split("](#")[1:]}
    assert targets
    for target in targets:
        assert f"{{ #{target} }}" in page


def test_a_commit_subject_has_a_limit() -> None:
    assert commit_subject.fault("Share one layout\n\nA body of any length.") == ""
    assert "73 characters" in commit_subject.fault("x" * 73)
    assert commit_subject.fault("") and commit_subject.fault("Share one layout.")


@pytest.mark.parametrize(
    "text",
    [
        "The fault is told.",
        "It is none of tpch.",
        "Nothing is\nto be had for want of memory.",
        "x\n# Who hangs up has the query cancelled.",
        "One line. Of a server all is read.",
        "So many instances, for example so many as 2.",
    ],
)
def test_phrases_that_are_not_plain_english_are_refused(text: str) -> None:
    assert house.phrases("docs/page.md", text)
    assert house.phrases("docs/page.svg", text) == []


def test_plain_english_passes() -> None:
    text = "# Who it is for\n\nWho is it for? Users who start engines. None is left."
    assert house.phrases("docs/page.md", text) == []
