"""What a coordinator tells of queries: recorded answers of Trino and Presto, and damaged ones."""

from __future__ import annotations

import contextlib
import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.engines.trino.client import TrinoClient, parse_url
from atoll.engines.trino.query_info import operators_of, quantity, works_of
from atoll.errors import EngineFailed
from atoll.schema.operators import Kind
from atoll.schema.results import EngineWork
from tests.parts.faults import fails
from tests.parts.paths import GOLDEN
from tests.parts.trino_coordinator import coordinator, page

Q18 = "20261125_234402_00054_49i89"


def recorded(name: str) -> Any:
    return json.loads((GOLDEN / "plans" / name).read_text())


def test_the_counts_of_a_query_are_the_coordinators() -> None:
    assert works_of(recorded("trino-476-list.json"))[Q18] == EngineWork(
        run_s=1.66,
        shuffle_bytes=346859,
        spilled_bytes=0,
        read_bytes=4870054,
        peak_bytes=1211688,
        peak_source="peakTotalMemoryReservation",
    )


def test_operators_come_from_all_stages_with_what_is_read_below_them() -> None:
    found = operators_of(recorded("trino-476-q18.json"))
    by_node = {one.node: one for one in found}
    assert len(by_node) == len(found) == 31
    join = by_node["856"]
    assert (join.kind, join.join, join.distribution) == (Kind.JOIN, "inner", "broadcast")
    assert join.tables == ("customer", "lineitem", "orders")
    assert by_node["1285"].distribution == "partitioned"
    assert (by_node["9"].kind, by_node["9"].tasks) == (Kind.AGGREGATE, 2)
    scan = by_node["5"]
    assert (scan.operator, scan.tables, scan.rows) == ("TableScan", ("lineitem",), 60175)
    assert scan.own_s == pytest.approx(0.14156, abs=1e-5)


def test_presto_counts_less() -> None:
    found = works_of(recorded("presto-0.287-list.json"))
    assert found["20261126_031433_00045_8x3f6"] == EngineWork(
        run_s=10.23, peak_bytes=1866465, peak_source="peakTotalMemoryReservation"
    )


def test_presto_writes_its_plans_otherwise() -> None:
    found = operators_of(recorded("presto-0.287-q18.json"))
    by_node = {one.node: one for one in found}
    assert len(by_node) == len(found) == 32
    semi, join = by_node["409"], by_node["980"]
    assert (semi.kind, semi.join, semi.distribution) == (Kind.JOIN, "semi", "broadcast")
    assert (join.kind, join.join, join.distribution) == (Kind.JOIN, "inner", "broadcast")
    assert join.tables == ("customer", "lineitem", "orders")
    assert (by_node["1235"].kind, by_node["1235"].distribution) == (Kind.EXCHANGE, "partitioned")
    assert (by_node["1191"].kind, by_node["1191"].distribution) == (Kind.EXCHANGE, "partitioned")
    final = by_node["9"]
    assert (final.operator, final.kind, final.tasks) == ("Aggregate(FINAL)", Kind.AGGREGATE, 2)
    scan = by_node["6"]
    assert (scan.operator, scan.tables, scan.rows) == ("TableScan", ("lineitem",), 60175)
    assert scan.own_s == pytest.approx(0.30116, abs=1e-5)


@pytest.mark.parametrize("plan", ["trino-476-q18.json", "presto-0.287-q18.json"])
def test_no_time_of_the_engine_is_lost(plan: str) -> None:
    given_ = recorded(plan)
    runs = given_["queryStats"]["operatorSummaries"]
    # The last stage's output goes to the client, so it is no operator's.
    runs = [r for r in runs if (r["stageId"], r["operatorType"]) != (0, "TaskOutputOperator")]
    parts = ("addInputWall", "getOutputWall", "finishWall")
    whole = sum(quantity(run[part]) for run in runs for part in parts)
    assert sum(one.own_s or 0 for one in operators_of(given_)) == pytest.approx(whole)


@pytest.mark.parametrize(
    ("text", "value"),
    [("0B", 0), ("4.5kB", 4608), ("1MB", 1 << 20), ("84.41us", 84.41e-6), ("1.50m", 90)],
)
def test_quantities(text: str, value: float) -> None:
    assert quantity(text) == pytest.approx(value)


@given(st.text())
def test_no_other_text_is_a_quantity(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert quantity(text) >= 0


@pytest.mark.parametrize(
    "damage",
    [{"name": 7}, {"identifier": 7, "name": "Scan"}, {"details": 1}, {"remoteSources": ["9"]}],
)
def test_a_damaged_plan_of_presto_is_a_value_error(damage: dict[str, Any]) -> None:
    info = recorded("presto-0.287-q18.json")
    plan = info["outputStage"]["plan"]
    plan["jsonRepresentation"] = json.dumps(json.loads(plan["jsonRepresentation"]) | damage)
    with pytest.raises(ValueError, match="a part of it"):
        operators_of(info)


@pytest.mark.parametrize("answer", [None, 7, {}, [{}], [{"queryId": "a", "queryStats": {}}]])
def test_an_answer_of_another_shape_is_a_value_error(answer: Any) -> None:
    if answer != {}:  # no query
        with pytest.raises(ValueError, match="a part of it"):
            works_of(answer)
    with pytest.raises(ValueError, match="a part of it"):
        operators_of(answer)


def test_a_profile_waits_for_the_last_tasks() -> None:
    early = {"finalQueryInfo": False}
    with coordinator(page(columns=[], data=[]), early, recorded("trino-476-q18.json")) as server:
        client = TrinoClient(parse_url(server.url))
        found = client.profile("select 1", timeout_s=30)
        client.close()
    assert len(found.operators) == 31


def test_a_query_is_counted_once() -> None:
    listed = recorded("trino-476-list.json")
    with coordinator(listed, {"finalQueryInfo": True}, listed, 7) as server:
        client = TrinoClient(parse_url(server.url))
        assert set(client.work(timeout_s=5)) > {Q18}
        assert client.work(timeout_s=5) == {}
        with fails(EngineFailed, where=server.url):
            client.work(timeout_s=5)
        client.close()


def test_counts_wait_for_the_last_tasks_of_the_last_queries() -> None:
    early, late = ({"finalQueryInfo": final} for final in (False, True))
    listed = recorded("trino-476-list.json")
    again = copy.deepcopy(listed)
    again[-1]["queryStats"]["physicalInputDataSize"] = "7B"
    with coordinator(listed, early, late, late, again) as server:
        client = TrinoClient(parse_url(server.url))
        found = client.work(timeout_s=30)
        client.close()
    assert found[again[-1]["queryId"]].read_bytes == 7
    assert not server.answers, "the query before the last was final at once"
