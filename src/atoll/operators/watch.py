"""Watches the operators of a program that runs: whether their activity drifts from the plan, and
whether their threads are still where they were put. Changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from atoll.engines.binding import lacking, seats_of
from atoll.engines.placeable import OperatorThread, Running
from atoll.errors import EngineFailed, ServerGone, UsageError
from atoll.host.api import Host
from atoll.inspect.processes import GONE
from atoll.operators.drift import (
    FOR_S,
    MEMORY,
    Drift,
    Sample,
    drifted,
    figures,
    renewed,
    thread_changes,
)
from atoll.schema.operator_graph import OperatorGraph
from atoll.schema.placement import Placement

SAMPLE_S = 10.0


@dataclass(frozen=True, slots=True)
class Offer:
    """A new plan, and why. None: the present operators fit into no plan; `why_none` says why."""

    drifts: tuple[Drift, ...]
    graph: OperatorGraph
    placement: Placement | None
    why_none: str = ""


def watch(
    host: Host,
    running: Running,
    placement: Placement,
    graph: OperatorGraph,
    plan: Callable[[OperatorGraph], Placement],
    say: Callable[[str], None],
    *,
    for_s: float | None = None,
    sample_s: float = SAMPLE_S,
    drift_s: float = FOR_S,
) -> Offer | None:
    """Returns with the first offer; None if there was none for `for_s`. Says, each thing once, what
    happens to threads, and why there is no sample; then the time of a drift begins again.

    Raises ServerGone, and what `running.threads` raises at the start.
    """
    until_s = None if for_s is None else host.monotonic() + for_s
    threads, said = list(running.threads()), set[str]()
    samples: list[Sample] = []

    def tell(lines: Sequence[str]) -> None:
        for line in lines:
            if line not in said:
                said.add(line)
                say(line)

    while until_s is None or host.monotonic() < until_s:
        began_s = host.monotonic()
        try:
            seen = running.profile(sample_s)
            ended_s, now = host.monotonic(), list(running.threads())
        except ServerGone:
            raise
        except (UsageError, EngineFailed) as fault:  # its work pauses, or starts again
            tell([str(fault)])
            samples = []
            host.sleep(sample_s)
            continue
        samples.append(Sample(began_s, ended_s, seen))
        tell([*_uncompared(graph, seen), *_changes(host, threads, now, placement)])
        threads = now
        drifts = drifted(graph, samples, for_s=drift_s)
        if drifts:
            recent = [one for one in samples if one.began_s >= samples[-1].ended_s - drift_s]
            return _offer(drifts, renewed(graph, recent or samples[-1:]), plan)
        # Older ones decide nothing any more.
        samples = [one for one in samples if one.ended_s > samples[-1].ended_s - 2 * drift_s]
    return None


def _uncompared(planned: OperatorGraph, seen: OperatorGraph) -> list[str]:
    """A line if no sample can say whether the memory bandwidth has drifted."""
    had, has = ({figure for _, figure in figures(one)} for one in (planned, seen))
    if MEMORY not in had - has:
        return []
    return ["GB/s: in the plan, and not measured here; only the duties are compared"]


def _changes(
    host: Host, before: Sequence[OperatorThread], now: Sequence[OperatorThread], plan: Placement
) -> list[str]:
    strangers = lacking((*before, *now), plan)
    before, now = (
        [one for one in threads if strangers.isdisjoint(one.operators)] for threads in (before, now)
    )
    new = [f"{name}: the placement lacks it" for name in sorted(strangers)]
    try:
        seats = seats_of(now, plan)
    except UsageError as fault:  # a thread with operators that have different CPUs
        return [*new, str(fault)]
    masks = {}
    for one in now:
        try:
            masks[one] = host.affinity(one.tid)
        except GONE:
            continue
    return [*new, *thread_changes(before, now, masks, seats)]


def _offer(
    drifts: Sequence[Drift], graph: OperatorGraph, plan: Callable[[OperatorGraph], Placement]
) -> Offer:
    try:
        return Offer(tuple(drifts), graph, plan(graph))
    except UsageError as fault:
        return Offer(tuple(drifts), graph, None, str(fault))
