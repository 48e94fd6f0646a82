"""Plans and metrics of Spark's event log: Q18 of TPC-H by Spark 4.3.0, and damaged lines."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.engines.spark.plans import operators_of
from atoll.schema.operators import Kind
from tests.parts.paths import GOLDEN

LINES = (GOLDEN / "plans/spark-4.3.0-q18.jsonl").read_bytes().splitlines(keepends=True)
ALL = ("customer", "lineitem", "lineitem", "lineitem", "orders")


def test_the_last_plan_counts_with_the_sums_of_its_tasks() -> None:
    found = operators_of(LINES)
    joins = [(one.operator, one.join, one.tables) for one in found if one.kind is Kind.JOIN]
    assert joins == [
        ("BroadcastHashJoin", "inner", ALL),
        ("BroadcastHashJoin", "inner", ("customer", "lineitem", "orders")),
        ("BroadcastHashJoin", "leftsemi", ("lineitem", "orders")),
        ("BroadcastHashJoin", "leftsemi", ("lineitem", "lineitem")),
    ]
    assert all(one.own_s is None for one in found if one.kind is Kind.JOIN), "Spark has no time"
    scans = [(one.tables, one.rows, one.tasks) for one in found if one.kind is Kind.SCAN]
    assert scans.count((("lineitem",), 60175, 1)) == 2, "the reused exchange is not read again"
    first = next(one for one in found if one.operator == "Exchange")
    assert (first.distribution, first.tasks) == ("partitioned", 4)
    assert [one.tables for one in found if one.operator == "ReusedExchange"] == [("lineitem",)]


def event(name: str, **more: Any) -> bytes:
    return json.dumps({"Event": f"org.apache.spark.sql.execution.ui.{name}", **more}).encode()


def node(name: str, *below: Any, **metrics: int) -> dict[str, Any]:
    return {
        "nodeName": name,
        "simpleString": name,
        "children": below,
        "metadata": {"Location": "InMemoryFileIndex(1 paths)[file:/data/t]"},
        "metrics": [
            {"name": metric.replace("_", " "), "accumulatorId": number, "metricType": "timing"}
            for metric, number in metrics.items()
        ],
    }


def task(**sums: int) -> bytes:
    told = [
        {"ID": int(number[1:]), "Name": "x", "Update": str(value), "Metadata": "sql"}
        for number, value in sums.items()
    ]
    info = {"Task Info": {"Accumulables": told}}
    return json.dumps({"Event": "SparkListenerTaskEnd", **info}).encode()


def test_a_time_that_includes_others_is_without_them() -> None:
    scan = node("Scan parquet ", scan_time=1)
    aggregate = node("HashAggregate", node("ColumnarToRow", scan), time_in_aggregation_build=2)
    plan = node("WholeStageCodegen (1)", aggregate, duration=3)
    started = event("SparkListenerSQLExecutionStart", executionId=1, sparkPlanInfo=plan)
    found = operators_of([started, task(_1=100, _2=300, _3=1000), task(_1=-1, _2=100, _3=1000)])
    assert [(one.operator, one.own_s, one.tasks) for one in found] == [
        ("WholeStageCodegen", pytest.approx(1.6), 2),
        ("HashAggregate", pytest.approx(0.3), 2),
        ("ColumnarToRow", None, None),
        ("Scan", pytest.approx(0.1), 2),
    ]
    assert sum(one.own_s or 0 for one in found) == pytest.approx(2), "all of the stage"
    assert found[0].tables == ("t",)


@given(st.integers(0, len(LINES) - 1), st.binary(max_size=20))
def test_a_damaged_line_is_a_value_error(at: int, junk: bytes) -> None:
    damaged = [*LINES[:at], b"{" + junk, *LINES[at + 1 :]]
    with pytest.raises(ValueError, match=r".+"):
        operators_of(damaged)


def test_a_log_without_a_plan_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="no plan"):
        operators_of([])
