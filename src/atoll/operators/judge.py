"""Whether operators on few cores do as well as an operator per core. Pure.

query-plan-deployment-poster asks for the fewest cores "without affecting performance". That is
taken as: at least 97 % of the throughput, and a 99th percentile of latency of at most 110 %, both
of an operator per core in the same block, in the median over blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean, median, pstdev

from atoll.bench.cautions import IDLE_ENOUGH
from atoll.schema.operator_runs import OperatorRound, OperatorRun, OperatorRuns
from atoll.schema.placement import Deployment
from atoll.schema.text import plural
from atoll.stats.paired import MIN_BLOCKS, Estimate, speedup

LEAST_THROUGHPUT = 0.97
MOST_P99 = 1.10


@dataclass(frozen=True, slots=True)
class Shown:
    """A deployment in a round: medians over its blocks."""

    throughput: float
    deviation: float  # the standard deviation over windows of 1 s
    p50_ms: float
    p90_ms: float
    p99_ms: float
    cores_used: float


@dataclass(frozen=True, slots=True)
class Judgement:
    """Packed over per-core."""

    throughput: Estimate
    p99: Estimate
    cause: str  # why it does not hold; empty: it does

    @property
    def holds(self) -> bool:
        return not self.cause


def runs_of(one: OperatorRound, deployment: Deployment) -> list[OperatorRun]:
    return [run for run in one.runs if run.deployment == deployment]


def shown(one: OperatorRound, deployment: Deployment) -> Shown | None:
    """None if it has not run."""
    runs = runs_of(one, deployment)
    if not runs:
        return None
    return Shown(
        throughput=median(fmean(run.per_window) for run in runs),
        deviation=median(pstdev(run.per_window) for run in runs),
        p50_ms=median(run.p50_ms for run in runs),
        p90_ms=median(run.p90_ms for run in runs),
        p99_ms=median(run.p99_ms for run in runs),
        cores_used=median(run.cores_used for run in runs),
    )


def judge(one: OperatorRound) -> Judgement | None:
    """None if either has not run, or did no work in a block."""
    few, each = runs_of(one, "packed"), runs_of(one, "per-core")
    rates = [{run.block: fmean(run.per_window) for run in runs} for runs in (few, each)]
    tails = [{run.block: run.p99_ms for run in runs} for runs in (few, each)]
    if (
        not few
        or not each
        or not all(value > 0 for by in (*rates, *tails) for value in by.values())
    ):
        return None
    throughput, p99 = speedup(rates[0], rates[1]), speedup(tails[0], tails[1])
    if throughput is None or p99 is None:
        return None
    # `speedup` divides its first argument by its second.
    causes = []
    if any(run.backlog for run in few) and not any(run.backlog for run in each):
        causes.append("it falls behind its work")
    if throughput.value < LEAST_THROUGHPUT:
        causes.append(f"{100 * throughput.value:.0f} % of the throughput")
    if p99.value > MOST_P99:
        causes.append(f"{100 * p99.value:.0f} % of the 99th percentile")
    return Judgement(throughput, p99, " and ".join(causes))


def verdict(found: OperatorRuns) -> str:
    """In one line, with the reason if there is none."""
    last = found.rounds[-1]
    if found.emulated:
        return "comparison refused: the CPU is emulated, so times mean nothing"
    for deployment in ("per-core", "packed"):
        if deployment in found.refused:
            return f"comparison refused: {found.refused[deployment]}"
    result = judge(last)
    packed = next((one for one in last.placements if one.deployment == "packed"), None)
    if result is None or packed is None:
        return "comparison refused: packed and per-core must both run"
    size = f"packed on {plural(len(packed.cores), 'core')} with headroom {last.headroom:.1f}"
    if result.holds:
        return f"{size} is as good as an operator per core"
    return f"{size} is not as good as an operator per core: {result.cause}"


def cautions(found: OperatorRuns) -> Iterator[str]:
    """What a reader must know before trusting a figure."""
    runs = [run for one in found.rounds for run in one.runs]
    if found.emulated:
        yield "the CPU is emulated, so times mean nothing"
    if busy := [run for run in runs if run.idle_before < IDLE_ENOUGH]:
        yield f"the machine was busy before {len(busy)} of {plural(len(runs), 'run')}"
    if drifted := [run for run in runs if run.drifted]:
        yield f"threads were out of place in {plural(len(drifted), 'run')}: {drifted[0].drift}"
    if behind := [run for run in runs if run.backlog]:
        names = ", ".join(dict.fromkeys(run.deployment for run in behind))
        yield f"work came in faster than it was done in {plural(len(behind), 'run')} ({names})"
    blocks = len({run.block for run in found.rounds[-1].runs})
    if blocks < MIN_BLOCKS:
        yield f"{plural(blocks, 'block')}: fewer than {MIN_BLOCKS} give no interval"
