"""The small SQL client: statements from stdin, rows with tabs, faults with their exit code."""

from __future__ import annotations

import io
import shlex
import sys

import pytest

from atoll.engines import registry
from atoll.engines.api import Column, QueryResult
from atoll.engines.sql import shell
from atoll.errors import EngineFailed, ServerGone

Capture = pytest.CaptureFixture[str]


class Client:
    def __init__(self) -> None:
        self.asked: list[str] = []
        self.is_closed = False

    def execute(self, sql: str, *, timeout_s: float) -> QueryResult:
        self.asked.append(sql)
        if sql == "wrong":
            raise EngineFailed("no such column")
        if sql == "gone":
            raise ServerGone("it hung up")
        return QueryResult((Column("a", "int"), Column("b", "varchar")), [(1, None)], 0.5)

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Client:
    client = Client()
    monkeypatch.setattr(registry, "get", lambda name: name)
    monkeypatch.setattr(shell, "connected", lambda engine, endpoints, timeout_s: [client])
    return client


def test_a_statement_of_the_command_line(client: Client, capsys: Capture) -> None:
    assert shell.main(["toy", "/x.sock", "select 1"]) == 0
    said = capsys.readouterr()
    assert said.out == "a\tb\n1\tNULL\n"
    assert said.err == "(1 row, 0.500 s)\n"
    assert client.is_closed


def test_statements_of_stdin_end_with_a_semicolon(
    client: Client, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("select\n  1;\nwrong;\nselect ';'\n"))
    assert shell.main(["toy", "/x.sock"]) == 5, "one had a fault"
    assert client.asked == ["select\n  1", "wrong", "select ';'"]
    assert "error: no such column" in capsys.readouterr().err


def test_without_its_server_it_ends(
    client: Client, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("gone;\nselect 1;\n"))
    assert shell.main(["toy", "/x.sock"]) == 5
    assert client.asked == ["gone"] and client.is_closed
    assert "error: it hung up" in capsys.readouterr().err


def test_the_command_is_safe_for_a_shell() -> None:
    endpoint = "http://h:1/a b?user-file=/x&'$(y)"
    words = shlex.split(shell.shell_command("toy", endpoint))
    assert words[-2:] == ["toy", endpoint]
