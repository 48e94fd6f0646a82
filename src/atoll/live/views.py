"""Makes the view of a slot from its processes. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from atoll.live.process import WatchedProcess
from atoll.schema.inspection import Finding
from atoll.schema.live import SlotView


@dataclass(slots=True)
class SlotTotals:
    """What stays when processes end, since the first look."""

    cpu_seconds: float = 0.0
    migrations: int = 0  # of processes that have ended
    used_s: float = 0.0  # CPU time since the look before
    traffic: tuple[int, int] | None = None  # bytes to all and to local memory, as counted
    traffic_at_s: float | None = None
    bytes_per_s: float | None = None
    local_bytes_per_s: float | None = None

    def note_traffic(self, counted: tuple[int, int] | None, now_s: float) -> None:
        before, before_s = self.traffic, self.traffic_at_s
        self.traffic, self.traffic_at_s = counted, now_s
        self.bytes_per_s = self.local_bytes_per_s = None
        if counted is None or before is None or before_s is None or now_s <= before_s:
            return
        whole, local = (now - then for then, now in zip(before, counted, strict=True))
        if 0 <= local <= whole:  # a counter that falls was given to another group meanwhile
            self.bytes_per_s = round(whole / (now_s - before_s))
            self.local_bytes_per_s = round(local / (now_s - before_s))


def slot_view(
    slot: int | None,
    cpus: str,
    totals: SlotTotals,
    processes: Sequence[WatchedProcess],
    *,
    masked: bool,
    now_s: float,
    elapsed_s: float,
) -> SlotView:
    pages: Counter[int] = Counter()
    for process in processes:
        pages.update(process.bytes_by_node)
    ran_s = sum(process.ran_s for process in processes)
    rates = [
        process.migrations_per_s if process.ran else 0.0
        for process in processes
        if process.migrations_per_s is not None
    ]
    return SlotView(
        slot=slot,
        cpus=cpus,
        masked=masked,
        processes=len(processes),
        threads=sum(process.threads for process in processes),
        cpu=round(totals.used_s / elapsed_s, 3),
        cpu_seconds=round(totals.cpu_seconds, 3),
        outside=sum(process.outside for process in processes),
        home_share=round(sum(one.home_s for one in processes) / ran_s, 4) if ran_s else None,
        migrations_per_s=round(sum(rates), 2) if rates else None,
        migrations=totals.migrations + sum(process.migrations for process in processes),
        bytes_by_node=dict(sorted(pages.items())),
        local_share=_local(processes),
        bytes_per_s=totals.bytes_per_s,
        local_bytes_per_s=totals.local_bytes_per_s,
        drift=sum(len(process.drift) for process in processes),
        masks_age_s=_age(processes, now_s, lambda one: one.masks_at_s),
        runs_age_s=_age(
            processes, now_s, lambda one: now_s if one.runs_at_s and not one.ran else one.runs_at_s
        ),
        memory_age_s=_age(processes, now_s, lambda one: one.memory_at_s),
    )


def alike(finding: Finding) -> tuple[str, int, str, str]:
    """What findings have in common that need one line: 200 threads with one fault are one."""
    return finding.code, finding.pid, finding.mapping, finding.found


def first_alike(findings: Iterable[Finding], most: int) -> tuple[Finding, ...]:
    first: dict[tuple[str, int, str, str], Finding] = {}
    for finding in findings:
        first.setdefault(alike(finding), finding)
    return tuple(first.values())[:most]


def _local(processes: Iterable[WatchedProcess]) -> float | None:
    """Weighted by resident bytes: an instance's heap counts, not a shell that started it."""
    whole = local = 0.0
    for process in processes:
        if process.local_share is not None:
            size = sum(process.bytes_by_node.values())
            whole, local = whole + size, local + process.local_share * size
    return round(min(local / whole, 1.0), 4) if whole else None


def _age(
    processes: Iterable[WatchedProcess],
    now_s: float,
    at: Callable[[WatchedProcess], float | None],
) -> float | None:
    """Of the oldest; None if one of them has not been looked at."""
    times = [at(process) for process in processes]
    known = [time_s for time_s in times if time_s is not None]
    return round(now_s - min(known), 1) if known and len(known) == len(times) else None
