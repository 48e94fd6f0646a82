"""Trino through real deployments: answers under two policies, placement, limits, faults.

It is started twice for this file. Where it is not installed all of it is skipped, with the reason.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from decimal import Decimal

import pytest

from atoll.engines.trino.client import TrinoClient, parse_url
from atoll.errors import EngineFailed
from atoll.schema.plan import Policy
from atoll.supervise.launch import Running
from tests.parts.answers import SOME_OF_TPCH, TPCH
from tests.parts.deployment import until
from tests.parts.trino_servers import (
    listening_elsewhere,
    one_past_its_limit_fails,
    said_of_a_killed_worker,
    secrets_told,
    up,
    wrong_answers,
)

pytestmark = pytest.mark.installed


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with up("trino", Policy.WIC, workers=2) as running:
        yield running


def test_the_failure_detector_trusts_all_workers(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And says so, as Atoll's own tree lets it: else every start would wait 11 s."""
    monkeypatch.setattr("atoll.engines.trino.client._DETECTOR_LIMIT_S", 60.0)
    (client,) = running.clients
    assert isinstance(client, TrinoClient)

    def counted() -> tuple[int, float]:
        return client.instances(timeout_s=60), client.settles_s

    until(lambda: counted() == (2, 0.0), counted)


@pytest.mark.parametrize(
    "queries",
    [
        pytest.param(SOME_OF_TPCH, id="some"),
        pytest.param(TPCH.query_names, id="all", marks=pytest.mark.long),
    ],
)
def test_answers(running: Running, queries: Sequence[str]) -> None:
    assert wrong_answers(running.clients[0], "trino", queries) == {}


def test_every_thread_and_page_is_where_the_plan_has_it(running: Running) -> None:
    assert running.verify().drift == []


def test_both_workers_read_and_the_coordinator_does_not(running: Running) -> None:
    (client,) = running.clients
    client.execute(TPCH.queries("trino")["q1"], timeout_s=120)
    worked = client.execute(
        "select node_id from system.runtime.tasks where splits > 0 and query_id = ("
        "  select max(query_id) from system.runtime.queries"
        "  where query like '%l_returnflag%' and query not like '%query_id%') "
        "group by 1 order by 1",
        timeout_s=60,
    ).rows
    assert {("worker-0",), ("worker-1",)} <= set(worked)


def test_the_generators_are_catalogs(running: Running) -> None:
    (client,) = running.clients
    assert client.execute("select count(*) from tpch.tiny.nation", timeout_s=60).rows == [(25,)]
    counted = client.execute("select count(*) > 0 from tpcds.tiny.store", timeout_s=60)
    assert counted.rows == [(True,)]


@pytest.mark.parametrize(
    ("sql", "type_name", "value"),
    [
        ("cast(1 as bigint)", "bigint", 1),
        ("decimal '1.50'", "decimal(3, 2)", Decimal("1.50")),
        ("date '2020-01-02'", "date", datetime.date(2020, 1, 2)),
        ("1e0", "double", 1.0),
        ("true", "boolean", True),
        ("'ä'", "varchar(1)", "ä"),
        ("cast(null as varchar)", "varchar", None),
        ("timestamp '2020-01-02 03:04:05'", "timestamp(0)", "2020-01-02 03:04:05"),
        ("array[1, 2]", "array(integer)", "[1, 2]"),
    ],
)
def test_values_keep_their_types(running: Running, sql: str, type_name: str, value: object) -> None:
    answer = running.clients[0].execute(f"select {sql}", timeout_s=60)
    assert answer.rows == [(value,)]
    assert type(answer.rows[0][0]) is type(value)
    assert [column.type for column in answer.columns] == [type_name]


def test_an_error_is_one_line(running: Running) -> None:
    with pytest.raises(EngineFailed, match="frob") as caught:
        running.clients[0].execute("select\nfrob", timeout_s=60)
    assert "\n" not in str(caught.value)


def test_a_query_that_takes_too_long_is_cancelled(running: Running) -> None:
    one_past_its_limit_fails(running, "trino")


def test_nobody_else_is_answered(running: Running) -> None:
    place = running.deployment.endpoints[0].partition("?")[0]
    stranger = TrinoClient(parse_url(place))
    for sql in ("select 1", "select * from system.runtime.queries"):
        with pytest.raises(EngineFailed, match="Access Denied"):
            stranger.execute(sql, timeout_s=60)


def test_it_listens_on_loopback_only_and_tells_no_secret(running: Running) -> None:
    assert listening_elsewhere(running) == []
    assert secrets_told(running) == []


def test_a_killed_worker_fails_the_deployment(running: Running) -> None:
    """The last test of this deployment."""
    assert "worker-1 died (killed by SIGKILL)" in said_of_a_killed_worker(running)


@pytest.mark.long
def test_answers_under_another_policy() -> None:
    with up("trino", Policy.WIN, workers=1) as running:
        assert wrong_answers(running.clients[0], "trino", ("q1", "q6", "q18")) == {}
        assert running.verify().drift == []
