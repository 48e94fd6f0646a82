"""The owner's side: starts a deployment from a plan, and waits until the engine answers.

    with launch(plan, engine, machine=machine, name="mine", host=host) as running:
        running.clients[0].execute("select 1", timeout_s=10)

A deployment is ready once every process of the last stage accepts connections, all worker
instances of the plan have joined the engine for good (`SettlingClient`), and a query succeeded.
The owner holds one end of a socket pair; if the owner dies, the deployment ends.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING

from atoll.engines.api import Client, Engine
from atoll.engines.calls import connected
from atoll.errors import EngineFailed, PortTaken
from atoll.host.api import Child, Host
from atoll.schema.deployment import Deployment, State, UpOptions
from atoll.schema.machine import Machine
from atoll.schema.plan import Plan
from atoll.schema.text import first_of, plural
from atoll.supervise import records
from atoll.supervise.client_calls import close_all, within
from atoll.supervise.interrupts import shielded
from atoll.supervise.lastwords import last_words, port_was_taken, tail
from atoll.supervise.prepare import GRACE_S, prepare
from atoll.supervise.request import (
    DETACH,
    READY,
    STOP,
    SUPERVISOR_LOG,
    Lines,
    Message,
    Request,
    decode,
)
from atoll.supervise.stable_count import StableCount
from atoll.supervise.start_keeper import start_keeper, take_name
from atoll.supervise.stop import release

if TYPE_CHECKING:
    from atoll.inspect.verify import Verification

MOST_DETAILS = 6
_POLL_S = 0.2
_CONNECT_TIMEOUT_S = 10.0
_COUNT_TIMEOUT_S = 30.0  # the first query of a cold JVM on a busy machine takes longer than 10 s
_QUERY_TIMEOUT_S = 60.0

_WAS_ENDED = "was stopped by another command"

Progress = Callable[[str], None]


class Running:
    """A deployment that this process owns: it ends with `stop`, or with this process."""

    def __init__(
        self,
        request: Request,
        *,
        control: socket.socket,
        keeper: Child,
        host: Host,
        progress: Progress,
    ) -> None:
        self.name = request.name
        self.access = request.access  # how people reach it
        self.clients: list[Client] = []
        self._id = request.id
        self._control = control
        self._lines = Lines(control)
        self._keeper = keeper
        self._host = host
        self._progress = progress
        self._accepting = False
        self._ready = False
        self._ended = ""  # why it ended, once it has
        self._over = False

    @property
    def deployment(self) -> Deployment:
        """The record on disk. Raises EngineFailed if the deployment is gone."""
        record = records.read(self.name)
        if record is None or record.id != self._id:
            raise EngineFailed(f"{self.name}: is no longer up")
        return record

    def verify(self, *, deep: bool = True) -> Verification:
        """Compare threads and pages with the plan; not `deep`: threads and memory policies."""
        from atoll.inspect.verify import verify  # all of inspect, which a start does not need

        return verify(self._host, self.deployment, deep=deep)

    def in_place(self) -> tuple[int, int, str]:
        """(threads checked, threads out of place, details). Not deep: counting the pages of large
        memory would disturb what runs."""
        from atoll.inspect.verify import brief

        found = self.verify(deep=False)
        details = [brief(finding) for finding in found.drift]
        return found.threads, found.drifted, first_of(details, MOST_DETAILS, "; ")

    def check(self, *, wait_s: float = 0.0) -> None:
        """Raises EngineFailed, naming the process that died, if the deployment has ended.

        A query fails an instant before the supervisor knows why; `wait_s` is the time to wait for
        the supervisor.
        """
        self._listen(wait_s)
        if self._over:
            raise EngineFailed(f"{self.name}: {self._ended}")

    def wait(self) -> None:
        """Wait for the end of the deployment. Raises EngineFailed if it failed."""
        while not self._over:
            self._listen(None)
        if self._ended != _WAS_ENDED:
            raise EngineFailed(f"{self.name}: {self._ended}")

    def detach(self) -> None:
        """Let the deployment outlive this process; `atoll down` ends it.

        Raises EngineFailed if it has ended already.
        """
        self._close_clients()
        self._tell(DETACH)
        self._control.close()

    def stop(self) -> None:
        """End the whole deployment; returns when it is gone."""
        with shielded():
            self._close_clients()
            with contextlib.suppress(OSError):  # it has ended already, or the keeper is ending it
                self._control.sendall(STOP.encode() + b"\n")
            self._control.close()
            release(self.name, self._id, self._host)
            self._keeper.wait()

    def __enter__(self) -> Running:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def await_ready(self, engine: Engine, endpoints: tuple[str, ...], instances: int) -> None:
        """Wait until the deployment is ready. Raises EngineFailed if it fails, or if the time limit
        of the start is over."""
        while not self._accepting:
            self.check(wait_s=_POLL_S)
        if endpoints:  # otherwise the coordinator is on another machine
            self._await_instances(engine, endpoints, instances)
        self._tell(READY)
        while not self._ready:  # then the record on disk says ready
            self.check(wait_s=_POLL_S)

    def _await_instances(self, engine: Engine, endpoints: tuple[str, ...], instances: int) -> None:
        connect = partial(connected, engine, endpoints, timeout_s=_CONNECT_TIMEOUT_S)
        connect_s, count_s = (
            limit_s * len(endpoints) for limit_s in (_CONNECT_TIMEOUT_S, _COUNT_TIMEOUT_S)
        )
        last_status = "no answer yet"
        stable = StableCount(instances)
        while True:
            try:
                if not self.clients:
                    self.clients = within(connect_s, "connecting", connect, undo=close_all)
                ask = partial(stable.look, self.clients, timeout_s=_COUNT_TIMEOUT_S)
                look = within(count_s, "asking for instances", ask)
                if look.is_stable:
                    within(_QUERY_TIMEOUT_S * len(self.clients), "the first query", self._ask)
                    break
                status = f"{look.count} of {plural(instances, 'worker instance')} in"
                if look.count == instances:
                    status += f"; checking that they stay ({look.settles_s:g} s)"
            except EngineFailed as fault:
                stable = StableCount(instances)
                self._close_clients()
                status = str(fault)
            if status != last_status:
                last_status = status
                self._progress(status)
            try:
                self.check(wait_s=_POLL_S)
            except EngineFailed as fault:
                raise EngineFailed(f"{fault}; last status: {last_status}") from None

    def _ask(self) -> None:
        for client in self.clients:
            client.execute("select 1", timeout_s=_QUERY_TIMEOUT_S)

    def _tell(self, word: str) -> None:
        try:
            self._control.sendall(word.encode() + b"\n")
        except OSError:
            # The supervisor is gone; its last message or its keeper says why.
            while not self._over:
                self._listen(None)
            raise EngineFailed(f"{self.name}: {self._ended}") from None

    def _listen(self, wait_s: float | None) -> None:
        """Take the messages of the supervisor; wait at most `wait_s` for one."""
        if self._over:
            return
        self._control.settimeout(wait_s)
        try:
            self._control.recv(1, socket.MSG_PEEK)
        except (TimeoutError, BlockingIOError):
            return
        except OSError:
            pass  # read() below finds the end of file
        self._control.setblocking(False)
        for line in self._lines.read():
            self._take(decode(line))
        self._control.setblocking(True)
        if self._lines.closed and not self._over:
            self._over, self._ended = True, self._how_it_went()

    def _take(self, message: Message) -> None:
        match message:
            case Message("starts", name):
                self._progress(f"starting {name}")
            case Message("accepts", name):
                self._progress(f"{name} is up")
            case Message("accepting"):
                self._accepting = True
                self._progress("waiting for all worker instances")
            case Message("ready"):
                self._ready = True
            case Message("failed", error):
                self._over, self._ended = True, error
            case Message("stopping"):
                self._over, self._ended = True, _WAS_ENDED

    def _how_it_went(self) -> str:
        """The reason why the supervisor ended without a message, from the keeper's record."""
        self._keeper.wait()
        record = records.read(self.name)
        if record is not None and record.id == self._id and record.state is State.FAILED:
            return record.error
        return f"the supervisor is gone: {last_words(records.logs(self.name) / SUPERVISOR_LOG)}"

    def _close_clients(self) -> None:
        close_all(self.clients)
        self.clients = []


def launch(
    plan: Plan,
    engine: Engine,
    *,
    machine: Machine,
    host: Host,
    name: str | None = None,
    options: UpOptions | None = None,
    grace_s: float = GRACE_S,
    progress: Progress = lambda line: None,
) -> Running:
    """Start `plan` on this machine; returns when the engine is ready.

    `options`: for `atoll restart`. Raises what `prepare` raises, UsageError (a name in use),
    PortTaken, and EngineFailed (with the last line of the process that died), and then leaves
    nothing behind.
    """
    prepared = prepare(plan, engine, machine=machine, host=host, name=name, options=options)
    os.close(take_name(prepared.name))  # first: its ports are in use, too
    prepared.refuse_taken_ports(host)
    for last_try in (False, True):
        try:
            request = prepared.request(secrets.token_hex(4), grace_s=grace_s)
            return _start(request, prepared.engine, host, progress)
        except PortTaken:
            if last_try:
                raise
            progress("another program took a port; trying again with other ports")
    raise AssertionError("the second try returns or raises")


def _start(request: Request, engine: Engine, host: Host, progress: Progress) -> Running:
    control, keeper = start_keeper(request, host)
    running = Running(request, control=control, keeper=keeper, host=host, progress=progress)
    try:
        running.await_ready(engine, request.endpoints, request.plan.joining)
    except EngineFailed as fault:
        taken = _port_was_taken(request.name)
        running.stop()
        if taken:
            raise PortTaken(str(fault)) from None
        raise
    except BaseException:
        running.stop()
        raise
    return running


def _port_was_taken(name: str) -> bool:
    """Whether a process that died by itself reported a port in use."""
    record = records.read(name)
    died = [process.log for process in record.processes if process.exit_status] if record else []
    return any(port_was_taken(tail(log)) for log in died)
