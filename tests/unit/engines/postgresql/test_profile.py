"""PostgreSQL's EXPLAIN (ANALYZE, FORMAT JSON): plans that PostgreSQL 15 told, and others."""

from __future__ import annotations

import json
from typing import Any

import pytest

from atoll.engines.postgresql.profile import PEAK, profile_of
from atoll.schema.operators import Kind
from tests.parts.paths import GOLDEN


def recorded(query: str) -> Any:
    return json.loads((GOLDEN / f"plans/postgresql-15-{query}.json").read_text())


@pytest.mark.parametrize("query", ["q5", "q18"])
def test_all_the_time_is_an_operators(query: str) -> None:
    whole_s = recorded(query)[0]["Plan"]["Actual Total Time"] / 1000
    found = profile_of(recorded(query)).operators
    assert sum(one.own_s or 0 for one in found) == pytest.approx(whole_s)


def test_the_operators_and_the_memory_are_those_of_the_plan() -> None:
    found = profile_of(recorded("q18"))
    assert (found.peak_bytes, found.peak_source) == (
        (25 + 793 + 65 + 8977 + 1066 + 110) << 10,
        PEAK,
    )
    joins = [(one.join, one.tables) for one in found.operators if one.kind is Kind.JOIN]
    assert joins == [
        ("inner", ("customer", "lineitem", "lineitem", "orders")),
        ("inner", ("lineitem", "lineitem", "orders")),
        ("inner", ("lineitem", "lineitem")),
    ]


def node(kind: str, total_ms: float, loops: int = 1, *below: Any, **more: Any) -> dict[str, Any]:
    found = {"Node Type": kind, "Actual Total Time": total_ms, "Actual Loops": loops}
    return {**found, "Actual Rows": 10, "Plans": list(below), **more}


def test_workers_are_loops_whose_times_add_up() -> None:
    scan = node("Seq Scan", 8.0, 3, **{"Relation Name": "t"})
    sort = {"Sort Space Type": "Memory", "Sort Space Used": 5}
    sorts = node("Sort", 9.0, 3, scan, Workers=[sort, sort], **sort)
    gather = node("Gather", 10.0, 1, sorts, **{"Workers Launched": 2})
    found = profile_of([{"Plan": gather}])
    own = [pytest.approx(one.own_s) for one in found.operators]
    assert own == [0.001, 0.003, 0.024]
    assert [one.rows for one in found.operators] == [10, 30, 30]
    assert (found.operators[0].kind, found.operators[0].tasks) == (Kind.EXCHANGE, 3)
    assert found.peak_bytes == 15 << 10


def test_a_node_that_stops_early_has_no_negative_time() -> None:
    limit = node("Limit", 1.0, 1, node("Seq Scan", 5.0))
    assert profile_of([{"Plan": limit}]).operators[0].own_s == 0


@pytest.mark.parametrize("explained", [None, [], [{}], [{"Plan": {"Node Type": "Sort"}}], ["x"]])
def test_another_document_is_a_value_error(explained: Any) -> None:
    with pytest.raises(ValueError, match=r".+: .+"):
        profile_of(explained)


def test_a_plan_of_more_levels_than_can_be_read_is_a_value_error() -> None:
    deep = node("Append", 1.0)
    for _ in range(2000):
        deep = node("Append", 1.0, 1, deep)
    with pytest.raises(ValueError, match="nested too deeply"):
        profile_of([{"Plan": deep}])
