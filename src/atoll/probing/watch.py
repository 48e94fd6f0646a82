"""Who disturbs the measuring: the hypervisor (steal), other processes, a clock that drifts,
preempted or misplaced threads, misplaced pages. Nothing is corrected by it; it is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from atoll.host.api import Host
from atoll.host.cpu_times import cpu_times
from atoll.host.procfs import parse_stat
from atoll.probing.requests import Answer
from atoll.schema.profile import Kind, Watch

# CPU -> time of a dependent integer operation
Speeds = Mapping[int, float]


class Watcher:
    """Over one kind, from `begin` to `end`."""

    def __init__(self, host: Host, kind: Kind) -> None:
        self._host = host
        self._kind = kind
        self._involuntary = 0
        self._misplaced_threads = 0
        self._misplaced_pages = 0
        self._gone_ticks = 0

    def begin(self, pids: Iterable[int], speeds: Speeds) -> None:
        self._speeds = dict(speeds)
        self._ours = {pid: self._ticks(str(pid)) for pid in pids}
        self._self = self._ticks("self")
        self._times = cpu_times(self._host)

    def saw(self, answer: Answer, node: int | None) -> None:
        self._involuntary += answer.involuntary
        self._misplaced_threads += answer.misplaced_threads
        self._misplaced_pages += answer.misplaced_pages(node)

    def leaves(self, pid: int) -> None:
        """A process of ours is about to end; its CPU time was ours."""
        self._gone_ticks += max(0, self._ticks(str(pid)) - self._ours.pop(pid, 0))

    def end(self, pids: Iterable[int], speeds: Speeds, seconds: float) -> Watch:
        now = cpu_times(self._host)
        total = now.total - self._times.total
        ours = self._gone_ticks + max(0, self._ticks("self") - self._self)
        for pid in pids:
            ours += max(0, self._ticks(str(pid)) - self._ours.get(pid, 0))
        others = now.busy - self._times.busy - ours
        return Watch(
            kind=self._kind,
            seconds=seconds,
            steal_share=_share(now.steal - self._times.steal, total),
            others_share=_share(others, total),
            frequency_drift=drift(self._speeds, speeds),
            involuntary_switches=self._involuntary,
            misplaced_threads=self._misplaced_threads,
            misplaced_pages=self._misplaced_pages,
        )

    def _ticks(self, pid: str) -> int:
        try:
            return parse_stat(self._host.read_text(f"/proc/{pid}/stat")).cpu_ticks
        except (OSError, ValueError, IndexError):
            return 0


def drift(before: Speeds, after: Speeds) -> float | None:
    """The widest change of a core's speed, over the mean of both; None: not measured twice."""
    changes = [
        abs(after[cpu] - was) / ((after[cpu] + was) / 2)
        for cpu, was in before.items()
        if cpu in after and after[cpu] + was > 0
    ]
    return max(changes, default=None)


def _share(part: int, total: int) -> float | None:
    return min(1.0, max(0.0, part / total)) if total > 0 else None
