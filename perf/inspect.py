"""`atoll inspect` of a large process: what it costs, and how long the process is held up.

The target (perf/inspect_target.cpp) has 500 threads, 64 GiB mapped and 8 GiB resident in small
pages. How long one of its threads waits in page faults is measured while an inspection runs and, in
turn, for as long while none does. An inspection is the whole command
with the start of its interpreter, and its answer is checked against what the target counts of
itself.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from perf.harness import WrongAnswer, at_most, median, note

ROUNDS = 20
THREADS = 500
MAPPED_MIB = 64 << 10
RESIDENT_MIB = 8 << 10
SPARE_MIB = 1 << 10  # for everything else on the machine
CPU_TARGET_S = 0.5
HELD_UP_TARGET_MS = 10.0
_SOURCE = Path(__file__).with_name("inspect_target.cpp")


@dataclass(frozen=True, slots=True)
class Faults:
    """How long page faults took, in ms."""

    count: int
    p50_ms: float
    p99_ms: float
    max_ms: float


class Target:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.pid = process.pid
        self._answer()  # ready

    def bytes_by_node(self) -> dict[int, int]:
        pairs = (pair.split(":") for pair in self._ask("count").split())
        return {int(node): int(size) for node, size in pairs}

    @contextmanager
    def faulting(self, found: list[Faults]) -> Iterator[None]:
        self._tell("begin")
        yield
        count, *held_up_us = self._ask("end").split()
        found.append(Faults(int(count), *(float(held_up) / 1e3 for held_up in held_up_us)))

    def _ask(self, word: str) -> str:
        self._tell(word)
        return self._answer()

    def _tell(self, word: str) -> None:
        assert self._process.stdin is not None
        print(word, file=self._process.stdin, flush=True)

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise WrongAnswer("the process to inspect has ended")
        return line


def compare() -> None:
    resident_mib = min(RESIDENT_MIB, _free_mib() - SPARE_MIB)
    if resident_mib < RESIDENT_MIB:
        note(f"only {resident_mib} MiB of memory are free: the target is smaller than it should be")
    with tempfile.TemporaryDirectory() as folder, _target(Path(folder), resident_mib) as target:
        atoll = str(Path(sys.executable).parent / "atoll")
        command = [atoll, "inspect", str(target.pid), "--json"]
        truth = target.bytes_by_node()
        cpu_s, wall_s = np.empty(ROUNDS), np.empty(ROUNDS)
        without: list[Faults] = []
        during: list[Faults] = []
        answer = Path(folder, "answer.json")
        _inspect(command, answer)  # warms caches of files up
        for number in range(ROUNDS):
            with target.faulting(during):
                cpu_s[number], wall_s[number] = _inspect(command, answer)
            _verify(json.loads(answer.read_text()), truth)
            with target.faulting(without):
                time.sleep(wall_s[number])
    note(f"inspection: {median(cpu_s)} CPU-seconds, {median(wall_s)} s, over {ROUNDS} runs")
    for name, faults in (("none", without), ("one", during)):
        note(
            f"page faults while {name} runs: p50 {_median(faults, 'p50_ms'):.4f} ms, "
            f"p99 {_median(faults, 'p99_ms'):.3f} ms, worst {_worst(faults):.2f} ms "
            f"of {sum(part.count for part in faults)}"
        )
    at_most("inspect-cpu-s", float(np.median(cpu_s)), CPU_TARGET_S)
    at_most("inspect-fault-p99-ms", _median(during, "p99_ms"), HELD_UP_TARGET_MS)


@contextmanager
def _target(folder: Path, resident_mib: int) -> Iterator[Target]:
    compiler = shutil.which("g++")
    if compiler is None:
        raise WrongAnswer("g++ is not installed, so there is no process to inspect")
    program = folder / "inspect_target"
    subprocess.run(
        [compiler, "-std=c++20", "-O2", "-pthread", "-o", str(program), str(_SOURCE)], check=True
    )
    process = subprocess.Popen(
        [program, str(THREADS), str(MAPPED_MIB), str(resident_mib)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Target(process)
    finally:
        process.kill()
        process.communicate()


def _inspect(command: list[str], answer: Path) -> tuple[float, float]:
    """CPU-seconds of the command and all it started, and seconds until it ended."""
    output = [(os.POSIX_SPAWN_OPEN, 1, str(answer), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)]
    start = time.perf_counter()
    pid = os.posix_spawn(command[0], command, os.environ, file_actions=output)
    _, status, usage = os.wait4(pid, 0)
    elapsed_s = time.perf_counter() - start
    code = os.waitstatus_to_exitcode(status)
    if code != 0:
        raise WrongAnswer(f"{' '.join(command)}: exit status {code}")
    return usage.ru_utime + usage.ru_stime, elapsed_s


def _verify(answer: list[dict[str, object]], truth: dict[int, int]) -> None:
    (found,) = answer
    threads, memory = found["threads"], found["memory"]
    assert isinstance(threads, list)
    if len(threads) != THREADS:
        raise WrongAnswer(f"{len(threads)} threads instead of {THREADS}")
    if not isinstance(memory, dict):
        raise WrongAnswer(f"no memory was found: {found['unknown']}")
    sizes = {int(node): int(size) for node, size in memory["bytes_by_node"].items()}
    total, true_total = sum(sizes.values()), sum(truth.values())
    if abs(total / true_total - 1) > 0.02:  # the program itself is not in the target's count
        raise WrongAnswer(f"{total} bytes are resident instead of {true_total}")
    for node in sizes.keys() | truth.keys():
        off = abs(sizes.get(node, 0) / total - truth.get(node, 0) / true_total)
        if off > 0.005 + 2 * float(memory["share_error"]):
            raise WrongAnswer(f"the share of node {node} is off by {off:.3f}")


def _median(faults: list[Faults], name: str) -> float:
    return float(np.median([getattr(part, name) for part in faults]))


def _worst(faults: list[Faults]) -> float:
    return max(part.max_ms for part in faults)


def _free_mib() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) >> 10
    return 0
