"""Client libraries that hang are given up; those that do not are none the wiser."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import pytest

from atoll.engines.api import QueryResult
from atoll.errors import EngineFailed
from atoll.supervise import client_calls
from atoll.supervise.client_calls import close_all, within
from tests.parts.faults import fails


@dataclass
class Client:
    """Closes, fails to, or waits for ever."""

    how: str = "closes"
    closed: threading.Event = field(default_factory=threading.Event)

    def execute(self, sql: str, *, timeout_s: float) -> QueryResult:
        raise AssertionError("a client that is closed is asked nothing")

    def instances(self, *, timeout_s: float) -> int:
        raise AssertionError("a client that is closed is asked nothing")

    def close(self) -> None:
        if self.how == "hangs":
            threading.Event().wait()
        if self.how == "fails":
            raise BrokenPipeError
        self.closed.set()


def test_what_comes_back_is_passed_on() -> None:
    assert within(1.0, "asking", lambda: None) is None
    assert within(1.0, "asking", lambda: [1]) == [1]
    with pytest.raises(ZeroDivisionError):
        within(1.0, "asking", lambda: 1 // 0)
    with pytest.raises(EngineFailed, match="refused"):
        within(1.0, "asking", refuse)


def refuse() -> None:
    raise EngineFailed("refused")


def test_what_hangs_is_given_up_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_calls, "SLACK_S", 0.02)
    freed = threading.Event()
    with fails(EngineFailed, what="asking", slack="0.02", limit="0.01"):
        within(0.01, "asking", freed.wait)
    freed.set()


def test_what_comes_too_late_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_calls, "SLACK_S", 0.02)
    freed = threading.Event()
    client = Client()

    def connect() -> Client:
        freed.wait()
        return client

    with fails(EngineFailed, what="connecting", slack="0.02", limit="0.01"):
        within(0.01, "connecting", connect, undo=lambda late: late.close())
    assert not client.closed.is_set()
    freed.set()
    assert client.closed.wait(30)
    kept = Client()
    assert within(60.0, "connecting", lambda: kept, undo=lambda late: late.close()) is kept
    assert not kept.closed.is_set()


def test_one_that_hangs_keeps_no_other_from_closing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_calls, "_CLOSE_S", 0.2)
    clients = [Client("hangs"), Client("fails"), Client(), Client("hangs"), Client()]
    close_all(clients)
    # Their threads may come late on a busy machine, and they do come.
    assert clients[2].closed.wait(30) and clients[4].closed.wait(30)
    assert [client.closed.is_set() for client in clients] == [False, False, True, False, True]
    close_all([])
