"""The limit around a query, and what a client raises for a query without a result."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from atoll.engines.sql.endings import OverTime, QueryEnd, TimeLimit
from atoll.errors import EngineFailed, ServerGone
from tests.parts.faults import fails

Line = tuple[socket.socket, socket.socket]


@pytest.fixture
def line() -> Iterator[Line]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def wait(ours: socket.socket, fault: BaseException) -> None:
    assert ours.recv(1) == b""
    raise fault


def test_a_wait_for_a_silent_server_ends(line: Line) -> None:
    ours, _ = line
    cancelled: list[bool] = []
    with (
        fails(OverTime, limit="0.05 s"),
        TimeLimit(ours.fileno(), 0.05, lambda: cancelled.append(True)),
    ):
        wait(ours, ConnectionError("it hung up"))
    assert cancelled == [True]
    ours.getpeername()  # still open: its owner closes it


def test_an_answer_of_a_cancelled_query_does_not_count(line: Line) -> None:
    ours, theirs = line
    with (
        pytest.raises(OverTime),
        TimeLimit(ours.fileno(), 0.05, lambda: theirs.sendall(b"half")),
    ):
        answer = ours.recv(4)
    assert answer == b"half"


def test_a_query_that_cannot_be_cancelled_loses_its_connection(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = line
    reported = threading.Event()
    monkeypatch.setattr(threading, "excepthook", lambda _: reported.set())

    def cancel() -> None:
        raise RuntimeError("no thread for it")

    with pytest.raises(OverTime), TimeLimit(ours.fileno(), 0.05, cancel):
        wait(ours, ConnectionError("it hung up"))
    assert theirs.recv(1) == b""
    assert reported.wait(60)


def test_a_reused_descriptor_keeps_its_own_connection(line: Line) -> None:
    """Another thread closes the connection during the cancel, and its number is reused."""
    ours, theirs = line
    others = socket.socketpair()

    def cancel() -> None:
        os.dup2(others[0].fileno(), ours.fileno())

    with others[0], others[1]:
        # By the end of that limit the wait has begun, on the connection of before.
        with pytest.raises(OverTime), TimeLimit(ours.fileno(), 1, cancel):
            answer = ours.recv(1)
        assert answer == b""
        others[1].sendall(b"x")
        assert others[0].recv(1) == b"x"
        assert theirs.recv(1) == b""


def test_an_answer_after_the_limit_does_not_count_even_if_its_timer_is_late(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    ours, _ = line
    cancelled: list[bool] = []
    with (
        fails(OverTime, limit="3600 s"),
        TimeLimit(ours.fileno(), 3600, lambda: cancelled.append(True)),
    ):
        now += 3600
    assert cancelled == []


def test_within_its_limit_nothing_happens(line: Line) -> None:
    ours, theirs = line
    limit = TimeLimit(ours.fileno(), 3600, lambda: theirs.sendall(b"cancelled"))
    with limit:
        theirs.sendall(b"x")
        assert ours.recv(9) == b"x"
    with pytest.raises(ValueError, match="a fault of the query"), TimeLimit(0, 3600, theirs.close):
        raise ValueError("a fault of the query")
    theirs.sendall(b"y")
    assert ours.recv(9) == b"y"


def test_an_interruption_goes_through(line: Line) -> None:
    ours, _ = line
    with pytest.raises(KeyboardInterrupt), TimeLimit(ours.fileno(), 0.05, lambda: None):
        wait(ours, KeyboardInterrupt())


class Client(QueryEnd):
    server = "server"
    where = "/run/x"

    def __init__(self) -> None:
        self.calls: list[str] = []

    @property
    def is_closed(self) -> bool:
        return "close" in self.calls

    def cancel(self) -> None:
        self.calls.append("cancel")

    def close(self) -> None:
        self.calls.append("close")

    def explain(self, fault: Exception) -> EngineFailed | None:
        if isinstance(fault, ConnectionError):
            return self.gone(str(fault))
        return EngineFailed(str(fault)) if isinstance(fault, ValueError) else None


def query(client: Client, fault: BaseException) -> None:
    with client.asking(2):
        raise fault


def test_a_refused_query_leaves_the_client_open() -> None:
    client = Client()
    with fails(EngineFailed, theirs="no such table") as caught:
        query(client, ValueError("no such table"))
    assert isinstance(caught.value.__cause__, ValueError)
    assert client.calls == []


def test_a_late_query_and_a_lost_server_close_the_client() -> None:
    late, gone = Client(), Client()
    with fails(EngineFailed, limit="2 s"):
        query(late, OverTime())
    with fails(ServerGone, place="/run/x", why="it hung up"):
        query(gone, ConnectionError("it hung up"))
    assert late.calls == gone.calls == ["close"]


@pytest.mark.parametrize("fault", [KeyboardInterrupt(), KeyError("a bug")])
def test_an_interrupted_query_is_cancelled(fault: BaseException) -> None:
    client = Client()
    with pytest.raises(type(fault)) as caught:
        query(client, fault)
    assert caught.value is fault
    assert client.calls == ["cancel", "close"]


@pytest.mark.parametrize("fault", [ValueError(), ConnectionError(), OverTime(), KeyError()])
def test_a_client_that_another_thread_closed_blames_nothing_else(fault: Exception) -> None:
    client = Client()
    client.close()
    with fails(EngineFailed, where="/run/x"):
        query(client, fault)
