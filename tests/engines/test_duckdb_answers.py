"""DuckDB through its SQL host: all answers of TPC-H, by every server of a deployment."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from atoll.errors import EngineFailed
from atoll.supervise.launch import Running
from tests.parts.answers import TPCH, attach, data_at, deployed, difference


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with deployed("duckdb", instances=2) as up:
        yield up


@pytest.mark.parametrize(
    "scale_factor", [0.01, 0.1, pytest.param(1.0, marks=pytest.mark.long), 0.02]
)
def test_all_answers(running: Running, scale_factor: float) -> None:
    """0.02 has no published answers: there DuckDB must agree with itself, ties included."""
    data = data_at(scale_factor)
    for client in running.clients:
        attach(client, "duckdb", data)
        wrong = {
            query: said
            for query in TPCH.query_names
            if (said := difference(client, "duckdb", query, data))
        }
        assert wrong == {}


@pytest.mark.parametrize("scale_factor", [0.01, 0.1])
def test_no_limit_cuts_through_equal_rows_where_answers_are_published(scale_factor: float) -> None:
    """What `Tpch.expected` rests on when it takes a published answer as it is."""
    from atoll.suites.answers import by_reference

    data = data_at(scale_factor)
    for query, sql in TPCH.queries("duckdb").items():
        assert not by_reference(sql, data).open_end, query


def test_threads_and_pinning_are_as_planned(running: Running) -> None:
    slots = running.deployment.plan.slots
    for client, slot in zip(running.clients, slots, strict=True):
        (row,) = client.execute(
            "select current_setting('threads'), current_setting('pin_threads')", timeout_s=60
        ).rows
        assert row == (slot.threads, "off")


def test_a_query_that_takes_too_long_is_cancelled_and_the_next_one_runs(running: Running) -> None:
    from atoll.engines.sql.client import SocketClient

    (path, *_) = running.deployment.endpoints
    client = SocketClient(path, timeout_s=60)
    with pytest.raises(EngineFailed, match="cancelled"):
        client.execute(
            "select count(*) from range(1000000) a, range(1000000) b where a.range < b.range",
            timeout_s=0.5,
        )
    again = SocketClient(path, timeout_s=60)
    assert again.execute("select 1", timeout_s=60).rows == [(1,)]
    again.close()


def test_an_error_is_one_line(running: Running) -> None:
    with pytest.raises(EngineFailed, match="frob") as caught:
        running.clients[0].execute("select frob", timeout_s=60)
    assert "\n" not in str(caught.value)


def test_sockets_are_private(running: Running) -> None:
    for path in running.deployment.endpoints:
        assert os.stat(path).st_mode & 0o077 == 0
        assert os.stat(os.path.dirname(path)).st_mode & 0o077 == 0
