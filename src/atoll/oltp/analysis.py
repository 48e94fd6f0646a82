"""What runs of transactional workloads show: medians over blocks, and whether placement matters.
Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from atoll.bench.cautions import IDLE_ENOUGH
from atoll.schema.oltp import OltpRun, OltpRuns, OltpSeat
from atoll.schema.size import percent
from atoll.schema.text import plural
from atoll.stats.equivalence import Equivalence, equivalence
from atoll.stats.paired import MIN_BLOCKS, Estimate, median_estimate, speedup

_MOSTLY_IDLE = 0.5


@dataclass(frozen=True, slots=True)
class Compared:
    """Commits a second when spread, over those when packed."""

    workload: str
    cores: int
    ratio: Estimate | None
    verdict: Equivalence
    why: str = ""  # there is no ratio


def rates(found: OltpRuns, workload: str, seat: OltpSeat) -> dict[int, float]:
    """Commits a second, by block."""
    return {one.block: one.commits_per_s for one in runs_of(found, workload, seat)}


def runs_of(found: OltpRuns, workload: str, seat: OltpSeat) -> list[OltpRun]:
    return [one for one in found.runs if (one.workload, one.seat) == (workload, seat.label)]


def commits(found: OltpRuns, workload: str, seat: OltpSeat) -> Estimate | None:
    """None if there were none in a block."""
    values = list(rates(found, workload, seat).values())
    return median_estimate(values) if values and all(values) else None


def compared(found: OltpRuns) -> list[Compared]:
    seats = {(seat.placement, seat.cores): seat for seat in found.seats}
    return [
        _compare(found, workload, seat, seats.get(("spread", seat.cores)))
        for workload in found.sizes
        for seat in found.seats
        if seat.placement == "packed"
    ]


def _compare(found: OltpRuns, workload: str, packed: OltpSeat, spread: OltpSeat | None) -> Compared:
    if spread is None:
        why = "both are the same cores here"
        return Compared(workload, packed.cores, None, Equivalence.NOT_SHOWN, why)
    one, other = rates(found, workload, packed), rates(found, workload, spread)
    both = [block for block in one if one[block] and other.get(block)]
    # A rate is the inverse of a time, so the two are exchanged.
    ratio = speedup({block: other[block] for block in both}, {block: one[block] for block in both})
    if ratio is None:
        why = "no block has commits of both"
        return Compared(workload, packed.cores, None, Equivalence.NOT_SHOWN, why)
    return Compared(workload, packed.cores, ratio, equivalence(ratio))


def cautions(found: OltpRuns) -> list[str]:
    """What a reader must know before trusting a figure."""
    return [*found.warnings, *_cautions(found)]


def _cautions(found: OltpRuns) -> Iterator[str]:
    runs = found.runs
    if found.emulated:
        yield "the CPU is emulated, so times mean nothing"
    if busy := [one for one in runs if one.idle_before < IDLE_ENOUGH]:
        yield f"the machine was busy before {_of(busy, runs)}"
    if drifted := [one for one in runs if one.drifted]:
        yield f"threads were out of place in {_of(drifted, runs)}: {drifted[0].drift}"
    if unchecked := [one for one in runs if not one.threads]:
        yield f"threads were not checked in {_of(unchecked, runs)}"
    if failed := sum(one.failed for one in runs):
        yield f"{plural(failed, 'transaction')} gave up because of others"
    if waited := [one for one in runs if one.idle_during > _MOSTLY_IDLE]:
        idle = sorted(one.idle_during for one in waited)[len(waited) // 2]
        yield (
            f"the server's CPUs were idle for {percent(idle)} of {_of(waited, runs)}: commits "
            "waited for the disk, so caches hardly count"
        )
    blocks = len({one.block for one in runs})
    if blocks < MIN_BLOCKS:
        yield f"{plural(blocks, 'block')}: fewer than {MIN_BLOCKS} give no interval"


def _of(some: Sequence[OltpRun], runs: Sequence[OltpRun]) -> str:
    return f"{len(some)} of {plural(len(runs), 'run')}"
