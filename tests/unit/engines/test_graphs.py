"""Graphs of operators from the engines' own documents: recorded ones, and damaged ones."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atoll.engines import registry
from atoll.engines.api import ProfiledEngine
from atoll.engines.calls import graph_in
from atoll.engines.graphs import Execution, graph_of
from atoll.engines.operators import Node, kept_bytes
from atoll.schema.operator_graph import GraphOperator, OperatorGraph, Source
from atoll.schema.operators import Kind
from tests.parts.paths import GOLDEN

RECORDED = {
    "duckdb": "duckdb-1.5.5-q18.json",
    "postgresql": "postgresql-15-buffers.json",
    "mariadb": "mariadb-10.11-q18.json",
    "trino": "trino-476-tiny.json",
    "presto": "presto-0.287-tiny.json",
    "spark": "spark-4.3.0-stages.jsonl",
}


def document(engine: str) -> bytes:
    return (GOLDEN / "plans" / RECORDED[engine]).read_bytes()


def read(engine: str, found: bytes) -> OperatorGraph:
    made = registry.get(engine)
    assert isinstance(made, ProfiledEngine)
    return graph_in(made, found)


def of_one_execution(graph: OperatorGraph, value: float) -> float:
    assert graph.rate is not None
    return value / graph.rate.value


def by_id(graph: OperatorGraph) -> dict[str, GraphOperator]:
    return {one.id: one for one in graph.operators}


def carried(graph: OperatorGraph) -> dict[tuple[str, str], float]:
    """Bytes of one execution by edge."""
    return {
        (edge.giver, edge.taker): of_one_execution(graph, edge.bytes_per_s.value)
        for edge in graph.edges
        if edge.bytes_per_s is not None
    }


@pytest.mark.parametrize("engine", RECORDED)
def test_a_recorded_document_is_a_connected_graph_at_its_own_rate(engine: str) -> None:
    graph = read(engine, document(engine))
    assert (graph.engine, graph.overlaps) == (engine, ())
    assert graph.rate is not None
    assert graph.rate.unit == "executions/s"
    assert graph.seconds == pytest.approx(1 / graph.rate.value)
    assert all(one.activity and one.activity.duty.how for one in graph.operators)
    assert OperatorGraph.model_validate_json(graph.model_dump_json()) == graph
    if engine != "spark":  # whose broadcasts have no edge
        assert len(graph.edges) == len(graph.operators) - 1


def test_duckdb_times_are_measured_and_bandwidth_is_estimated() -> None:
    profile = json.loads(document("duckdb"))
    graph = read("duckdb", document("duckdb"))
    activities = [one.activity for one in graph.operators if one.activity]
    used_s = sum(of_one_execution(graph, one.duty.value) for one in activities)
    assert used_s == pytest.approx(profile["cpu_time"], rel=1e-3)
    assert {one.duty.source for one in activities} == {Source.MEASURED}
    assert "not CPU time" in activities[0].duty.how
    # The scan of lineitem that keeps all rows: 600,572 of 16 B, which DuckDB counts twice.
    scan = by_id(graph)["17"]
    assert scan.activity is not None
    assert scan.activity.memory_gbs is not None
    assert scan.activity.memory_gbs.source is Source.ESTIMATED
    read_gb = of_one_execution(graph, scan.activity.memory_gbs.value)
    assert read_gb == pytest.approx(600_572 * 16 / 1e9)
    assert carried(graph)["17", "16"] == pytest.approx(9_609_152)
    blocking = [one.name for one in graph.operators if one.blocking]
    assert blocking == ["TOP_N", "HASH_GROUP_BY", "HASH_GROUP_BY"]
    assert all(one.parallel for one in graph.operators)


def test_an_explained_query_of_duckdb_is_read_without_the_explain() -> None:
    profile = json.loads(document("duckdb"))
    (root,) = profile["children"]
    top = {**root, "operator_name": "EXPLAIN_ANALYZE", "children": [root]}
    explained = json.dumps({**profile, "children": [top]}).encode()
    assert read("duckdb", explained) == read("duckdb", document("duckdb"))


def test_a_scan_that_gives_nothing_has_no_known_bandwidth() -> None:
    profile = json.loads(document("duckdb"))
    (scan,) = [profile["children"][0]]
    while scan["children"]:
        scan = scan["children"][0]
    scan["operator_cardinality"] = scan["result_set_size"] = 0
    graph = read("duckdb", json.dumps(profile).encode())
    scans = [one.activity for one in graph.operators if one.kind is Kind.SCAN]
    assert sum(one is not None and one.memory_gbs is None for one in scans) == 1


def test_postgresql_times_are_estimates_and_workers_share_what_is_below_a_gather() -> None:
    graph = read("postgresql", document("postgresql"))
    found = by_id(graph)
    activities = [one.activity for one in graph.operators if one.activity]
    assert {one.duty.source for one in activities} == {Source.ESTIMATED}
    assert [one.name for one in graph.operators if one.blocking and one.kind is not Kind.AGGREGATE]
    shared = {one.name for one in graph.operators if one.parallel}
    assert {"Hash Join", "Seq Scan"} <= shared
    assert not found["1"].parallel
    assert "Gather Merge" not in shared


def test_each_block_of_postgresql_is_counted_once() -> None:
    def node(kind: str, ms: float, blocks: int, *below: Any) -> dict[str, Any]:
        return {
            "Node Type": kind,
            "Actual Total Time": ms,
            "Actual Loops": 2,
            "Actual Rows": 100,
            "Plan Width": 8,
            "Shared Hit Blocks": blocks,
            "Temp Read Blocks": 1,
            "Plans": list(below),
        }

    plan = node("Sort", 5.0, 12, node("Seq Scan", 4.0, 10))
    graph = read("postgresql", json.dumps([{"Plan": plan, "Execution Time": 10.0}]).encode())
    sort, scan = (one.activity for one in graph.operators)
    assert sort is not None
    assert scan is not None
    assert sort.memory_gbs is not None
    assert scan.memory_gbs is not None
    kept = 2 * 200 * 8
    assert sort.memory_gbs.value == pytest.approx((2 * 8192 + kept) / 1e9 / 0.01)
    assert scan.memory_gbs.value == pytest.approx(11 * 8192 / 1e9 / 0.01)
    assert [sort.duty.value, scan.duty.value] == pytest.approx([0.2, 0.8])
    assert carried(graph) == pytest.approx({("2", "1"): 1600.0})


def test_postgresql_needs_buffers() -> None:
    plan = (GOLDEN / "plans/postgresql-15-q18.json").read_bytes()
    with pytest.raises(ValueError, match="BUFFERS"):
        read("postgresql", plan)


def test_trino_has_cpu_times_and_sizes_of_all_pipelines() -> None:
    graph = read("trino", document("trino"))
    found = by_id(graph)
    scan = found["5"].activity
    assert scan is not None
    assert scan.duty.source is Source.MEASURED
    assert of_one_execution(graph, scan.duty.value) == pytest.approx(0.07927, rel=0.01)
    bytes_ = carried(graph)
    assert bytes_["5", "1206"] == pytest.approx(1_083_150)
    assert bytes_["856", "1142"] == pytest.approx(2288), "not what its build side takes"
    blocking = {one.id for one in graph.operators if one.blocking}
    assert blocking >= {"9", "24", "882"}
    assert "1206" not in blocking, "a partial aggregation gives early"
    assert found["858"].parallel
    assert not found["882"].parallel


def test_a_scan_of_presto_reads_at_least_what_it_gives() -> None:
    graph = read("presto", document("presto"))
    scan = by_id(graph)["6"].activity
    assert scan is not None
    assert scan.memory_gbs is not None
    read_gb = of_one_execution(graph, scan.memory_gbs.value)
    assert read_gb == pytest.approx(1.03 * (1 << 20) / 1e9), "its connector counts no input"


def test_a_query_of_trino_that_failed_is_refused() -> None:
    info = json.loads(document("trino"))
    with pytest.raises(ValueError, match="FAILED"):
        read("trino", json.dumps({**info, "state": "FAILED"}).encode())


def test_stages_of_spark_that_were_skipped_are_those_that_ran() -> None:
    graph = read("spark", document("spark"))
    bytes_ = carried(graph)
    assert bytes_ == pytest.approx(
        {
            ("0", "4"): 5_821_550,
            ("1", "4"): 821_076,
            ("4", "8"): 11_938,
            ("10", "12"): 21_008,
            ("10", "14"): 21_008,
            ("14", "17"): 10_529,
        }
    )
    found = by_id(graph)
    assert found["4"].activity is not None
    cpu_s = of_one_execution(graph, found["4"].activity.duty.value)
    assert cpu_s == pytest.approx(
        (867869399 + 1195285073 + 339007833 + 32288559 + 34149232 + 21139723) / 1e9
    )
    assert found["0"].name == "WholeStageCodegen (1), Exchange"
    assert (found["4"].blocking, found["4"].parallel) == (True, True)
    assert (found["8"].blocking, found["8"].parallel) == (False, False)


def test_the_time_of_spark_is_that_in_which_jobs_ran() -> None:
    lines = [json.loads(line) for line in document("spark").splitlines()]
    for line in lines:
        if line["Event"] == "SparkListenerJobStart":
            line["Submission Time"] = 1000 * line["Job ID"]
        if line["Event"] == "SparkListenerJobEnd":  # each with the next; a gap after the last
            line["Completion Time"] = 1000 * line["Job ID"] + 1500
    graph = read("spark", b"\n".join(json.dumps(line).encode() for line in lines))
    assert graph.seconds == pytest.approx(9.5)


def test_a_compressed_log_says_what_to_set() -> None:
    with pytest.raises(ValueError, match=r"spark\.eventLog\.compress"):
        read("spark", b"(\xb5/\xfd\x04\x00\x01")


@pytest.mark.parametrize("engine", RECORDED)
def test_no_time_and_too_deep_nesting_are_value_errors(engine: str) -> None:
    for made in (b"", b"[" * 100_000, b"{}", b"[]", b"null", b"\xff\xfe"):
        with pytest.raises(ValueError, match=r"not .+ \(.+\)"):
            read(engine, made)


def test_an_execution_that_took_no_time_has_no_rate() -> None:
    for seconds in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match="took"):
            graph_of(Node("x", Kind.OTHER, 1.0, 1), Execution("e", seconds, (Source.MEASURED, "")))


def test_two_operators_of_one_id_are_refused() -> None:
    twice = Node("x", Kind.OTHER, 1.0, 1, (Node("y", Kind.OTHER, 1.0, 1, node="7"),), node="7")
    with pytest.raises(ValueError, match="two operators"):
        graph_of(twice, Execution("e", 1.0, (Source.MEASURED, "")))


def test_names_cannot_control_a_terminal() -> None:
    (one,) = graph_of(
        Node("a\x1b[31m\nb", Kind.OTHER, 1.0, 1), Execution("e", 1.0, (Source.MEASURED, ""))
    ).operators
    assert one.name.isprintable()


@pytest.mark.parametrize(
    ("kind", "blocking", "kept"),
    [
        (Kind.JOIN, False, 7.0),
        (Kind.SORT, True, 5.0),
        (Kind.AGGREGATE, True, 3.0),
        (Kind.AGGREGATE, False, 0.0),
        (Kind.FILTER, False, 0.0),
    ],
)
def test_what_an_operator_keeps(kind: Kind, *, blocking: bool, kept: float) -> None:
    below = [Node("x", Kind.SCAN, 1.0, 1, gives_bytes=size) for size in (5.0, 7.0)]
    assert kept_bytes(kind, 3.0, below, blocking=blocking) == kept


# ---- damage -------------------------------------------------------------------------------------

_JUNK: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, -1, 0, 1e308, 10**400, math.nan, math.inf, "", "x", "9" * 5000, "1e999s", [], {}]
)


def _places(found: Any) -> list[Callable[[Any], None]]:
    """For each value inside, a function that puts another in its place."""
    places: list[Callable[[Any], None]] = []
    todo = [found]
    while todo:
        one = todo.pop()
        keys = list(one) if isinstance(one, dict) else range(len(one))
        for key in keys:
            places.append(partial(one.__setitem__, key))
            if isinstance(one[key], dict | list):
                todo.append(one[key])
    return places


def _damaged(engine: str, data: st.DataObject) -> bytes:
    """One value replaced, in the plan inside a document of Trino too."""
    lines = document(engine).splitlines() if engine == "spark" else [document(engine)]
    at = data.draw(st.integers(0, len(lines) - 1))
    found = json.loads(lines[at])
    places = _places(found)
    if engine in ("trino", "presto") and data.draw(st.booleans()):
        plan = found["outputStage"]["subStages"][0]["plan"]
        inside = json.loads(plan["jsonRepresentation"])
        places = _places(inside)
        places[data.draw(st.integers(0, len(places) - 1))](data.draw(_JUNK))
        plan["jsonRepresentation"] = json.dumps(inside)
    else:
        places[data.draw(st.integers(0, len(places) - 1))](data.draw(_JUNK))
    lines[at] = json.dumps(found).encode()
    return b"\n".join(lines)


def _is_read_or_refused(engine: str, found: bytes) -> None:
    try:
        graph = read(engine, found)
    except ValueError as fault:
        text = str(fault)
        assert text.isprintable() and len(text) < 400, text
    else:
        assert OperatorGraph.model_validate_json(graph.model_dump_json()) == graph


@pytest.mark.parametrize("engine", RECORDED)
@settings(max_examples=25)
@given(data=st.data())
def test_a_document_with_a_wrong_value_is_read_or_refused_in_one_line(
    engine: str, data: st.DataObject
) -> None:
    _is_read_or_refused(engine, _damaged(engine, data))


@pytest.mark.parametrize("engine", ["duckdb", "postgresql", "spark", "trino"])
@settings(max_examples=25)
@given(at=st.floats(0, 1), junk=st.binary(max_size=8), cut=st.booleans())
def test_a_document_with_wrong_bytes_is_read_or_refused_in_one_line(
    engine: str, at: float, junk: bytes, *, cut: bool
) -> None:
    whole = document(engine)
    place = int(at * len(whole))
    _is_read_or_refused(engine, whole[:place] + junk + (b"" if cut else whole[place + 1 :]))
