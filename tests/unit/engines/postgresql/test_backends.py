"""Whose processes the backends of a server are, and the graph of its sessions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from atoll.engines.postgresql.operators import backends
from atoll.errors import UsageError
from tests.parts.proc import Proc


@pytest.mark.parametrize(
    ("pid", "comm", "here"),
    [(7, "postgres", True), (7, "postmaster", True), (7, "sshd", False), (8, "postgres", False)],
)
def test_a_server_elsewhere_is_refused(
    monkeypatch: pytest.MonkeyPatch, pid: int, comm: str, here: bool
) -> None:
    """A process here may have the number of a backend on another machine."""
    client = SimpleNamespace(
        where="far:5432",
        close=lambda: None,
        execute=lambda sql, timeout_s: SimpleNamespace(rows=[(pid,)]),
    )
    monkeypatch.setattr(backends, "reach", lambda url, timeout_s: client)
    host = Proc()
    host.add(7, comm=comm)
    attached = backends.PostgreSQLBackends().attach(host, "postgresql://far")
    if here:
        with attached as running:
            assert running.host is host
    else:
        with pytest.raises(UsageError, match="far:5432"), attached:
            pass


def test_several_sessions_of_one_name_can_be_divided_among_cores() -> None:
    sessions = [(501, "read"), (502, "write"), (503, "read")]
    host = Proc()
    for pid, _ in sessions:
        host.add(pid, comm="postgres")

    def execute(sql: str, timeout_s: float) -> SimpleNamespace:
        return SimpleNamespace(rows=sessions if "pg_stat_activity" in sql else [(0.0,)])

    client: Any = SimpleNamespace(execute=execute)
    graph = backends.Backends(host, client, ()).profile(1)
    assert {one.id: one.parallel for one in graph.operators} == {"read": True, "write": False}
