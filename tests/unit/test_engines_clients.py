"""The limit around a query: what it ends, and that nothing that comes after it is an answer."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest

from atoll.engines.clients import TimeLimit

Line = tuple[socket.socket, socket.socket]


@pytest.fixture
def line() -> Iterator[Line]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def wait(ours: socket.socket, fault: BaseException) -> None:
    assert ours.recv(1) == b""
    raise fault


def test_a_wait_for_a_server_that_answers_nothing_ends(line: Line) -> None:
    ours, _ = line
    cancelled: list[bool] = []
    with (
        pytest.raises(TimeoutError, match=r"^no answer within 0\.05 s$"),
        TimeLimit(ours.fileno(), 0.05, lambda: cancelled.append(True)),
    ):
        wait(ours, ConnectionError("it hung up"))
    assert cancelled == [True]
    ours.getpeername()  # still open: to be closed is its owner's


def test_what_a_cancelled_query_still_answers_is_no_answer(line: Line) -> None:
    ours, theirs = line
    with (
        pytest.raises(TimeoutError),
        TimeLimit(ours.fileno(), 0.05, lambda: theirs.sendall(b"half")),
    ):
        assert ours.recv(4) == b"half"


def test_an_answer_after_the_limit_is_none_though_its_thread_did_not_run_yet(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    ours, _ = line
    cancelled: list[bool] = []
    with (
        pytest.raises(TimeoutError, match="no answer within 3600 s"),
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
