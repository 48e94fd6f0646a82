"""The choice of `auto`: the papers' policy for the engine, unless too much heap would be lost.

An engine's share of the memory is the same under every policy, but small instances may lose a part
of it: to the cut at 31 GiB, which keeps compressed pointers, and to each instance's fixed overhead.
What heaps lose, the page cache gets, and an engine that reads remote storage cannot use it. The
papers report what a finer division gains; auto gives up no more heap than that for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from atoll.errors import UsageError
from atoll.plan.cores import Group
from atoll.plan.fitting import fitting_heaps
from atoll.plan.policies import divide
from atoll.plan.request import Request
from atoll.plan.sizing import LARGEST_COMPRESSED_BYTES, Heaps
from atoll.schema.plan import EngineTraits, Policy, Reason
from atoll.schema.size import gib, percent
from atoll.schema.text import plural

# The least speed-up of one instance per chiplet over one per node that the paper reports with all
# cores (1.25x; 1.44x and 2.15x for two other engines). Heaps that are smaller by more than this
# factor cost more than the division gains.
_LEAST_GAIN = 1.25
_GAIN_SOURCE = "olap-on-chiplets, section 4.3 (1.25x to 2.15x)"
_POINTERS = "HotSpot, documentation of -XX:+UseCompressedOops"

_SINGLE = Reason(
    rule="auto picks one instance",
    text="Every instance of this engine is a whole server with a full copy of the data, so there "
    "is one unless the user requests more (-n).",
    source="rule of this tool, not a measurement",
)
_CORE = Reason(
    rule="auto picks one instance per core",
    text="An instance runs a query on only one thread; such engines gain up to one instance per "
    "physical core.",
    source="numa-distributed-engines, section IV-B",
)
_CHIPLET = Reason(
    rule="auto picks one instance per chiplet",
    text="The speed-up over one instance per machine peaks when the number of instances equals "
    "the number of chiplets.",
    source="olap-on-chiplets, sections 4.2 and 4.5.1",
)
_PER_NODE = "auto picks one instance per NUMA node"
_NODE = Reason(
    rule=_PER_NODE,
    text="This machine's chiplets are unknown; the peak is then at one instance per node.",
    source="numa-distributed-engines, section IV-B",
)


class Chosen(NamedTuple):
    request: Request
    groups: list[Group]
    heaps: Heaps
    reason: Reason

    @property
    def total_bytes(self) -> int:
        return sum(self.heaps.sizes_bytes)


def choose(
    traits: EngineTraits,
    places: Group,
    count: int | None,
    request_of: Callable[[Policy, int | None], Request],
) -> Chosen:
    """The choice, with its division and its heaps. Raises UsageError if no candidate fits."""
    policy, reason = _of_the_papers(traits, places, count)
    if policy is not Policy.WICP or count is not None:
        return _chosen(request_of(policy, count), reason)
    try:
        finest = _chosen(request_of(Policy.WICP, None), reason)
    except UsageError as fault:
        why = f"One instance per chiplet does not fit: {fault}."
        reason = Reason(rule=_PER_NODE, text=why, source="this machine's memory")
        return _chosen(request_of(Policy.WIN, None), reason)
    if finest.request.choices.get("heap_bytes") is not None:
        return finest
    coarsest = _chosen(request_of(Policy.WIN, None), _NODE)
    if _keeps_enough(finest, coarsest):
        return finest
    halves = 2 * len(finest.groups)
    if finest.heaps.cut_for_pointers and halves <= len(places):
        try:
            split = _chosen(request_of(Policy.WICP, halves), reason)
        except UsageError:
            pass  # too little heap for some instance
        else:
            if _keeps_enough(split, coarsest):
                return split._replace(reason=_two_per_chiplet(finest, split))
    return coarsest._replace(reason=_per_node(finest, coarsest))


def _keeps_enough(fine: Chosen, coarse: Chosen) -> bool:
    return fine.total_bytes * _LEAST_GAIN >= coarse.total_bytes


def _of_the_papers(traits: EngineTraits, places: Group, count: int | None) -> tuple[Policy, Reason]:
    chiplets = any(place.chiplet is not None for place in places)
    if not traits.distributed:
        if count in (None, 1):
            return Policy.WIM, _SINGLE
        return (Policy.WICP if chiplets else Policy.WIN), _SINGLE
    if not traits.parallel_query:
        return Policy.WIC, _CORE
    return (Policy.WICP, _CHIPLET) if chiplets else (Policy.WIN, _NODE)


def _chosen(request: Request, reason: Reason) -> Chosen:
    groups = divide(request.policy, request.places, request.choices.get("count"))
    return Chosen(request, groups, fitting_heaps(request, groups), reason)


def _two_per_chiplet(finest: Chosen, split: Chosen) -> Reason:
    return Reason(
        rule="auto picks two instances per chiplet",
        text=f"With one per chiplet, {finest.heaps.cut_for_pointers} of "
        f"{plural(len(finest.groups), 'heap')} would be cut to {gib(LARGEST_COMPRESSED_BYTES)} to "
        f"keep compressed pointers: {gib(finest.total_bytes)} in total instead of "
        f"{gib(split.total_bytes)}. The speed-up stays the same up to three instances per "
        "chiplet. '--policy wicp' is one per chiplet.",
        source=f"olap-on-chiplets, section 4.5.1; {_POINTERS}",
    )


def _per_node(finest: Chosen, coarsest: Chosen) -> Reason:
    small, large = finest.total_bytes, coarsest.total_bytes
    return Reason(
        rule=_PER_NODE,
        text=f"{plural(len(finest.groups), 'instance')}, one per chiplet, would have {gib(small)} "
        f"of heap in total, {percent(1 - small / large)} less than one per node ({gib(large)}), "
        "and the page cache would get the difference. One per chiplet may be only "
        f"{_LEAST_GAIN}x as fast, so auto gives up at most {percent(1 - 1 / _LEAST_GAIN)} of the "
        "heap for it. '--policy wicp' chooses it all the same.",
        source=f"{_GAIN_SOURCE}; {_POINTERS}" if finest.heaps.cut_for_pointers else _GAIN_SOURCE,
    )
