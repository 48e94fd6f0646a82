"""Deploys an engine over virtual machines, which stand for a cluster with NICs of several rates.

The machines are network namespaces of this one (`atoll.host.virtual_network`); `atoll up` starts
each one's part of the plan there, as on a host of a fleet. They share the CPUs, so only what the
network limits can be measured.
"""

from __future__ import annotations

import json
import secrets
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from atoll.bench.deploy import LiveServer, serving
from atoll.engines.api import Client, Data, Engine
from atoll.engines.calls import connected
from atoll.errors import CheckFailed, EngineFailed, UsageError
from atoll.host.api import Child, Host
from atoll.host.caller import environment
from atoll.host.memory_file import memory_file
from atoll.host.virtual_network import Nic, VirtualMachine, virtual_network
from atoll.plan.cluster import part_of
from atoll.schema.deployment import Deployment, State
from atoll.schema.inspection import Severity
from atoll.schema.plan import Plan
from atoll.schema.results import Entrant
from atoll.schema.text import first_of, plural
from atoll.supervise import records
from atoll.supervise.client_calls import close_all
from atoll.supervise.interrupts import shielded
from atoll.supervise.lastwords import tail, telling_line
from atoll.supervise.launch import MOST_DETAILS
from atoll.supervise.stop import release

_CONNECT_S = 30.0
_VERIFY_S = 120.0
_STOP_S = 60.0
_POLL_S = 0.2
_COMPLAINT, _WARNING = "atoll: ", "atoll: warning: "


@dataclass(frozen=True, slots=True)
class _Part:
    """The deployment of one machine."""

    name: str
    machine: VirtualMachine
    child: Child  # `atoll up`
    log: str
    before: str  # the id of an earlier deployment of that name; empty: there is none

    @property
    def deployment(self) -> Deployment | None:
        found = records.read(self.name)
        return found if found and found.id != self.before else None

    def check(self) -> None:
        if self.child.poll() is not None:
            text = tail(self.log)
            said = [line for line in text.splitlines() if line.startswith(_COMPLAINT)]
            ends = [line for line in said if not line.startswith(_WARNING)]
            why = ends[-1].removeprefix(_COMPLAINT) if ends else telling_line(text)
            raise EngineFailed(f"machine of {self.name}: {why}")


@dataclass(frozen=True, slots=True)
class RunningCluster:
    """See `atoll.bench.deploy.Up`."""

    parts: Sequence[_Part]  # the head's first
    host: Host
    clients: list[Client]

    @property
    def deployment(self) -> Deployment:
        found = self.parts[0].deployment
        if found is None:
            raise EngineFailed(f"{self.parts[0].name}: is no longer up")
        return found

    def check(self, *, wait_s: float = 0.0) -> None:
        """Raises EngineFailed with the last words of the machine that has failed."""
        until_s = time.monotonic() + wait_s
        while True:
            for part in self.parts:
                part.check()
            if time.monotonic() >= until_s:
                return
            time.sleep(_POLL_S)

    def in_place(self) -> tuple[int, int, str]:
        """Each machine is asked from inside, where its routes are."""
        threads, details = 0, list[str]()
        for part in self.parts:
            argv = [*part.machine.inside, *_atoll("verify", part.name, "--json")]
            try:
                done = self.host.run(argv, timeout_s=_VERIFY_S, tied=True)
            except TimeoutError as fault:
                raise EngineFailed(f"{part.name}: {fault}") from None
            if done.returncode not in (0, CheckFailed.exit_code):
                raise EngineFailed(f"{part.name}: {' '.join(done.stderr.split())}")
            try:
                listed = json.loads(done.stdout)
            except ValueError:  # the status is of a program before `atoll`
                raise EngineFailed(f"{part.name}: {' '.join(done.stderr.split())}") from None
            for one in listed:
                threads += len(one["threads"])
                details += [
                    f"{part.name}: {each['process']}: {each['found']}"
                    for each in one["findings"]
                    if each["severity"] == Severity.DRIFT
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
        plans = [part_of(entrant.plan, number) for number in range(count)]
        nics = [
            [
                Nic(name, address, rates[name])
                for name, address in sorted({(s.nic or "", s.address or "") for s in plan.slots})
            ]
            for plan in plans
        ]
        with (
            virtual_network(self.host, nics) as machines,
            self._running(engine, plans, machines) as running,
        ):
            server = LiveServer(running, engine, entrant, [], self.host)
            with serving(server, self.data):
                yield server

    @contextmanager
    def _running(
        self, engine: Engine, plans: Sequence[Plan], machines: Sequence[VirtualMachine]
    ) -> Iterator[RunningCluster]:
        names = [f"{self.name}-{number}" if number else self.name for number in range(len(plans))]
        if busy := [name for name in names if records.is_held(name)]:
            raise UsageError(f"{busy[0]} is up; run: atoll down {busy[0]}")
        parts: list[_Part] = []
        running = RunningCluster(parts, self.host, [])
        with memory_file(secrets.token_hex(32)) as secret, ExitStack() as files:
            try:
                for name, plan, machine in zip(names, plans, machines, strict=True):
                    path = files.enter_context(memory_file(plan.model_dump_json()))
                    joining = ("--secret", secret) if plan.cluster else ()
                    argv = [*machine.inside, *_atoll("up", path, *joining, "--name", name)]
                    log = files.enter_context(memory_file(""))
                    parts.append(self._started(name, machine, argv, log))
                self.progress(f"waiting for {plural(len(parts), 'machine')}")
                while any(_state(part) is not State.READY for part in parts):
                    running.check(wait_s=_POLL_S)
                running.check()
                endpoints = running.deployment.endpoints
                running.clients.extend(connected(engine, endpoints, timeout_s=_CONNECT_S))
                yield running
            finally:
                with shielded():
                    close_all(running.clients)
                    _stop(parts, self.host)

    def _started(self, name: str, machine: VirtualMachine, argv: Sequence[str], log: str) -> _Part:
        """Tied: whatever ends this process ends `atoll up`, and its keeper the deployment."""
        earlier = records.read(name)
        child = self.host.spawn(argv, env=environment(), log=log, tied_by=signal.SIGKILL)
        return _Part(name, machine, child, log, earlier.id if earlier else "")


def _stop(parts: Sequence[_Part], host: Host) -> None:
    """End them all. SIGTERM: a process in the background may ignore SIGINT, and so its children."""
    for part in parts:
        if part.child.poll() is None:
            part.child.signal(signal.SIGTERM)
    for part in parts:
        try:
            part.child.wait(_STOP_S)
        except TimeoutError:
            part.child.signal(signal.SIGKILL)
            part.child.wait()
        if left := part.deployment:  # its keeper is still ending it
            release(part.name, left.id, host)


def _state(part: _Part) -> State | None:
    found = part.deployment
    return found.state if found else None


def _atoll(*argv: str) -> list[str]:
    return [sys.executable, "-P", "-m", "atoll", *argv]
