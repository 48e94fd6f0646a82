"""Who disturbs the measuring: the hypervisor (steal), other processes, a clock that drifts,
preempted or misplaced threads, misplaced pages. Nothing is corrected by it; it is told.

CPU time is looked at twice, on the measured CPUs and on all: a stranger on one of two measured
CPUs is lost among a hundred idle ones, and a stranger beside them still takes memory and power.
The worse of the two is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from atoll.host.api import Host
from atoll.host.cpu_times import CpuTimes, cpu_times
from atoll.host.procfs import parse_stat
from atoll.probing.requests import Answer
from atoll.schema.profile import Kind, Watch

# The kernel counts CPU time in ticks of 10 ms: a share of fewer is chance.
_LEAST_TICKS = 20
# CPU -> time of a dependent integer operation
Speeds = Mapping[int, float]


class Watcher:
    """Over one kind, from `begin` to `end`."""

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
        """`pids` are our processes that live."""
        spans = list(zip(self._times, self._cpu_times(), strict=True))
        ours = max(0, self._our_ticks(pids) - self._ours)
        return Watch(
            kind=self._kind,
            seconds=seconds,
            steal_share=_worst(_share(b.steal - a.steal, a, b) for a, b in spans),
            others_share=_worst(_share(b.busy - a.busy - ours, a, b) for a, b in spans),
            frequency_drift=drift(self._speeds, speeds),
            involuntary_switches=self._involuntary,
            misplaced_threads=self._misplaced_threads,
            misplaced_pages=self._misplaced_pages,
        )

    def _cpu_times(self) -> tuple[CpuTimes, CpuTimes]:
        return cpu_times(self._host), cpu_times(self._host, self._cpus)

    def _our_ticks(self, pids: Iterable[int]) -> int:
        """A process of ours that ends hands its time over to us, who wait for it."""
        ticks = 0
        for pid in ("self", *map(str, pids)):
            try:
                stat = parse_stat(self._host.read_text(f"/proc/{pid}/stat"))
            except (OSError, ValueError, IndexError):
                continue
            ticks += stat.cpu_ticks + (stat.reaped_ticks if pid == "self" else 0)
        return ticks


def drift(before: Speeds, after: Speeds) -> float | None:
    """The widest change of a core's speed, over the mean of both; None: not measured twice."""
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
