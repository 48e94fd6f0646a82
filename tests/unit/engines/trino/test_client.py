"""The client of Trino and Presto before a scripted coordinator."""

from __future__ import annotations

import datetime
import threading
import time
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest

from atoll.engines.trino import client as trino_client
from atoll.engines.trino.client import TrinoClient, connect_all, parse_url, reach
from atoll.errors import EngineFailed, ServerGone
from tests.parts.faults import fails
from tests.parts.trino_coordinator import coordinator, page

GONE, CANCELLED = (410, b"gone"), (204, b"")


@pytest.mark.parametrize("header", ["Trino", "Presto"])
def test_requests_carry_the_headers_of_the_engine(header: str) -> None:
    answer = page(columns=[{"name": "n", "type": "decimal(3, 2)"}], data=[["1.50"]])
    with coordinator(answer) as server:
        client = TrinoClient(parse_url(f"{server.url}/cat/sch"), header=header)
        result = client.execute("select 1.50", timeout_s=30)
        client.close()
        ((_, heard),) = server.asked
    assert result.rows == [(Decimal("1.50"),)]
    assert (heard[f"X-{header}-Catalog"], heard[f"X-{header}-Schema"]) == ("cat", "sch")
    other = {"Trino": "Presto", "Presto": "Trino"}[header]
    assert not [name for name in heard if name.startswith(f"X-{other}-")]


COLUMNS = {
    "k": "bigint",
    "price": "decimal(3,2)",
    "day": "date",
    "f": "double",
    "tags": "array(int)",
}


@pytest.mark.parametrize(
    ("data", "rows"),
    [
        ([], []),
        (
            [
                [1, "1.50", "1998-09-02", 0.5, [1, 2]],
                [2, "2.00", "1998-09-03", 1, None],
                [None, None, None, None, "x"],
            ],
            [
                (1, Decimal("1.50"), datetime.date(1998, 9, 2), 0.5, "[1, 2]"),
                (2, Decimal("2.00"), datetime.date(1998, 9, 3), 1.0, None),
                (None, None, None, None, "x"),
            ],
        ),
        ([[1, None, None, "NaN", "x"]], [(1, None, None, "nan", "x")]),
    ],
)
def test_values_become_ours(data: list[list[Any]], rows: list[tuple[Any, ...]]) -> None:
    described = [{"name": name, "type": kind} for name, kind in COLUMNS.items()]
    with coordinator(page(columns=described, data=data)) as server:
        client = TrinoClient(parse_url(server.url))
        found = client.execute("select 1", timeout_s=30).rows
        client.close()
    assert [tuple("nan" if value != value else value for value in row) for row in found] == rows


def test_a_server_that_hangs_is_left_after_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second request begins 0.2 s before the limit, however slow the machine is."""
    # Read once for the limit, and twice by each request.
    readings = iter([0.0] * 3 + [59.8] * 2)
    clock = SimpleNamespace(monotonic=lambda: next(readings, 60.0), perf_counter=time.perf_counter)
    monkeypatch.setattr(trino_client, "time", clock)
    with coordinator() as server:
        client = TrinoClient(parse_url(server.url))
        server.answers += [page(server.url), CANCELLED]
        server.silent = ("GET",)
        with fails(EngineFailed, limit="60 s"):
            client.execute("select 1", timeout_s=60)
        assert server.heard(3) == ["DELETE", "GET", "POST"]
        with fails(EngineFailed, where=server.url):
            client.execute("select 1", timeout_s=60)


def test_a_query_without_an_address_yet_is_cancelled_when_it_has_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`close` of another thread comes while the query is on its way to the server."""
    monkeypatch.setattr(trino_client, "_CANCEL_LIMIT_S", 60.0)  # a slow machine's
    is_out, is_closed = threading.Event(), threading.Event()
    faults: list[EngineFailed] = []

    def late() -> Any:
        is_out.set()
        assert is_closed.wait(120)  # `close` may take all of its limit
        return page(server.url)

    def ask() -> None:
        try:
            client.execute("select 1", timeout_s=600)
        except EngineFailed as fault:
            faults.append(fault)

    with coordinator(late, GONE, CANCELLED) as server:
        client = TrinoClient(parse_url(server.url))
        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        assert is_out.wait(120)
        client.close()
        is_closed.set()
        thread.join(120)
        assert server.heard(3) == ["DELETE", "GET", "POST"]
    with fails(EngineFailed, where=server.url):
        raise faults[0]


@pytest.mark.parametrize(
    "answer",
    [
        b"<html>",
        b"{}",
        b"",
        page(data=[["x"]], columns=[{}]),
        page(data=[[1], [1, 2]], columns=[{"name": "n", "type": "integer"}]),
        page(data=[["x"]], columns=[{"name": "d", "type": "date"}]),
        page(data=[[10000]], columns=[{"name": "d", "type": "date"}]),
    ],
)
def test_what_is_no_trino_is_told_in_one_line(answer: Any) -> None:
    with coordinator(answer) as server:
        with pytest.raises(EngineFailed) as caught:
            reach(server.url, timeout_s=60)
        assert server.url in str(caught.value) and "\n" not in str(caught.value)


def test_a_refused_login_is_told_in_the_servers_words() -> None:
    refusal = (401, b"Access Denied: it's wrong")
    theirs = "error 401: Access Denied: it's wrong"
    with coordinator(refusal) as server, fails(EngineFailed, where=server.url, theirs=theirs):
        reach(server.url, timeout_s=60)


def test_the_coordinator_alone_gives_the_first_answer() -> None:
    """A worker may be gone without the coordinator's knowledge, and then it answers nothing."""
    answer = page(columns=[{"name": "http_uri", "type": "varchar"}], data=[["http://w:1"]])
    with coordinator(answer) as server:
        reach(server.url, timeout_s=60).close()
        (statement,) = server.statements
        assert "system.runtime.nodes" in statement


def test_a_refused_query_keeps_the_connection() -> None:
    refusal = page(error={"message": "line 1:8: no\nmore", "errorType": "USER_ERROR"})
    answer = page(columns=[{"name": "n", "type": "integer"}], data=[[1]])
    with coordinator(refusal, answer) as server:
        client = TrinoClient(parse_url(server.url))
        with fails(EngineFailed, theirs="line 1:8: no"):
            client.execute("select frob", timeout_s=30)
        assert client.execute("select 1", timeout_s=30).rows == [(1,)]
        client.close()


def test_a_server_that_is_starting_is_not_asked() -> None:
    with coordinator({"starting": True}) as server:
        with fails(EngineFailed, place=server.url):
            connect_all([server.url], timeout_s=30)
        assert [command for command, _ in server.asked] == ["GET"]


def test_a_server_that_goes_after_its_greeting_is_gone() -> None:
    """Also before it has answered a query: such are a bench's clients when it begins to warm up."""
    with coordinator({"starting": False}) as server:
        (client,) = connect_all([server.url], timeout_s=60)
    with fails(ServerGone, place=server.url, why="Connection refused"):
        client.execute("select 1", timeout_s=60)
