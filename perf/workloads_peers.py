"""The public references of perf.workloads, built from the sources in a folder of the user's.

None of them is part of Atoll. `PEERS` names the folder, with GAP's in `gapbs`, Graph500's in
`graph500`, RandomAccess of the HPC Challenge in `hpcc`, and PARSEC's StreamCluster in `parsec`.
They are built into build/perf/workloads, and so are the graphs that GAP's converter writes. A
line says what is missing, or cannot be built.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from perf.harness import WrongAnswer, note

_ROOT = Path(__file__).resolve().parent.parent
_FOLDER = _ROOT / "build/perf/workloads"
_OPTIMISED = ("-O3", "-march=native", "-w")
_OLD_C = "-fcommon"  # headers that define variables
_TRIAL = re.compile(r"^Trial Time:\s+([\d.]+)", re.MULTILINE)
_STOP_S = 5.0  # until a stopped program is killed
GAP = ("bfs", "cc", "cc_sv", "pr", "pr_spmv", "sssp", "tc", "converter")


class TooSlow(Exception):
    """A program did not end within its limit."""


class Peers:
    """The programs that could be built."""

    def __init__(self) -> None:
        named = os.environ.get("PEERS", "")
        self._sources = Path(named)
        _FOLDER.mkdir(parents=True, exist_ok=True)
        if not named:
            note("PEERS names no folder: 'make perf-workloads PEERS=DIR' compares with its sources")
        cxx = ("g++", "-std=c++14", *_OPTIMISED)
        self._built = {
            name: self._build("gapbs", f"gap-{name}", (*cxx, "-fopenmp", f"src/{name}.cc"))
            for name in GAP
        }
        flags = (*_OPTIMISED, f"-I{_ROOT / 'perf/hpcc'}", str(_ROOT / "perf/hpcc/main.c"))
        hpcc = ("gcc", *flags, "core_single_cpu.c", "utility.c", "-lm")
        self.hpcc = self._build("hpcc", "hpcc-random-access", hpcc)
        own = ("main", "utils", "validate", "bfs_reference", "csr_reference")
        generator = ("graph_generator", "make_graph", "splittable_mrg", "utils")
        parts = [f"src/{name}.c" for name in own] + ["aml/aml.c"]
        parts += [f"generator/{name}.c" for name in generator]
        defined = ("-Drestrict=__restrict__", "-DGRAPH_GENERATOR_MPI", "-DREUSE_CSR_FOR_VALIDATION")
        mpicc = (
            "mpicc",
            *_OPTIMISED,
            _OLD_C,
            *defined,
            "-Iaml",
            "-Igenerator",
            *parts,
            "-lm",
            "-lpthread",
        )
        self.graph500 = self._build("graph500", "graph500", mpicc)
        pthreads = ("-DENABLE_THREADS", "-pthread", "streamcluster.cpp", "parsec_barrier.cpp")
        self.streamcluster = self._build("parsec", "streamcluster", (*cxx, *pthreads))

    def gap(self, name: str) -> Path | None:
        return self._built[name]

    def graph(self, scale: int, *, weighted: bool) -> Path | None:
        """A Kronecker graph with 16 edges a vertex, as both sides read it."""
        name = f"kron{scale}.{'wsg' if weighted else 'sg'}"
        theirs, ours = self._sources / "graphs" / name, _FOLDER / name
        if theirs.is_file():
            return theirs
        converter = self.gap("converter")
        if converter is None:
            return None
        if not ours.is_file():
            note(f"making {name}, once")
            part = ours.with_suffix(".part")
            run(
                [converter, "-g", str(scale), "-k", "16", *(["-w"] if weighted else []), "-b", part]
            )
            part.rename(ours)
        return ours

    def _build(self, folder: str, name: str, command: Sequence[str]) -> Path | None:
        program = _FOLDER / name
        source = self._sources / folder
        if not os.environ.get("PEERS") or not source.is_dir():
            if os.environ.get("PEERS"):
                note(f"{name}: there is no {source}")
            return None
        if program.is_file():
            return program
        if shutil.which(command[0]) is None:
            note(f"{name}: {command[0]} is not installed")
            return None
        note(f"building {name}, once")
        done = subprocess.run(
            [*command, "-o", str(program)], cwd=source, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            note(f"{name} cannot be built: {(done.stderr.splitlines() or ['no reason'])[0]}")
            return None
        return program


def run(
    argv: Sequence[str | Path],
    *,
    threads: int = 0,
    env: Mapping[str, str] | None = None,
    limit_s: float | None = None,
) -> str:
    """What the program prints. Raises WrongAnswer unless it ends well, TooSlow after the limit."""
    name = Path(argv[0]).name
    settings = {**os.environ, **(env or {})}
    if threads:
        settings["OMP_NUM_THREADS"] = str(threads)
    with subprocess.Popen(
        [str(word) for word in argv],
        env=settings,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            out, err = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            raise TooSlow(f"{name} did not end in {limit_s:g} s") from None
        finally:
            if process.poll() is None:
                _stop(process)
    if process.returncode != 0:
        raise WrongAnswer(f"{name}: {process.returncode}, {err.strip()[-200:]}")
    return out


def _stop(process: subprocess.Popen[str]) -> None:
    """mpirun stops its processes, which have sessions of their own, only if it is asked to."""
    process.terminate()
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def trial_s(output: str) -> float:
    """The mean of what GAP's program says of its trials."""
    found = [float(one) for one in _TRIAL.findall(output)]
    if not found:
        raise WrongAnswer(f"GAP timed nothing: {output[-200:]}")
    return sum(found) / len(found)
