"""Detects what disturbs a measurement: steal by the hypervisor, other processes, clock drift,
preempted or misplaced threads, misplaced pages. It corrects nothing; it reports.

It compares CPU time on the measured CPUs and on all CPUs. Another program on one of two measured
CPUs would be lost among a hundred idle ones, while one on other CPUs still takes memory bandwidth
and power. The worse of the two is reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from atoll.host.api import Host
from atoll.host.cpu_times import CpuTimes, cpu_times
from atoll.host.procfs import parse_stat
from atoll.probing.requests import Answer
from atoll.schema.profile import Kind, Watch

# The kernel counts CPU time in ticks of 10 ms: a share of fewer ticks may be chance.
_LEAST_TICKS = 20
# CPU -> time of a dependent integer operation
Speeds = Mapping[int, float]


class Watcher:
    """Watches one kind, from `begin` to `end`."""

    def __init__(self, host: Host, kind: Kind, cpus: Sequence[int]) -> None:
        self._host = host
        self._kind = kind
        self._cpus = cpus
        self._involuntary = 0
        self._misplaced_threads = 0
        self._misplaced_pages = 0

    def begin(self, pids: Iterable[int], speeds: Speeds) -> None:
        self._speeds = dict(speeds)
        self._ours = self._our_ticks(pids)
        self._times = self._cpu_times()

    def saw(self, answer: Answer, node: int | None) -> None:
        self._involuntary += answer.involuntary
        self._misplaced_threads += answer.misplaced_threads
        self._misplaced_pages += answer.misplaced_pages(node)

    def end(self, pids: Iterable[int], speeds: Speeds, seconds: float) -> Watch:
        """`pids` are the probes that are alive."""
        spans = list(zip(self._times, self._cpu_times(), strict=True))
        own_ticks = max(0, self._our_ticks(pids) - self._ours)
        return Watch(
            kind=self._kind,
            seconds=seconds,
            steal_share=_worst(_share(b.steal - a.steal, a, b) for a, b in spans),
            others_share=_worst(_share(b.busy - a.busy - own_ticks, a, b) for a, b in spans),
            frequency_drift=drift(self._speeds, speeds),
            involuntary_switches=self._involuntary,
            misplaced_threads=self._misplaced_threads,
            misplaced_pages=self._misplaced_pages,
        )

    def _cpu_times(self) -> tuple[CpuTimes, CpuTimes]:
        return cpu_times(self._host), cpu_times(self._host, self._cpus)

    def _our_ticks(self, pids: Iterable[int]) -> int:
        """CPU ticks of Atoll and its probes; the time of an ended child counts for its parent."""
        ticks = 0
        for pid in ("self", *map(str, pids)):
            try:
                stat = parse_stat(self._host.read_text(f"/proc/{pid}/stat"))
            except (OSError, ValueError, IndexError):
                continue
            ticks += stat.cpu_ticks + (stat.reaped_ticks if pid == "self" else 0)
        return ticks


def drift(before: Speeds, after: Speeds) -> float | None:
    """The largest change of a core's speed, relative to the mean; None: not measured twice."""
    changes = [
        abs(after[cpu] - was) / ((after[cpu] + was) / 2)
        for cpu, was in before.items()
        if cpu in after and after[cpu] + was > 0
    ]
    return max(changes, default=None)


def _share(part: int, before: CpuTimes, after: CpuTimes) -> float | None:
    whole = after.total - before.total
    return min(1.0, max(0.0, part / whole)) if whole >= _LEAST_TICKS else None


def _worst(shares: Iterable[float | None]) -> float | None:
    return max((share for share in shares if share is not None), default=None)
