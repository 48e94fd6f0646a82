"""Machines that share this one's CPUs and memory, but have NICs of their own with a rate each.

    a namespace with a bridge for each NIC's network ── veth ── nic0, nic1 in the namespace of one
                                                     ── veth ── nic0, nic1 in that of another

A process holds each namespace and dies with this one, so that nothing is left however it ends. Both
ends of a veth limit what they send (tc-tbf(8)), which gives a NIC its rate in both directions.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from atoll.errors import EngineFailed
from atoll.host.api import Child, Host
from atoll.host.caller import environment
from atoll.host.programs import find_program

_LIMIT_S = 10.0
_BURST_BYTES = 64 << 10  # a whole packet of the largest size; also what 100 Mbit/s send in 5 ms
_QUEUE_MS = 50


class Nic(NamedTuple):
    name: str
    address: str  # IPv4; the NICs of a network are in one /24
    rate_mbit_s: float


class VirtualMachine(NamedTuple):
    inside: tuple[str, ...]  # the beginning of a command line that runs in its namespace
    pid: int  # of a process there


def network_fault(host: Host) -> str:
    """Why there can be no such machines here; empty if there can be."""
    if host.user_id() != 0:
        return "it needs root, for network namespaces"
    missing = [name for name in ("ip", "tc", "nsenter", "unshare") if find_program(name) is None]
    if missing:
        return f"it needs {missing[0]} (packages iproute2 and util-linux)"
    if host.run(["unshare", "-n", "true"], timeout_s=_LIMIT_S).returncode:
        return "it needs network namespaces, which may not be made here (unshare -n true)"
    return ""


@contextmanager
def virtual_network(
    host: Host, machines: Sequence[Sequence[Nic]]
) -> Iterator[list[VirtualMachine]]:
    """The machines, each with its NICs; NIC k of each is on network k. Raises EngineFailed."""
    with ExitStack() as stack:
        switch, *others = (stack.enter_context(_namespace(host)) for _ in range(len(machines) + 1))
        for number in range(max(map(len, machines))):
            _run(host, switch, "ip", "link", "add", f"net{number}", "type", "bridge")
            _run(host, switch, "ip", "link", "set", f"net{number}", "up")
        for place, (machine, nics) in enumerate(zip(others, machines, strict=True)):
            _run(host, machine, "ip", "link", "set", "lo", "up")
            for number, nic in enumerate(nics):
                port = f"m{place}n{number}"
                _run(host, machine, "ip", "link", "add", nic.name, "type", "veth", "peer", "name",
                     port, "netns", str(switch.pid))  # fmt: skip
                _run(host, switch, "ip", "link", "set", port, "master", f"net{number}", "up")
                _run(host, machine, "ip", "addr", "add", f"{nic.address}/24", "dev", nic.name)
                _run(host, machine, "ip", "link", "set", nic.name, "up")
                for end, device in ((machine, nic.name), (switch, port)):
                    _limit(host, end, device, nic.rate_mbit_s)
        yield others


@contextmanager
def _namespace(host: Host) -> Iterator[VirtualMachine]:
    """A network namespace, which ends with its last process."""
    holder: Child | None = None
    try:
        holder = host.spawn(
            ["unshare", "-n", "sleep", "infinity"],
            env=environment(),
            log=os.devnull,
            tied_by=signal.SIGKILL,
        )
        limit_s = time.monotonic() + _LIMIT_S
        while _network_of(holder.pid) in ("", _network_of(os.getpid())):
            if holder.poll() is not None or time.monotonic() > limit_s:
                raise EngineFailed("no network namespace can be made here; try: unshare -n true")
            time.sleep(0.01)
        inside = ("nsenter", "-t", str(holder.pid), "-n", "--")
        yield VirtualMachine(inside, holder.pid)
    finally:
        if holder is not None:
            holder.signal(signal.SIGKILL)
            holder.wait()


def _network_of(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/net")
    except OSError:
        return ""


def _limit(host: Host, machine: VirtualMachine, device: str, rate_mbit_s: float) -> None:
    _run(host, machine, "tc", "qdisc", "add", "dev", device, "root", "tbf",
         "rate", f"{rate_mbit_s:g}mbit", "burst", str(_BURST_BYTES),
         "latency", f"{_QUEUE_MS}ms")  # fmt: skip


def _run(host: Host, machine: VirtualMachine, *argv: str) -> None:
    try:
        done = host.run([*machine.inside, *argv], timeout_s=_LIMIT_S)
    except TimeoutError as fault:
        raise EngineFailed(f"{' '.join(argv)}: {fault}") from None
    if done.returncode:
        raise EngineFailed(f"{' '.join(argv)}: {' '.join(done.stderr.split())}")
