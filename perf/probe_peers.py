"""The programs that the probe is measured beside: how they are had, run and read.

- core-to-core-latency, a crate (N. Viennot): compare-and-swap, or loads and stores, between the
  CPUs of a pair. Its figure is half a round trip, the mean of 300 samples of 1,000 round trips
  each, and so is ours but for the mean, which one interruption moves: ours is a median.
- likwid-bench, a Debian package (Treibig, Hager and Wellein, "LIKWID: A lightweight
  performance-oriented tool suite for x86 multicore environments", PSTI 2010): hand-written
  assembler loops. It counts as we do: bytes that the program moves, no write-allocate; sizes are of
  all arrays together.

Each is put into a folder of its own below build/perf; nothing is installed. A run whose output does
not show the work that was asked for is a WrongAnswer.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from perf.harness import WrongAnswer

_ROOT = Path(__file__).resolve().parent.parent
_FOLDER = _ROOT / "build/perf"
CRATE = "core-to-core-latency"
_CRATE_VERSION = "1.2.0"
_BENCHMARKS = {"cas": "1", "store": "2"}  # its own numbers


@dataclass(frozen=True, slots=True)
class Peer:
    argv: tuple[str, ...]
    environment: Mapping[str, str]

    def run(self, *arguments: str) -> str:
        """stdout. Raises WrongAnswer."""
        done = subprocess.run(
            [*self.argv, *arguments], env=self.environment, capture_output=True, text=True
        )
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
            raise WrongAnswer(f"{self.argv[0]}: exit status {done.returncode}: {last}")
        return done.stdout


# ---- core-to-core-latency ------------------------------------------------------------------------


def core_to_core() -> Peer:
    """The crate of that version, built with the versions of its own lock."""
    program = _FOLDER / "bin" / CRATE
    if not program.is_file():
        cargo = shutil.which("cargo")
        if cargo is None:
            raise WrongAnswer(f"{CRATE}: there is no cargo to build it; install Rust")
        print(f"perf: building {CRATE} {_CRATE_VERSION}, about a minute", file=sys.stderr)
        version = ["--version", f"={_CRATE_VERSION}", "--locked"]
        folders = ["--root", str(_FOLDER), "--target-dir", str(_FOLDER / "cargo")]
        _make([cargo, "install", "--quiet", CRATE, *version, *folders], CRATE)
        shutil.rmtree(_FOLDER / "cargo", ignore_errors=True)
    return Peer((str(program),), os.environ)


def pair_latency_ns(peer: Peer, pair: tuple[int, int], op: str, home: int | None) -> float:
    """One way between two CPUs, as a run of the peer finds it; its line on that node."""
    if home is not None:
        peer = Peer(("numactl", "-m", str(home), "--", *peer.argv), peer.environment)
    cpus = ",".join(map(str, pair))
    return latency_of(peer.run("--csv", "--bench", _BENCHMARKS[op], "--cores", cpus))


def latency_of(csv: str) -> float:
    """The only figure of a pair's matrix: its lower triangle has one field."""
    found = [field for line in csv.splitlines() for field in line.split(",") if field]
    try:
        (value,) = map(float, found)
    except ValueError:
        raise WrongAnswer(f"{CRATE}: not a pair's matrix: {csv!r}") from None
    if not 0 < value < float("inf"):
        raise WrongAnswer(f"{CRATE}: {value} ns is no latency")
    return value


# ---- likwid-bench --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Moved:
    """What a run of likwid-bench did."""

    kernel: str
    cpus: frozenset[int]
    bytes: int  # all arrays of all threads
    iterations: int  # of each thread
    seconds: float
    gbs: float


def likwid_bench() -> Peer:
    folder = _FOLDER / "likwid"
    fetch = [sys.executable, "-m", "tools.fetch_deb", "likwid", "--with-depends"]
    _make([*fetch, "--into", str(folder)], "likwid-bench")
    (library,) = {path.parent for path in folder.glob("usr/lib/*/liblikwid.so.*.*")}
    environment = os.environ | {
        "LD_LIBRARY_PATH": str(library),
        # It looks for its daemon when it starts, though it needs none.
        "PATH": f"{folder / 'usr/sbin'}:{os.environ.get('PATH', '')}",
    }
    return Peer((str(folder / "usr/bin/likwid-bench"),), environment)


def kernels_of(peer: Peer) -> frozenset[str]:
    return frozenset(re.findall(r"^(\w+) - ", peer.run("-a"), re.MULTILINE))


def cpus_in_order(peer: Peer) -> tuple[int, ...]:
    """As many of the first as there are threads is what it takes."""
    found = re.search(r"Tag N: ([\d ]+)", peer.run("-p"))
    if found is None:
        raise WrongAnswer("likwid-bench: names no CPUs")
    return tuple(map(int, found[1].split()))


def move(peer: Peer, kernel: str, size_bytes: int, cpus: Sequence[int], iterations: int) -> Moved:
    """One run, each thread's part touched by itself; checked against what was asked for."""
    group = f"N:{size_bytes // 1000}kB:{len(cpus)}"
    done = moved_of(peer.run("-t", kernel, "-W", group, "-i", str(iterations)))
    if (done.kernel, done.cpus, done.iterations) != (kernel, frozenset(cpus), iterations):
        raise WrongAnswer(f"likwid-bench: asked for {kernel} {group} on {cpus}, did {done}")
    # It rounds down to whole blocks of its loops.
    if not 0.9 * size_bytes <= done.bytes <= size_bytes:
        raise WrongAnswer(f"likwid-bench: {done.bytes} bytes instead of {size_bytes}")
    return done


def moved_of(text: str) -> Moved:
    """Its report, read; its rate must be what its own bytes and time give."""

    def field(name: str) -> str:
        found = re.search(rf"^{re.escape(name)}:?[ \t]+([\w.+-]+)", text, re.MULTILINE)
        if found is None:
            raise WrongAnswer(f"likwid-bench: its report has no {name!r}")
        return found[1]

    cpus = re.findall(r"^Group: .* running on hwthread (\d+)", text, re.MULTILINE)
    try:
        seconds, volume = float(field("Time")), float(field("Data volume (Byte)"))
        done = Moved(
            kernel=field("Test"),
            cpus=frozenset(map(int, cpus)),
            bytes=int(field("Size (Byte)")),
            iterations=int(field("Iterations per thread")),
            seconds=seconds,
            gbs=float(field("MByte/s")) / 1e3,
        )
    except ValueError:
        raise WrongAnswer("likwid-bench: its report has a figure that is not a number") from None
    if volume != float(done.bytes) * done.iterations:
        raise WrongAnswer(f"likwid-bench: it moved {volume:g} bytes in {done}")
    if seconds <= 0 or abs(done.gbs * seconds * 1e9 / volume - 1) > 1e-3:
        raise WrongAnswer(f"likwid-bench: {volume:g} bytes are not {done}")
    return done


def _make(argv: Sequence[str], what: str) -> None:
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, cwd=_ROOT, check=False
    )
    if done.returncode != 0:
        raise WrongAnswer(f"{what}: cannot be had, so there is nothing to compare with")
