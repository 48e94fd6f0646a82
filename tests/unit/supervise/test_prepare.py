"""What a start decides before it begins: ports that the user chose, and who holds them."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from typing import Any

import pytest

from atoll.engines.api import Installation
from atoll.errors import NotPermitted, PortTaken, UsageError
from atoll.host.local import LocalHost
from atoll.schema.deployment import UpOptions
from atoll.schema.plan import LOOPBACK, EngineTraits
from atoll.supervise.ports import refuse_taken
from atoll.supervise.prepare import Prepared, prepare
from tests.parts.fake_host import FakeHost
from tests.parts.faults import fails
from tests.parts.toy import ToyEngine, this_machine, toy_plan

HOST = LocalHost()


class Servers(ToyEngine):
    """Each instance is a whole server."""

    @property
    def traits(self) -> EngineTraits:
        return super().traits.model_copy(update={"distributed": False})

    def ports(self, plan: Any) -> int:
        return len(plan.slots)


class Sockets(ToyEngine):
    """Its port is not for clients."""

    def layout(self, *arguments: Any, **named: Any) -> Any:
        made = super().layout(*arguments, **named)
        return type(made)(processes=made.processes, endpoints=made.endpoints)


def prepared(engine: ToyEngine, port: int | None, workers: int = 2) -> Prepared:
    return prepare(
        toy_plan(workers),
        engine,
        machine=this_machine(),
        host=HOST,
        name="ports",
        options=UpOptions(port=port),
    )


def test_a_port_is_the_clients() -> None:
    request = prepared(ToyEngine(), 5151).request("ab")
    assert [access.address for access in request.access] == ["toy://127.0.0.1:5151"]
    assert request.options == UpOptions(port=5151)
    assert request.run_dir.endswith("/ab")


def test_whole_servers_have_ports_in_a_row() -> None:
    assert list(prepared(Servers(), 5151).ports) == [5151, 5152]
    with fails(UsageError, port=65535, count=2, last="above 65535"):
        prepared(Servers(), 65535)


def test_a_port_for_an_engine_with_sockets_is_refused() -> None:
    with fails(UsageError, engine="toy", option="--port"):
        prepared(Sockets(), 5151).request("ab")
    request = prepared(Sockets(), None).request("ab")
    (access,) = request.access
    assert access.address == request.endpoints[0].replace("/ab/", "/up-ports/")
    assert access.command.endswith(f"-m atoll.engines.sql.shell toy {access.address}")


def test_a_port_in_use_names_the_process() -> None:
    with socket.create_server((LOOPBACK, 0)) as taken:
        port = taken.getsockname()[1]
        comm = HOST.read_text("/proc/self/comm").strip()
        with fails(PortTaken, port=port, comm=comm, pid=os.getpid(), option="--port"):
            prepared(ToyEngine(), port).refuse_taken_ports(HOST)
        assert PortTaken.exit_code == 5
        with fails(PortTaken, port=port, option="--port"):
            refuse_taken(port, (), FakeHost({"/proc/version": ""}))  # sees no processes
    prepared(ToyEngine(), port).refuse_taken_ports(HOST)


def test_the_port_of_connections_that_have_ended_is_free() -> None:
    with socket.create_server((LOOPBACK, 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection((LOOPBACK, port)):
            server.accept()[0].close()  # this end waits in TIME_WAIT
    refuse_taken(port, (), HOST)


def test_a_privileged_port_needs_rights(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass
    class Closed:
        family: int
        kind: int

        def __enter__(self) -> Closed:
            return self

        def __exit__(self, *_: object) -> None:
            return

        def setsockopt(self, *_: int) -> None:
            return

        def bind(self, _: object) -> None:
            raise PermissionError

    monkeypatch.setattr(socket, "socket", Closed)
    host = FakeHost({"/proc/sys/net/ipv4/ip_unprivileged_port_start": "1024\n"})
    with fails(NotPermitted, port="port 80", lowest=1024):
        refuse_taken(80, (), host)


def test_the_installation_is_looked_for_first() -> None:
    assert prepared(ToyEngine(), None).installation == Installation(version="1", home="/")
