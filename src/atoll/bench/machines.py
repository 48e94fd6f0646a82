"""Deploys an engine over virtual machines, which stand for a cluster with NICs of several rates.

The machines are network namespaces of this one (`atoll.host.virtual_network`); `atoll up` starts
each one's part of the plan there, as on a host of a fleet. They share the CPUs, so only what the
network limits can be measured.
"""

from __future__ import annotations

import ipaddress
import json
import secrets
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from atoll.bench.deploy import MOST_DETAILS, LiveServer, serving
from atoll.engines.api import Client, Data, Engine
from atoll.engines.calls import connected
from atoll.errors import CheckFailed, EngineFailed
from atoll.host.api import Child, Host
from atoll.host.caller import environment
from atoll.host.virtual_network import Nic, VirtualMachine, virtual_network
from atoll.inspect.verify import Verification, verify
from atoll.schema.deployment import Deployment, State
from atoll.schema.plan import Plan
from atoll.schema.results import Entrant
from atoll.schema.text import first_of
from atoll.store.document import write_document
from atoll.store.files import write_new
from atoll.supervise import records
from atoll.supervise.client_calls import close_all
from atoll.supervise.lastwords import last_words

_CONNECT_S = 30.0
_START_S = 300.0
_STOP_S = 60.0
_POLL_S = 0.2


def part_of(plan: Plan, number: int) -> Plan:
    """The plan of another machine of a cluster of equal ones: its addresses are higher by `number`
    than the head's."""

    def moved(address: str | None) -> str | None:
        return address and str(ipaddress.IPv4Address(address) + number)

    slots = (one.model_copy(update={"address": moved(one.address)}) for one in plan.slots)
    changes: dict[str, object] = {"slots": tuple(slots)}
    if number and plan.cluster:
        joins = plan.cluster.model_copy(update={"leads": False})
        changes |= {"cluster": joins, "coordinator": None}
    return plan.model_copy(update=changes)


@dataclass(slots=True)
class RunningCluster:
    """See `atoll.bench.deploy.Up`."""

    names: Sequence[str]  # of the deployments, the head's first
    machines: Sequence[VirtualMachine]
    children: Sequence[Child]
    logs: Sequence[str]
    host: Host
    clients: list[Client]

    @property
    def deployment(self) -> Deployment:
        record = records.read(self.names[0])
        if record is None:
            raise EngineFailed(f"{self.names[0]}: is no longer up")
        return record

    def check(self, *, wait_s: float = 0.0) -> None:
        """Raises EngineFailed with the last words of the machine that has failed."""
        until_s = time.monotonic() + wait_s
        while True:
            for name, child, log in zip(self.names, self.children, self.logs, strict=True):
                if child.poll() is not None:
                    raise EngineFailed(f"{name}: {last_words(Path(log))}")
            if time.monotonic() >= until_s:
                return
            time.sleep(_POLL_S)

    def verify(self, *, deep: bool = True) -> Verification:
        """Of the head."""
        return verify(self.host, self.deployment, deep=deep)


@dataclass(frozen=True, slots=True)
class ClusterServer(LiveServer):
    """The `atoll.bench.api.Server` of a cluster."""

    def verify(self) -> tuple[int, int, str]:
        """Each machine is asked from inside, where its routes are."""
        assert isinstance(self.running, RunningCluster)
        threads, details = 0, list[str]()
        for name, machine in zip(self.running.names, self.running.machines, strict=True):
            done = self.host.run(
                [*machine.inside, *_atoll("verify", name, "--json")],
                timeout_s=_STOP_S,
                tied=True,
            )
            if done.returncode not in (0, CheckFailed.exit_code):
                raise EngineFailed(f"{name}: {' '.join(done.stderr.split())}")
            for one in json.loads(done.stdout):
                threads += len(one["threads"])
                details += [
                    f"{name}: {each['process']}: {each['found']}"
                    for each in one["findings"]
                    if each["severity"] == "drift"
                ]
        return threads, len(details), first_of(details, MOST_DETAILS, "; ")


@dataclass(frozen=True, slots=True)
class MachinesDeployer:
    """The `atoll.bench.api.Deploy` of a bench over virtual machines."""

    engines: Mapping[str, Engine]
    host: Host
    data: Data
    name: str
    progress: Callable[[str], None]
    rates: Callable[[Entrant], Mapping[str, float]]  # NIC -> Mbit/s

    @contextmanager
    def __call__(self, entrant: Entrant) -> Iterator[LiveServer]:
        assert entrant.plan is not None
        engine, rates = self.engines[entrant.engine], self.rates(entrant)
        count = entrant.plan.cluster.machines if entrant.plan.cluster else 1
        parts = [part_of(entrant.plan, number) for number in range(count)]
        nics = [
            [
                Nic(name, address, rates[name])
                for name, address in sorted({(s.nic or "", s.address or "") for s in part.slots})
            ]
            for part in parts
        ]
        with (
            tempfile.TemporaryDirectory(prefix="atoll-") as folder,
            virtual_network(self.host, nics) as machines,
            self._running(engine, parts, machines, Path(folder)) as running,
        ):
            server = ClusterServer(running, engine, entrant, [], self.host)
            with serving(server, self.data):
                yield server

    @contextmanager
    def _running(
        self,
        engine: Engine,
        parts: Sequence[Plan],
        machines: Sequence[VirtualMachine],
        folder: Path,
    ) -> Iterator[RunningCluster]:
        secret = folder / "secret"
        write_new(secret, secrets.token_hex(32) + "\n", mode=0o600)
        names = [f"{self.name}-{number}" if number else self.name for number in range(len(parts))]
        running = RunningCluster(names, machines, [], [], self.host, [])
        children, logs = list[Child](), list[str]()
        try:
            for name, part, machine in zip(names, parts, machines, strict=True):
                write_document(folder / f"{name}.json", part)
                joining = ("--secret", str(secret)) if part.cluster else ()
                logs.append(f"{folder}/{name}.log")
                argv = _atoll("up", f"{folder}/{name}.json", *joining, "--name", name,
                              "--timeout", f"{_START_S:g}")  # fmt: skip
                # Tied: whatever ends this process ends `atoll up`, and its keeper the deployment.
                children.append(
                    self.host.spawn(
                        [*machine.inside, *argv],
                        env=environment(),
                        log=logs[-1],
                        tied_by=signal.SIGKILL,
                    )
                )
            running.children, running.logs = children, logs
            self.progress(f"waiting for {len(parts)} machines")
            while not all(_is_ready(name) for name in names):
                running.check(wait_s=_POLL_S)
            endpoints = running.deployment.endpoints
            running.clients = connected(engine, endpoints, timeout_s=_CONNECT_S)
            yield running
        finally:
            close_all(running.clients)
            for child in children:
                if child.poll() is None:
                    child.signal(signal.SIGINT)
            for child in children:
                child.wait(_STOP_S)


def _is_ready(name: str) -> bool:
    record = records.read(name)
    return record is not None and record.state is State.READY


def _atoll(*argv: str) -> list[str]:
    return [sys.executable, "-P", "-m", "atoll", *argv]
