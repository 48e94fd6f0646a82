"""PostgreSQL's EXPLAIN (ANALYZE, FORMAT JSON): plans that PostgreSQL 15 told, and others."""

from __future__ import annotations

import json
import math
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


def times(root: dict[str, Any]) -> list[tuple[str, Any]]:
    found = profile_of([{"Plan": root}]).operators
    return [(one.operator, pytest.approx(1000 * (one.own_s or 0))) for one in found]


def started(name: str, root: dict[str, Any]) -> dict[str, Any]:
    return {**root, "Parent Relationship": "InitPlan", "Subplan Name": name}


def test_the_time_of_a_cte_is_in_its_scans_and_not_in_the_node_above_it() -> None:
    cte = started("CTE totals", node("Hash Aggregate", 90.0, 1, node("Seq Scan", 70.0)))
    scans = [node("CTE Scan", ms, 1, **{"CTE Name": "totals"}) for ms in (60.0, 35.0)]
    root = node("Aggregate", 100.0, 1, cte, node("Hash Join", 97.0, 1, *scans))
    assert times(root) == [
        ("Aggregate", 3.0),
        ("Hash Aggregate", 20.0),
        ("Seq Scan", 70.0),
        ("Hash Join", 2.0),
        ("CTE Scan", 0.0),
        ("CTE Scan", 5.0),
    ]


@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("InitPlan 1 (returns $0)", "(sum(a) > $0)"),
        ("InitPlan 1", "(sum(a) > (InitPlan 1).col1)"),
    ],
)
def test_the_time_of_an_init_plan_is_in_the_node_that_uses_its_result(name: str, use: str) -> None:
    grouped = node("Hash Aggregate", 95.0, 1, node("Seq Scan", 30.0), Filter=use)
    root = node("Sort", 100.0, 1, started(name, node("Aggregate", 60.0)), grouped)
    assert times(root) == [
        ("Sort", 5.0),
        ("Aggregate", 60.0),
        ("Hash Aggregate", 5.0),
        ("Seq Scan", 30.0),
    ]


def test_an_init_plan_that_no_expression_names_ran_in_the_node_above_it() -> None:
    plan = started("InitPlan 1 (returns $0)", node("Aggregate", 60.0))
    root = node("Aggregate", 100.0, 1, plan, node("Seq Scan", 30.0))
    assert times(root) == [("Aggregate", 10.0), ("Aggregate", 60.0), ("Seq Scan", 30.0)]


def test_a_node_that_stops_early_has_no_negative_time() -> None:
    limit = node("Limit", 1.0, 1, node("Seq Scan", 5.0))
    assert profile_of([{"Plan": limit}]).operators[0].own_s == 0


@pytest.mark.parametrize("ms", [math.nan, math.inf, -5.0])
def test_a_time_that_cannot_be_is_a_value_error(ms: float) -> None:
    for root in (node("Sort", ms), node("Limit", 9.0, 1, node("Seq Scan", ms))):
        with pytest.raises(ValueError, match="a time or a number in it is"):
            profile_of([{"Plan": root}])


@pytest.mark.parametrize("explained", [None, [], [{}], [{"Plan": {"Node Type": "Sort"}}], ["x"]])
def test_another_document_is_a_value_error(explained: Any) -> None:
    with pytest.raises(ValueError, match="a part of it"):
        profile_of(explained)


def test_a_plan_of_more_levels_than_can_be_read_is_a_value_error() -> None:
    deep = node("Append", 1.0)
    for _ in range(2000):
        deep = node("Append", 1.0, 1, deep)
    with pytest.raises(ValueError, match="nested too deeply"):
        profile_of([{"Plan": deep}])
