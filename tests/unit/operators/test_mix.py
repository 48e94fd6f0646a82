"""Graphs at other rates, and as one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.errors import UsageError
from atoll.operators.mix import at_rate, mixed
from atoll.schema.operator_graph import (
    Activity,
    Edge,
    GraphOperator,
    Known,
    OperatorGraph,
    Overlap,
    Rate,
    Source,
)
from tests.parts.faults import fails


def known(value: float, source: Source = Source.MEASURED) -> Known:
    return Known(value=value, source=source, how="a clock")


def graph(
    rate: float | None = 4.0, engine: str = "reef", unit: str = "executions/s"
) -> OperatorGraph:
    scan = Activity(duty=known(0.5), peak=known(0.75), memory_gbs=known(2.0, Source.ESTIMATED))
    return OperatorGraph(
        engine=engine,
        rate=Rate(value=rate, unit=unit) if rate else None,
        operators=(
            GraphOperator(id="scan", activity=scan.model_copy(update={"cache_bytes": 7})),
            GraphOperator(id="sink", name="Sink", activity=None),
        ),
        edges=(Edge(giver="scan", taker="sink", bytes_per_s=known(100.0)),),
        overlaps=(Overlap(giver="scan", taker="sink", share=0.25),),
        notes=("without the client",),
    )


def test_vectors_and_edges_scale_with_the_rate_and_overlaps_do_not() -> None:
    found = at_rate(graph(), 12.0)
    activity = found.operators[0].activity
    assert activity == Activity(
        duty=known(1.5), peak=known(2.25), memory_gbs=known(6.0, Source.ESTIMATED), cache_bytes=7
    )
    assert found.operators[1].activity is None
    assert found.edges[0].bytes_per_s == known(300.0)
    assert found.overlaps == ()
    assert found.rate == Rate(value=12.0, unit="executions/s")


def test_at_its_own_rate_a_graph_stays_as_it_is() -> None:
    assert at_rate(graph(), 4.0) is not None
    assert at_rate(graph(), 4.0) == graph()


@given(st.floats(1e-3, 1e6), st.floats(1e-3, 1e6))
def test_rates_can_be_changed_in_steps(first: float, second: float) -> None:
    steps, once = at_rate(at_rate(graph(), first), second), at_rate(graph(), second)
    one, other = steps.operators[0].activity, once.operators[0].activity
    assert one is not None
    assert other is not None
    assert one.duty.value == pytest.approx(other.duty.value)


def test_an_unknown_rate_cannot_be_changed() -> None:
    with fails(UsageError):
        at_rate(graph(None), 1.0)


def test_a_rate_beyond_all_machines() -> None:
    with fails(UsageError, rate="1e+300 executions/s"):
        at_rate(graph(), 1e300)


def test_graphs_that_run_together_keep_their_operators_apart() -> None:
    found = mixed({"q1": graph(), "q2": graph(2.0)})
    assert [(one.id, one.name) for one in found.operators] == [
        ("q1/scan", "scan"),
        ("q1/sink", "Sink"),
        ("q2/scan", "scan"),
        ("q2/sink", "Sink"),
    ]
    assert [(edge.giver, edge.taker) for edge in found.edges] == [
        ("q1/scan", "q1/sink"),
        ("q2/scan", "q2/sink"),
    ]
    assert [one.giver for one in found.overlaps] == ["q1/scan", "q2/scan"]
    assert (found.engine, found.rate) == ("reef", Rate(value=6.0, unit="executions/s"))
    assert found.notes == ("without the client",)


def test_what_differs_is_not_said_of_the_mix() -> None:
    found = mixed({"a": graph(), "b": graph(engine="atoll"), "c": graph(unit="records/s")})
    assert (found.engine, found.rate) == ("", None)
    assert mixed({"a": graph(), "b": graph(None)}).rate is None


def test_a_single_graph_keeps_its_ids() -> None:
    assert mixed({"q1": graph()}) == graph()
