"""The graph of a job: its subtasks and what they give to each other. Pure."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from atoll.engines.flink.documents import Counts, Job, Vertex
from atoll.engines.flink.subtasks import operator_ids
from atoll.schema.operator_graph import Activity, Edge, GraphOperator, Known, Source
from atoll.schema.operators import Kind

# Words of a vertex's name, or of its description, by which an operator is known, in this order:
# a join may say that it filters.
_KINDS = (
    (Kind.SCAN, r"^source\b|tablesourcescan"),
    (Kind.JOIN, r"join|co-?process|co-?flat|co-?map"),
    (Kind.SORT, r"sort|rank|top-?n\b"),
    (Kind.AGGREGATE, r"aggregat|window|group|reduce|distinct|deduplicat"),
    (Kind.FILTER, r"filter|calc|map\b|where|select"),
)


class Stretch(NamedTuple):
    """A vertex's counts over a time."""

    seconds: float
    first: Counts
    last: Counts

    def rate(self, field: str) -> float:
        """Of one of the counts, a second; a count that fell began again."""
        before, after = getattr(self.first, field), getattr(self.last, field)
        return max(after - before, 0) / self.seconds if self.seconds > 0 else 0.0


def kind_of(name: str, description: str) -> Kind:
    """A guess by words."""
    for kind, words in _KINDS:
        if re.search(words, name, re.IGNORECASE) or re.search(words, description, re.IGNORECASE):
            return kind
    return Kind.OTHER


def operators(
    job: Job, kinds: Mapping[str, Kind], activity: Mapping[str, Activity]
) -> tuple[GraphOperator, ...]:
    """An operator for each subtask. `kinds`: of vertices whose kind is known, by name."""
    said = {node.id: node.description for node in job.plan.nodes}
    return tuple(
        GraphOperator(
            id=operator,
            kind=kinds.get(vertex.name, kind_of(vertex.name, said.get(vertex.id, ""))),
            activity=activity.get(operator),
        )
        for vertex, ids in _with_ids(job)
        for operator in ids
    )


def edges(job: Job, stretches: Mapping[str, Stretch]) -> tuple[Edge, ...]:
    """What subtasks give to each other, by Flink's count of bytes of each vertex.

    It is measured where a vertex has one taker or one giver. Else it is estimated: every taker
    gets the same, as if each got every record; and so does every pair of subtasks.
    """
    vertices = {vertex.id: (vertex, ids) for vertex, ids in _with_ids(job)}
    between: dict[tuple[str, str], set[str]] = defaultdict(set)
    for node in job.plan.nodes:
        for given in node.inputs:
            if node.id in vertices and given.giver in vertices:
                between[given.giver, node.id].add(given.strategy)
    takers = Counter(giver for giver, _ in between)
    givers = Counter(taker for _, taker in between)
    found = []
    for (giver, taker), strategies in between.items():
        known = _bytes(giver, taker, takers, givers, stretches)
        (one, giving), (other, taking) = vertices[giver], vertices[taker]
        pairs = _pairs(one, other, strategies)
        if known is not None and len(pairs) > 1:
            known = Known(
                value=known.value / len(pairs),
                source=Source.ESTIMATED,
                how=f"{known.how} / {len(pairs)} pairs of subtasks",
            )
        found += [Edge(giver=giving[i], taker=taking[k], bytes_per_s=known) for i, k in pairs]
    return tuple(found)


def _pairs(giver: Vertex, taker: Vertex, strategies: set[str]) -> Sequence[tuple[int, int]]:
    if strategies == {"FORWARD"} and giver.parallelism == taker.parallelism:
        return [(number, number) for number in range(giver.parallelism)]
    return [(i, k) for i in range(giver.parallelism) for k in range(taker.parallelism)]


def _bytes(
    giver: str,
    taker: str,
    takers: Mapping[str, int],
    givers: Mapping[str, int],
    stretches: Mapping[str, Stretch],
) -> Known | None:
    if givers[taker] == 1 and taker in stretches:
        rate = stretches[taker].rate("bytes_in")
        return Known(value=rate, source=Source.MEASURED, how="numBytesIn of its only taker")
    if giver not in stretches:
        return None
    rate = stretches[giver].rate("bytes_out")
    if takers[giver] == 1:
        return Known(value=rate, source=Source.MEASURED, how="numBytesOut of its giver")
    how = f"numBytesOut / {takers[giver]} takers"
    return Known(value=rate / takers[giver], source=Source.ESTIMATED, how=how)


def source_rate(job: Job, stretches: Mapping[str, Stretch]) -> float:
    """Records a second that the sources give: the rate of the graph."""
    taking = {node.id for node in job.plan.nodes if node.inputs}
    return sum(
        stretch.rate("records_out") for vertex, stretch in stretches.items() if vertex not in taking
    )


def waiting(job: Job, stretches: Mapping[str, Stretch], share: float) -> tuple[str, ...]:
    """The names of vertices that wait for their takers for more than this share of the time."""
    return tuple(
        vertex.name
        for vertex in job.vertices
        if vertex.id in stretches
        and stretches[vertex.id].rate("waited_ms") > share * 1000 * vertex.parallelism
    )


def _with_ids(job: Job) -> Sequence[tuple[Vertex, tuple[str, ...]]]:
    ids = operator_ids(job.vertices)
    return [(vertex, ids[vertex.id]) for vertex in job.vertices]
