"""Graphs of operators for tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any

from hypothesis import strategies as st

from atoll.schema.operator_graph import (
    Activity,
    Edge,
    GraphOperator,
    Known,
    OperatorGraph,
    Overlap,
    Source,
)


def given(value: float) -> Known:
    return Known(value=value, source=Source.GIVEN)


def operator(id_: str, duty: float | None, **fields: Any) -> GraphOperator:
    """`memory_gbs`, `peak` and `cache_bytes` are its activity's."""
    known: dict[str, Any] = {
        name: given(fields.pop(name)) for name in ("peak", "memory_gbs") if name in fields
    }
    if "cache_bytes" in fields:
        known["cache_bytes"] = fields.pop("cache_bytes")
    activity = None if duty is None else Activity(duty=given(duty), **known)
    return GraphOperator(id=id_, activity=activity, **fields)


def graph(
    operators: Sequence[GraphOperator],
    edges: Mapping[tuple[str, str], float] | Iterable[tuple[str, str]] = (),
    overlaps: Mapping[tuple[str, str], float] | None = None,
) -> OperatorGraph:
    """`edges`: pairs of ids, with bytes/s if it is a mapping."""
    carried = edges if isinstance(edges, Mapping) else {}
    return OperatorGraph(
        rate=None,
        operators=tuple(operators),
        edges=tuple(
            Edge(giver=a, taker=b, bytes_per_s=given(carried[a, b]) if carried else None)
            for a, b in edges
        ),
        overlaps=tuple(
            Overlap(giver=a, taker=b, share=share) for (a, b), share in (overlaps or {}).items()
        ),
    )


def random_graph(seed: int, count: int, most_duty: float, memory_gbs: float = 2.0) -> OperatorGraph:
    """Each operator but the first takes data from one or two of the ten before it. Duties are whole
    percent, as the exact solver needs them."""
    random = Random(seed)
    operators = [
        operator(
            f"op{one}",
            random.randint(1, round(100 * most_duty)) / 100,
            memory_gbs=round(random.uniform(0, memory_gbs), 2),
            blocking=random.random() < 0.3,
        )
        for one in range(count)
    ]
    edges = {}
    for one in range(1, count):
        for giver in random.sample(range(max(0, one - 10), one), min(one, random.randint(1, 2))):
            edges[f"op{giver}", f"op{one}"] = float(random.randint(1, 10**7))
    return graph(operators, edges)


@st.composite
def graphs(draw: st.DrawFn, most: int = 24) -> OperatorGraph:
    """Any graph without circles that fits a machine of a few cores."""
    count = draw(st.integers(1, most))
    share = st.integers(0, 100).map(lambda percent: percent / 100)
    operators = [
        operator(
            f"op{one}",
            draw(share),
            memory_gbs=draw(st.integers(0, 8)) / 2,
            cache_bytes=draw(st.integers(0, 8)) << 20,
            blocking=draw(st.booleans()),
            parallel=draw(st.booleans()),
        )
        for one in range(count)
    ]
    pairs = [(a, b) for a in range(count) for b in range(a + 1, count)]
    chosen = (
        draw(st.lists(st.sampled_from(pairs), unique=True, max_size=2 * count)) if pairs else []
    )
    return graph(
        operators, {(f"op{a}", f"op{b}"): float(draw(st.integers(0, 10**6))) for a, b in chosen}
    )
