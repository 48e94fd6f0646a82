"""The one harness for comparing Atoll's own code with its peers.

Ratios, not seconds (Kalibera and Jones, "Rigorous Benchmarking in Reasonable Time",
ISMM 2013; hyperfine for the whole-process part): subjects alternate within one run, so
that what disturbs the machine disturbs them alike; medians over the rounds; a percentile
bootstrap over rounds, the pair of one round kept together, gives the interval. Every run
is verified by its subject, so that a fast wrong answer cannot be reported.

Output is for people and for `grep`: lines that begin with `bar` or `stretch` have a fixed
form (docs/perf.md), everything else is a note.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

Seconds = npt.NDArray[np.float64]  # one entry per round

BOOTSTRAP_RESAMPLES = 4000
CONFIDENCE = 0.95
BUSY_LIMIT = 0.10  # share of the machine's CPU time that others may take
IDLE_WINDOW_S = 0.5
IDLE_PATIENCE_S = 60.0


class WrongAnswer(Exception):
    """A subject did not do what it was timed for; its time means nothing."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A point estimate (median) with its bootstrap interval."""

    value: float
    low: float
    high: float

    def scaled(self, factor: float) -> Interval:
        """In another unit."""
        return Interval(self.value * factor, self.low * factor, self.high * factor)

    def __str__(self) -> str:
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"


def spawn(argv: Sequence[str], *, env: Mapping[str, str] | None = None) -> float:
    """Seconds from posix_spawn to the end of the process, output discarded.

    posix_spawn (vfork underneath) rather than subprocess: forking this interpreter costs more
    than the programs that are compared. Raises WrongAnswer on any exit status but 0.
    """
    return _spawn(argv, env)[0]


def spawn_cpu(argv: Sequence[str]) -> float:
    """As `spawn`, but CPU seconds (user and system) of the process and of its own children.

    Other work on the machine disturbs them less than the time that passes.
    """
    return _spawn(argv, None)[1]


def _spawn(argv: Sequence[str], env: Mapping[str, str] | None) -> tuple[float, float]:
    null = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    start_ns = time.perf_counter_ns()
    pid = os.posix_spawn(argv[0], list(argv), os.environ if env is None else env, file_actions=null)
    _, status, used = os.wait4(pid, 0)
    elapsed_ns = time.perf_counter_ns() - start_ns
    code = os.waitstatus_to_exitcode(status)
    if code != 0:
        raise WrongAnswer(f"{' '.join(argv)}: exit status {code}")
    return elapsed_ns * 1e-9, used.ru_utime + used.ru_stime


def timed(call: Callable[[], object]) -> float:
    """Seconds that an in-process call takes. What it returns is the subject's to verify."""
    start_ns = time.perf_counter_ns()
    call()
    return (time.perf_counter_ns() - start_ns) * 1e-9


def timed_cpu(call: Callable[[], object]) -> float:
    """As `timed`, but CPU seconds of this process and of the children that it waited for."""
    before = _cpu_s()
    call()
    return _cpu_s() - before


def _cpu_s() -> float:
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    used = [resource.getrusage(kind) for kind in kinds]
    return sum(one.ru_utime + one.ru_stime for one in used)


def interleave(
    subjects: Mapping[str, Callable[[], float]], *, rounds: int, warmup: int = 5
) -> dict[str, Seconds]:
    """Run every subject once per round, the order turned round from one round to the next.

    A subject runs once and returns its seconds. Turning the order keeps a subject from always
    having the same predecessor, whose caches it would inherit.
    """
    names = list(subjects)
    for _ in range(warmup):
        for name in names:
            subjects[name]()
    seconds = {name: np.empty(rounds) for name in names}
    for number in range(rounds):
        for name in names if number % 2 == 0 else reversed(names):
            seconds[name][number] = subjects[name]()
    return seconds


def difference(ours: Seconds, peer: Seconds, *, seed: int = 1) -> Interval:
    """Median of `ours` less median of `peer`, in seconds, with its interval."""
    ours_medians, peer_medians = _resampled_medians(ours, peer, seed)
    return _interval(
        float(np.median(ours) - np.median(peer)), np.subtract(ours_medians, peer_medians)
    )


def ratio(ours: Seconds, peer: Seconds, *, seed: int = 1) -> Interval:
    """Median of `ours` over median of `peer`, with its interval; below 1 we are faster."""
    ours_medians, peer_medians = _resampled_medians(ours, peer, seed)
    return _interval(
        float(np.median(ours) / np.median(peer)), np.divide(ours_medians, peer_medians)
    )


def median(seconds: Seconds, *, seed: int = 1) -> Interval:
    """Median of one subject, in seconds, with its interval."""
    medians, _ = _resampled_medians(seconds, seconds, seed)
    return _interval(float(np.median(seconds)), medians)


def at_most(name: str, value: float, target: float) -> bool:
    """Print a bar that holds when `value` does not exceed `target`."""
    return _bar(name, value, target, value <= target)


def at_least(name: str, value: float, target: float) -> bool:
    """Print a bar that holds when `value` reaches `target`."""
    return _bar(name, value, target, value >= target)


def no_slower(name: str, ratio_to_peer: Interval) -> bool:
    """Print the bar 'no slower': it falls short when the interval lies wholly above 1."""
    return _bar(name, ratio_to_peer.value, 1.0, ratio_to_peer.low <= 1.0)


def stretch(name: str, value: float, target: float) -> None:
    """Print how far a stretch goal is; it never falls short."""
    print(f"stretch {name} {value:.4g} {target:g}", flush=True)


def note(text: str) -> None:
    """Print a line that is no bar."""
    print(text, flush=True)


def wait_until_idle(*, patience_s: float = IDLE_PATIENCE_S) -> bool:
    """Wait until others leave the machine mostly idle; say so on stderr when they do not."""
    deadline = time.monotonic() + patience_s
    while True:
        busy = busy_share(IDLE_WINDOW_S)
        if busy <= BUSY_LIMIT:
            return True
        if time.monotonic() >= deadline:
            print(
                f"perf: the machine is {busy:.0%} busy with other work after {patience_s:.0f} s "
                "of waiting; measuring all the same, read the figures with care",
                file=sys.stderr,
                flush=True,
            )
            return False


def busy_share(window_s: float) -> float:
    """Share of all CPUs' time that was not idle over a window in which the caller sleeps."""
    before = _cpu_ticks(Path("/proc/stat").read_text())
    time.sleep(window_s)
    after = _cpu_ticks(Path("/proc/stat").read_text())
    total = after[1] - before[1]
    return (after[0] - before[0]) / total if total > 0 else 0.0


def _cpu_ticks(stat: str) -> tuple[int, int]:
    """(busy, total) ticks since boot from the first line of /proc/stat.

    The line is: cpu user nice system idle iowait irq softirq steal guest guest_nice. Guest time
    is counted in user already; steal is time that the hypervisor gave to others, so it is busy.
    """
    fields = [int(field) for field in stat.split("\n", 1)[0].split()[1:9]]
    total = sum(fields)
    return total - fields[3] - fields[4], total


def _bar(name: str, value: float, target: float, holds: bool) -> bool:
    print(f"bar {name} {value:.4g} {target:g} {'ok' if holds else 'short'}", flush=True)
    return holds


def _resampled_medians(a: Seconds, b: Seconds, seed: int) -> tuple[Seconds, Seconds]:
    """Medians of both over the same resampled rounds. Seeded: one input, one interval."""
    picks = np.random.default_rng(seed).integers(len(a), size=(BOOTSTRAP_RESAMPLES, len(a)))
    return np.median(a[picks], axis=1), np.median(b[picks], axis=1)


def _interval(value: float, resampled: Seconds) -> Interval:
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(resampled, [tail, 1 - tail])
    return Interval(value, float(low), float(high))
