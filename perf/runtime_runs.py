"""The programs of `make perf-runtime`: how they are built, run and read.

There is one for each runtime (native/perf/runtime), all of the same kernels, each with Google
Benchmark's own output. A run that does not show the work that was asked for, or whose answer was
wrong, is a WrongAnswer. A run that did not have its CPUs does not count.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from perf.harness import WrongAnswer

_ROOT = Path(__file__).resolve().parent.parent
FOLDER = _ROOT / "build/perf-runtime"
_PATH = f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}"  # cmake and ninja
OURS = "atoll"
# What brings a runtime, by the name of its program.
PEERS = {
    "tbb": ("oneTBB", "libtbb-dev"),
    "openmp": ("OpenMP", "g++"),
    "fiber": ("Boost.Fiber", "libboost-fiber-dev"),
    "system": ("std::async and std::barrier", "g++"),
    "serial": ("no runtime", "g++"),
}
# Peers that no Debian package brings, and how they come here.
OTHER_PEERS = {
    "rayon": ("rayon", "install cargo; it fetches the crate"),
    "libfork": ("libfork", "put the folder with libfork.hpp into CMAKE_PREFIX_PATH"),
}
CLEAN_SHARE = 0.93  # of threads x wall time that a run must have had as CPU time
OTHERS_SHARE = 0.07  # of the machine that others may have taken from one that sleeps by itself
TIMEOUT_S = 120.0
FETCH_TIMEOUT_S = 300.0


@dataclass(frozen=True, slots=True)
class Subject:
    """A program in a way of running it."""

    name: str  # in notes and results
    program: str
    environment: tuple[tuple[str, str], ...] = ()
    kernel: str | None = None  # where it is not the one that is compared
    threads: int | None = None  # the same


@dataclass(frozen=True, slots=True)
class Run:
    """What a program says of one kernel."""

    kernel: str
    threads: int
    runtime: str  # with its version
    item_ns: float  # wall time over items
    cpu_share: float  # CPU time over threads x wall time
    others_share: float  # of the machine's CPU time, taken by others
    counters: Mapping[str, float]

    @property
    def is_clean(self) -> bool:
        """It had its CPUs: either it used them, or nobody else did while it slept."""
        return self.cpu_share >= CLEAN_SHARE or self.others_share <= OTHERS_SHARE


def build() -> frozenset[str]:
    """Builds them all; the names of those that there are."""
    rayon = crate_library("rayon", "perf_rayon")
    build_target("perf-runtime", f"-DATOLL_PERF_RAYON={rayon or ''}")
    names = (OURS, *PEERS, *OTHER_PEERS)
    found = frozenset(name for name in names if _program(name).is_file())
    if OURS not in found:
        raise WrongAnswer(f"{_program(OURS)} has not been built")
    return found


def build_target(target: str, *own_options: str) -> None:
    """Builds a target of native/perf."""
    cmake = shutil.which("cmake", path=_PATH)
    if cmake is None:
        raise WrongAnswer("cmake is not installed; `make setup` brings it")
    options = ["-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DATOLL_PERF=ON"]
    options += ["-DBUILD_TESTING=OFF", "--log-level=WARNING", "-Wno-dev"]
    packages = sorted({"libbenchmark-dev", *(package for _, package in PEERS.values())})
    options += own_options
    _make([cmake, "-S", str(_ROOT), "-B", str(FOLDER), *options], f"needs {', '.join(packages)}")
    _make([cmake, "--build", str(FOLDER), "--target", target], "does not compile")


def run(subject: Subject, kernel: str, threads: int, least_s: float) -> Run:
    """One run, of that much time where the kernel does not set its own."""
    wanted = subject.kernel or kernel
    threads = subject.threads or threads
    # One CPU for all runtimes where there is one thread: CPUs of a virtual machine are not alike.
    one_cpu = ["taskset", "-c", str(max(os.sched_getaffinity(0)))] if threads == 1 else []
    argv = [
        *one_cpu,
        str(_program(subject.program)),
        f"--benchmark_filter=^{wanted}/{threads}/",
        f"--benchmark_min_time={least_s}",
        "--benchmark_format=json",
    ]
    try:
        done = subprocess.run(
            argv,
            env=os.environ | dict(subject.environment),
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        raise WrongAnswer(f"{subject.name}: {wanted}/{threads} ran for {TIMEOUT_S:g} s") from None
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise WrongAnswer(
            f"{subject.name}: {wanted}/{threads}: exit status {done.returncode}: {last}"
        )
    if not done.stdout.strip():
        raise WrongAnswer(f"{subject.name}: has no kernel {wanted}/{threads}")
    return run_of(done.stdout, wanted, threads)


def run_of(text: str, kernel: str, threads: int) -> Run:
    """Google Benchmark's output of exactly that kernel, read."""
    what = f"{kernel}/{threads}"
    try:
        answer = json.loads(text)
        (benchmark,) = answer["benchmarks"]
        if not benchmark["name"].startswith(f"{what}/"):
            raise WrongAnswer(f"{benchmark['name']} was run instead of {what}")
        if benchmark.get("error_occurred"):
            raise WrongAnswer(f"{what}: {benchmark['error_message']}")
        counters = {
            name: float(value)
            for name, value in benchmark.items()
            if isinstance(value, int | float)
        }
        if benchmark["time_unit"] != "ns" or not counters["real_time"] > 0:
            raise WrongAnswer(f"{what}: {benchmark['real_time']} {benchmark['time_unit']}")
        return Run(
            kernel=kernel,
            threads=threads,
            runtime=str(answer["context"]["runtime"]),
            item_ns=counters["real_time"] / counters["items"],
            cpu_share=counters["cpu_share"],
            others_share=counters["others_share"],
            counters=counters,
        )
    except (ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError) as fault:
        raise WrongAnswer(f"{what}: not the output of a benchmark: {fault!r}") from None


def crate_library(folder: str, name: str) -> Path | None:
    """The library of a folder of native/perf; None without cargo, or if it cannot fetch crates."""
    cargo = shutil.which("cargo") or shutil.which("cargo", path=Path.home() / ".cargo/bin")
    if cargo is None:
        return None
    # A copy, because cargo writes a lock file next to the manifest.
    source, target = FOLDER / f"{name}-source", FOLDER / name
    shutil.copytree(_ROOT / "native/perf" / folder, source, dirs_exist_ok=True)
    argv = [cargo, "build", "--quiet", "--release"]
    argv += ["--manifest-path", str(source / "Cargo.toml"), "--target-dir", str(target)]
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=FETCH_TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        return None
    return target / f"release/lib{name}.a" if done.returncode == 0 else None


def _program(name: str) -> Path:
    return FOLDER / "native/perf" / f"perf-runtime-{name}"


def _make(argv: list[str], fault: str) -> None:
    environment = os.environ | {"PATH": _PATH}
    done = subprocess.run(argv, env=environment, stdin=subprocess.DEVNULL, capture_output=True)
    if done.returncode != 0:
        print((done.stdout + done.stderr).decode(errors="replace"), file=sys.stderr)
        raise WrongAnswer(f"native/perf cannot be built: it {fault}")
