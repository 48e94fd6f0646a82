"""The SQL host and its client: values travel whole, faults are a line, lost clients end queries."""

from __future__ import annotations

import datetime
import math
import os
import socket
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.engines.api import (
    Column,
    CountingClient,
    ProfilingClient,
    ScheduledClient,
)
from atoll.engines.sql import client as sqlclient
from atoll.engines.sql.client import SocketClient, connect_all
from atoll.engines.sql.host import Backend, Server
from atoll.engines.sql.protocol import (
    decode,
    decode_result,
    decode_scheduler,
    decode_work,
    encode_error,
    encode_result,
)
from atoll.engines.sql.types import Kind as TypeKind
from atoll.engines.sql.types import kind_of, scale_of
from atoll.errors import EngineFailed, ServerGone
from atoll.schema.operators import Kind, Operator, QueryProfile
from atoll.schema.results import EngineWork, SchedulerState
from tests.parts.bench import scheduler_state
from tests.parts.faults import fails

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "bigint": st.integers(-(2**63), 2**63 - 1),
    "hugeint": st.integers(-(2**127), 2**127),
    "decimal(38,4)": st.decimals(allow_nan=False, allow_infinity=False, places=4),
    "double": st.floats(),
    "date": st.dates(),
    "varchar": st.text(),
    "boolean": st.booleans(),
}


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[Column], list[tuple[Any, ...]]]:
    types = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=5))
    row = st.tuples(*(st.none() | VALUES[type_] for type_ in types))
    return [Column(f"c{i}", type_) for i, type_ in enumerate(types)], draw(st.lists(row))


@given(tables())
def test_a_result_arrives_whole(table: tuple[list[Column], list[tuple[Any, ...]]]) -> None:
    columns, rows = table
    line = encode_result(columns, rows, began_s=7.5, seconds=0.25, ticket="atoll-0-1")
    assert line.count(b"\n") == 1
    result = decode_result(decode(line))
    assert list(result.columns) == columns
    assert (result.began_s, result.engine_seconds, result.ticket) == (7.5, 0.25, "atoll-0-1")
    for got, sent in zip(result.rows, rows, strict=True):
        for left, right in zip(got, sent, strict=True):
            assert type(left) is type(right)
            assert left == right or (math.isnan(left) and math.isnan(right))


@given(st.text(max_size=2000))
def test_an_error_is_one_line(text: str) -> None:
    with pytest.raises(EngineFailed) as caught:
        decode(encode_error(ValueError(text)))
    assert "\n" not in str(caught.value)
    assert 0 < len(str(caught.value)) <= 500


@given(st.binary())
def test_a_malformed_reply_is_an_engine_failure(line: bytes) -> None:
    with pytest.raises(EngineFailed):
        decode_result(decode(line))


def test_a_result_with_too_few_rows_is_an_engine_failure() -> None:
    columns = [Column("n", "bigint")]
    line = encode_result(columns, [(7,)], began_s=7.5, seconds=0.25, ticket="t")
    with fails(EngineFailed, found=1, described="2 rows"):
        decode_result(decode(line) | {"rows": 2})


@pytest.mark.parametrize(
    ("name", "kind", "scale"),
    [
        ("INTEGER", TypeKind.WHOLE, None),
        ("hugeint", TypeKind.WHOLE, None),
        ("uint", TypeKind.WHOLE, None),
        ("interval", TypeKind.TEXT, None),
        ("decimal(15,2)", TypeKind.DECIMAL, 2),
        ("DECIMAL(38, 0)", TypeKind.DECIMAL, 0),
        ("double", TypeKind.FLOAT, None),
        ("date", TypeKind.DATE, None),
        ("boolean", TypeKind.TRUTH, None),
        ("array<int>", TypeKind.TEXT, None),
        ("numeric[]", TypeKind.TEXT, None),
        ("int[]", TypeKind.TEXT, None),
    ],
)
def test_kinds_of_types(name: str, kind: TypeKind, scale: int | None) -> None:
    assert (kind_of(name), scale_of(name)) == (kind, scale)


WORK = EngineWork(tasks=4, run_s=2, gc_s=0.5, shuffle_bytes=7, spilled_bytes=0, peak_bytes=9)


class SlowBackend:
    """Answers by what the SQL says: a number, a fault, or nothing until it is cancelled."""

    def __init__(self) -> None:
        self.cancelled: list[str] = []
        self.started = threading.Event()
        self.ended = threading.Event()
        self.lost = False

    def run(self, sql: str, ticket: str) -> tuple[list[Column], list[tuple[Any, ...]]]:
        if sql == "wait":
            self.started.set()
            while ticket not in self.cancelled:
                time.sleep(0.01)
            self.ended.set()
            raise RuntimeError("cancelled")
        if sql == "fail":
            raise RuntimeError("no such table\nat line 1")
        return [Column("n", "bigint"), Column("d", "date")], [(7, datetime.date(1995, 3, 15))]

    def cancel(self, ticket: str) -> None:
        self.cancelled.append(ticket)

    def check(self) -> None:
        if self.lost:
            raise EngineFailed("1 of 2 executors were lost")

    def instances(self) -> int:
        return 3

    def close(self) -> None: ...


class ScheduledBackend(SlowBackend):
    def scheduler(self) -> SchedulerState:
        return scheduler_state((0.0, 1), (2.5, 2))


PROFILE = QueryProfile(
    operators=(
        Operator(node="0", operator="SCAN", kind=Kind.SCAN, tables=("t",), own_s=0.5, rows=7),
    )
)


class ProfilingBackend(SlowBackend):
    def profile(self, sql: str, ticket: str) -> QueryProfile:
        if sql != "select":
            raise EngineFailed("no such table")
        return PROFILE


class CountingBackend(SlowBackend):
    def __init__(self) -> None:
        super().__init__()
        self.ran: list[str] = []
        self.finished: list[str] = []
        self.around_s = 0.0

    def run(self, sql: str, ticket: str) -> tuple[list[Column], list[tuple[Any, ...]]]:
        self.ran.append(ticket)
        return super().run(sql, ticket)

    @contextmanager
    def around(self, ticket: str) -> Iterator[None]:
        time.sleep(self.around_s)
        yield
        time.sleep(self.around_s)
        self.finished.append(ticket)

    def work(self) -> dict[str, EngineWork]:
        return dict.fromkeys(self.ran, WORK)


@pytest.fixture
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Backend], str]]:
    servers: list[Server] = []
    folder = tmp_path_factory.mktemp("s")

    def start(backend: Backend) -> str:
        path = str(folder / f"{len(servers)}.sock")
        servers.append(Server(backend, path))
        servers[-1].start()
        return path

    yield start
    for server in servers:
        server.stop()


def test_a_query_and_its_faults(serve: Callable[[Backend], str]) -> None:
    backend = SlowBackend()
    path = serve(backend)
    (client,) = connect_all([path], timeout_s=60)
    assert client.instances(timeout_s=60) == 3
    result = client.execute("select", timeout_s=60)
    assert result.rows == [(7, datetime.date(1995, 3, 15))]
    assert result.engine_seconds >= 0
    with fails(EngineFailed, theirs="no such table at line 1"):
        client.execute("fail", timeout_s=60)
    assert client.execute("select", timeout_s=60).rows, (
        "a refused query must not end the connection"
    )
    backend.lost = True
    with fails(EngineFailed, theirs="1 of 2 executors were lost"):
        client.execute("select", timeout_s=60)
    client.close()


def test_a_query_has_the_time_of_its_own_process(serve: Callable[[Backend], str]) -> None:
    """What the backend prepares and finishes, encoding, and the way of the rows are not in it."""
    backend = CountingBackend()
    backend.around_s = 0.1
    client = SocketClient(serve(backend), timeout_s=60)
    asked = time.monotonic()
    result = client.execute("select", timeout_s=60)
    answered = time.monotonic()
    assert result.began_s is not None
    ended = result.began_s + result.engine_seconds
    assert asked + backend.around_s <= result.began_s <= ended <= answered - backend.around_s


def test_a_scheduler_reports_its_state(serve: Callable[[Backend], str]) -> None:
    client = SocketClient(serve(ScheduledBackend()), timeout_s=60)
    assert isinstance(client, ScheduledClient)
    assert client.scheduler(timeout_s=60) == scheduler_state((0.0, 1), (2.5, 2))
    plain = SocketClient(serve(SlowBackend()), timeout_s=60)
    with fails(EngineFailed):
        plain.scheduler(timeout_s=60)
    assert plain.execute("select", timeout_s=60).rows


def test_the_work_of_queries_is_reported_by_ticket(serve: Callable[[Backend], str]) -> None:
    path = serve(CountingBackend())
    clients = [SocketClient(path, timeout_s=60) for _ in range(2)]
    tickets = [client.execute("select", timeout_s=60).ticket for client in clients * 2]
    assert len(set(tickets)) == 4, "no two queries of a server have one"
    assert clients[1].work(timeout_s=60) == dict.fromkeys(tickets, WORK)
    silent = SocketClient(serve(SlowBackend()), timeout_s=60)
    assert isinstance(silent, CountingClient)
    assert silent.work(timeout_s=60) == {}, "an engine that does not count is no fault"


def test_an_engine_finishes_what_ran(serve: Callable[[Backend], str]) -> None:
    backend = CountingBackend()
    client = SocketClient(serve(backend), timeout_s=60)
    client.execute("select", timeout_s=60)
    with pytest.raises(EngineFailed):
        client.execute("fail", timeout_s=60)
    assert backend.finished == backend.ran[:1]


def test_a_profile_arrives_whole(serve: Callable[[Backend], str]) -> None:
    client = SocketClient(serve(ProfilingBackend()), timeout_s=60)
    assert isinstance(client, ProfilingClient)
    assert client.profile("select", timeout_s=60) == PROFILE
    with pytest.raises(EngineFailed, match="no such table"):
        client.profile("select 1 from nothing", timeout_s=60)
    assert client.profile("select", timeout_s=60), "the connection stays"
    silent = SocketClient(serve(SlowBackend()), timeout_s=60)
    assert silent.profile("select", timeout_s=60) is None


@pytest.mark.parametrize("message", [{"ok": True}, {"work": 3}, {"work": {"a": {"tasks": 0}}}])
def test_unreadable_query_statistics_are_an_engine_failure(message: dict[str, Any]) -> None:
    with pytest.raises(EngineFailed, match="query statistics") as caught:
        decode_work(message)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 300


@pytest.mark.parametrize("message", [{"ok": True}, {"scheduler": 3}, {"scheduler": {"policy": 1}}])
def test_an_unreadable_scheduler_state_is_an_engine_failure(message: dict[str, Any]) -> None:
    with pytest.raises(EngineFailed, match="scheduler state") as caught:
        decode_scheduler(message)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 300


def test_only_the_owner_may_use_the_socket(serve: Callable[[Backend], str]) -> None:
    assert stat.S_IMODE(os.stat(serve(SlowBackend())).st_mode) == 0o600


def test_a_query_past_its_limit_is_cancelled(serve: Callable[[Backend], str]) -> None:
    backend = SlowBackend()
    path = serve(backend)
    client = SocketClient(path, timeout_s=60)
    with fails(EngineFailed, limit="0.2 s"):
        client.execute("wait", timeout_s=0.2)
    assert backend.ended.wait(30), "the query goes on although its client gave up"
    with fails(EngineFailed, where=path):
        client.execute("select", timeout_s=60)


def test_closing_ends_the_query_of_another_thread(serve: Callable[[Backend], str]) -> None:
    backend = SlowBackend()
    path = serve(backend)
    client = SocketClient(path, timeout_s=60)
    faults: list[EngineFailed] = []

    def ask() -> None:
        try:
            client.execute("wait", timeout_s=600)
        except EngineFailed as fault:
            faults.append(fault)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    assert backend.started.wait(30)
    client.close()
    thread.join(30)
    assert backend.ended.wait(30), "the query goes on although its client was closed"
    with fails(EngineFailed, where=path):
        raise faults[0]


def test_an_answer_that_is_too_long_does_not_mean_a_lost_host(
    serve: Callable[[Backend], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlclient, "MAX_LINE_BYTES", 10)
    path = serve(SlowBackend())
    client = SocketClient(path, timeout_s=60)
    with fails(EngineFailed, where=path, most="0 MiB"):
        client.execute("select", timeout_s=60)


def test_a_client_that_hangs_up_has_its_query_cancelled(serve: Callable[[Backend], str]) -> None:
    backend = SlowBackend()
    path = serve(backend)
    raw = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    raw.connect(path)
    raw.sendall(b'{"do": "execute", "sql": "wait"}\n')
    assert backend.started.wait(30)
    other = SocketClient(path, timeout_s=60)
    assert other.execute("select", timeout_s=60).rows, "one client must not keep another waiting"
    assert not backend.ended.is_set()
    raw.close()
    assert backend.ended.wait(30)
    other.close()


@pytest.mark.parametrize("line", [b"x\n", b"[]\n", b'{"do": "frob"}\n', b'{"do": "execute"}\n'])
def test_a_malformed_request_is_answered_with_an_error(
    serve: Callable[[Backend], str], line: bytes
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as raw:
        raw.connect(serve(SlowBackend()))
        raw.sendall(line)
        with pytest.raises(EngineFailed, match="request"):
            decode(raw.makefile("rb").readline())


def test_a_host_that_is_gone_is_an_engine_failure(tmp_path: Path) -> None:
    path = str(tmp_path / "x.sock")
    with fails(EngineFailed, path=path, why="No such file or directory"):
        SocketClient(path, timeout_s=1)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(path)
        listener.listen()
        client = SocketClient(path, timeout_s=60)
        accepted, _ = listener.accept()
        accepted.close()
        with pytest.raises(ServerGone) as caught:
            client.execute("select 1", timeout_s=60)
        assert path in str(caught.value)  # why depends on the moment
