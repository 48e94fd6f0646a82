"""A toy engine for the tests of supervise: small Python processes with the shape of a real engine.

A coordinator serves clients on a UNIX socket and workers on a loopback port; a worker has
several threads, connects to the coordinator and, if told so, has a grandchild that has left its
session by setsid and a double fork. Run as a script it is one of those processes, or an
`owner`: a process that launches the engine as `atoll up` and `atoll bench` do.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from atoll.engines.api import Client, Installation, Layout, QueryResult, Table
from atoll.errors import EngineFailed
from atoll.host.api import Host
from atoll.host.local import LocalHost
from atoll.plan.identity import machine_id
from atoll.schema.deployment import Access, ProcessSpec, Role
from atoll.schema.machine import Allowed, Core, Machine, NumaNode, Origin, Package, Summary
from atoll.schema.plan import (
    CoordinatorKind,
    CoordinatorPlace,
    EngineTraits,
    MemoryPolicy,
    Placement,
    Plan,
    Policy,
    Slot,
    TaskThreads,
)
from atoll.supervise.interrupts import terminate_is_interrupt
from atoll.supervise.launch import launch

THREADS = 4


def this_machine() -> Machine:
    """One package, one node, a core for every CPU that we may use."""
    cpus = tuple(sorted(os.sched_getaffinity(0)))
    return Machine(
        summary=Summary(packages=1, numa_nodes=1, chiplets=0, l3=0, cores=len(cpus), pus=len(cpus)),
        chiplets=(),
        origin=Origin(kind="live"),
        memory_bytes=1 << 30,
        smt=False,
        packages=(Package(index=0, os_index=0, pus=cpus),),
        dies=(),
        nodes=(NumaNode(index=0, os_index=0, package=0, pus=cpus, memory_bytes=1 << 30),),
        l3=(),
        cores=tuple(
            Core(index=i, os_index=i, pus=(cpu,), package=0, die=None, l3=None, node=0)
            for i, cpu in enumerate(cpus)
        ),
        caches=(),
        allowed=Allowed(pus=cpus, nodes=(0,)),
    )


def toy_plan(
    workers: int = 2, *, masked: bool = True, placement: Placement = Placement.NONE
) -> Plan:
    """Worker i on the i-th CPU; on a small machine those beyond have no mask."""
    machine = this_machine()
    cpus = machine.pus
    slots = tuple(
        Slot(
            index=i,
            cpus=(cpus[i],) if masked and i < len(cpus) else None,
            thread_cpus=(cpus[i],) if placement is not Placement.NONE else (),
            cores=1,
            threads=1,
            memory_policy=MemoryPolicy.FIRST_TOUCH,
            nodes=(0,),
            chiplets=(),
            packages=(0,),
            memory_bytes=1 << 20,
            heap_bytes=1 << 20,
        )
        for i in range(workers)
    )
    return Plan(
        engine="toy",
        policy=Policy.WIC if masked else Policy.WIM,
        asked=Policy.WIC if masked else Policy.WIM,
        placement=placement,
        task_threads=None if placement is Placement.NONE else TaskThreads(comm="task"),
        smt=False,
        slots=slots,
        coordinator=CoordinatorPlace(kind=CoordinatorKind.SHARED),
        total_threads=workers,
        total_heap_bytes=workers << 20,
        shuffle_partitions=workers,
        reasons=(),
        machine=machine.summary,
        machine_id=machine_id(machine),
    )


@dataclass
class ToyClient:
    """See `atoll.engines.api.Client`."""

    path: str
    settles_s: float = 0.0
    counts: list[int | None] = field(default_factory=list)  # the last first; None: fails, late

    def _ask(self, word: str, timeout_s: float) -> str:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
            link.settimeout(timeout_s)
            try:
                link.connect(self.path)
                link.sendall(word.encode() + b"\n")
                return link.makefile().readline().strip()
            except OSError as fault:
                raise EngineFailed(f"toy: {fault}") from None

    def execute(self, sql: str, *, timeout_s: float) -> QueryResult:
        self._ask("query", timeout_s)
        return QueryResult(columns=(), rows=[(1,)], engine_seconds=0.0)

    def instances(self, *, timeout_s: float) -> int:
        if self.counts:
            count = self.counts.pop()
            if count is None:
                time.sleep(self.settles_s)
                raise EngineFailed("the toy does not know")
            return count
        return int(self._ask("instances", timeout_s) or 0)

    def close(self) -> None:
        return


@dataclass
class ToyEngine:
    """See `atoll.engines.api.Engine`. `worker_flags` are added to every worker's command line;
    `counts`: see `ToyClient`."""

    worker_flags: tuple[str, ...] = ()
    port_of: Callable[[int], int] = field(default=lambda port: port)  # to steer into a taken port
    layouts: int = 0
    settles_s: float = 0.0
    counts: list[int | None] = field(default_factory=list)

    @property
    def traits(self) -> EngineTraits:
        return EngineTraits(
            name="toy",
            distributed=True,
            parallel_query=True,
            has_coordinator=True,
            jvm=False,
            heap_ratio=0.5,
            ratio_source="made up",
            min_heap_bytes=0,
            coordinator_bytes=0,
            overhead_bytes=0,
        )

    def locate(self, host: Host) -> Installation:
        return Installation(version="1", home="/")

    def ports(self, plan: Plan) -> int:
        return 1

    def layout(
        self,
        plan: Plan,
        installation: Installation,
        *,
        run_dir: str,
        ports: Sequence[int],
        scratch_dir: str | None = None,
    ) -> Layout:
        self.layouts += 1
        port = str(self.port_of(ports[0]))
        path = os.path.join(run_dir, "toy.sock")
        # -P: its folder has an inspect.py, which is not the standard library's.
        script = [sys.executable, "-P", os.path.abspath(__file__)]
        coordinator = ProcessSpec(
            name="coordinator",
            role=Role.COORDINATOR,
            slot=None,
            argv=(*script, "coordinator", "--port", port, "--socket", path),
            env={},
            stage=0,
            ready_port=int(port),
            ready_socket=None,
        )
        workers = [
            ProcessSpec(
                name=f"worker-{slot.index}",
                role=Role.WORKER,
                slot=slot.index,
                argv=(*script, "worker", "--port", port, *self.worker_flags),
                env={},
                stage=1,
            )
            for slot in plan.slots
        ]
        return Layout(
            processes=(coordinator, *workers),
            files={"conf/toy.conf": "x=1\n"},
            endpoints=(path,),
            access=(Access(address=f"toy://127.0.0.1:{port}", command=f"toy --port {port}"),),
        )

    def connect(self, endpoints: Sequence[str], *, timeout_s: float) -> list[Client]:
        return [ToyClient(path, self.settles_s, self.counts) for path in endpoints]

    def attach(self, table: Table) -> list[str]:
        return []


def coordinator(port: int, path: str) -> None:
    workers: list[socket.socket] = []
    server = socket.create_server(("127.0.0.1", port))  # raises where the port is in use

    def admit() -> None:
        while True:
            link, _ = server.accept()
            # A probe of readiness hangs up without a word.
            if link.recv(1):
                workers.append(link)

    threading.Thread(target=admit, daemon=True).start()
    clients = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    clients.bind(path)
    clients.listen()
    while True:
        link, _ = clients.accept()
        with link:
            link.recv(100)
            link.sendall(f"{len(workers)}\n".encode())


def worker(port: int, arguments: argparse.Namespace) -> None:
    if arguments.stubborn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for _ in range(THREADS):
        threading.Thread(target=threading.Event().wait, daemon=True).start()
    if arguments.grandchild:
        leave_behind(stubborn=arguments.stubborn)
    if arguments.mute:
        threading.Event().wait()
    link = socket.create_connection(("127.0.0.1", port))
    link.sendall(b"w")
    if arguments.move:
        os.sched_setaffinity(threading.get_native_id(), range(os.cpu_count() or 1))
    if arguments.die:
        time.sleep(0.2)
        print("ValueError: the toy is broken", file=sys.stderr, flush=True)
        os._exit(3)
    link.recv(1)  # until the coordinator is gone


def leave_behind(*, stubborn: bool) -> None:
    """A grandchild in a session of its own whose parent is dead, as daemons are made."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            if not stubborn:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
            time.sleep(3600)
        os._exit(0)
    os.wait()


def owner(arguments: argparse.Namespace, flags: tuple[str, ...]) -> None:
    """Launches, says what happens on stdout, holds until it is killed."""

    def say(*words: Any) -> None:
        print(*words, flush=True)

    running = launch(
        toy_plan(arguments.workers),
        ToyEngine(worker_flags=flags),
        machine=this_machine(),
        host=LocalHost(),
        name=arguments.name,
        grace_s=arguments.grace,
        progress=lambda line: say("progress", line),
    )
    if arguments.detach:
        say("ready")
        running.detach()
        return
    with running:
        say("ready")  # here, as an interrupt may follow at once
        running.wait()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("role", choices=("coordinator", "worker", "owner"))
    parser.add_argument("--port", type=int)
    parser.add_argument("--socket")
    parser.add_argument("--name")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--grace", type=float, default=1.0)
    flags = ("grandchild", "stubborn", "mute", "die", "move", "detach")
    for flag in flags:
        parser.add_argument(f"--{flag}", action="store_true")
    arguments = parser.parse_args()
    if arguments.role == "coordinator":
        coordinator(arguments.port, arguments.socket)
    elif arguments.role == "worker":
        worker(arguments.port, arguments)
    else:
        passed_on = [flag for flag in flags if flag != "detach" and getattr(arguments, flag)]
        try:
            with terminate_is_interrupt():
                owner(arguments, tuple(f"--{flag}" for flag in passed_on))
        except KeyboardInterrupt:
            sys.exit(130)


if __name__ == "__main__":
    main()
