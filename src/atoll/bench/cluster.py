"""The processes of a running cluster, as far as they are on this machine.

The cluster's processes are those that listen at its addresses, with all their descendants. The
rules of `atoll inspect` judge each of them: a process of one of Atoll's deployments against the
deployment's plan, any other process against its own masks and policies.
"""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Iterable, Sequence

from atoll.bench.address import ClusterAddress
from atoll.errors import AtollError, NotPermitted, ProcessGone
from atoll.host.api import Host
from atoll.inspect.clues import read_numa_system
from atoll.inspect.inspection import inspect_process
from atoll.inspect.listeners import holders, tcp_listeners, unix_listeners
from atoll.inspect.malloc import MallocFiles
from atoll.inspect.processes import MARK, descendants, environment, process_table
from atoll.inspect.resctrl import L3Monitor
from atoll.inspect.spread import SpreadReader
from atoll.inspect.targets import refuse_foreign
from atoll.inspect.verify import brief, verify
from atoll.schema.inspection import Inspection, Severity
from atoll.schema.results import ProcessSeen
from atoll.supervise.stop import living

_BANDWIDTH_S = 0.01  # bandwidth is not reported here, so do not wait for it


def look_at_cluster(
    host: Host, addresses: Sequence[ClusterAddress], *, deep: bool
) -> tuple[tuple[ProcessSeen, ...], str]:
    """The processes behind the addresses, and a description of what could not be seen.

    `deep`: memory, allocator and JVM too, which is slow if memory is large.
    """
    near = [
        (address, here)
        for address in addresses
        if (here := addresses_here(address.host)) or address.socket
    ]
    if not near:
        return (), "its processes run on other machines and were not inspected"
    sockets = frozenset[str]().union(*(_sockets(host, address, here) for address, here in near))
    roots = holders(host, sockets)
    if not roots:
        whose = (
            "another user's process listens there; run atoll as root (sudo) to inspect it"
            if sockets
            else "no process seen from here listens there (is it in a container?)"
        )
        return (), whose
    table = process_table(host)
    family = dict.fromkeys(
        pid for root in roots for pid in (root, *(one.pid for one in descendants(table, root)))
    )
    found, unknown = _judge(host, list(family), deep=deep)
    far = len(addresses) - len(near)
    if far:
        unknown.append(f"{far} of its {len(addresses)} addresses are not on this machine")
    return tuple(_seen(one) for one in found), "; ".join(dict.fromkeys(unknown))


def addresses_here(name: str) -> list[str]:
    """The addresses of a host name that belong to this machine, in the order a client tries them.

    An address belongs to this machine if one can bind to it.
    """
    try:
        found = socket.getaddrinfo(name.strip("[]"), 0, type=socket.SOCK_STREAM) if name else []
    except (OSError, UnicodeError):
        return []  # not a name that resolves
    here = []
    for family, kind, protocol, _, address in found:
        try:
            with socket.socket(family, kind, protocol) as probe:
                probe.bind(address)
                here.append(str(address[0]))
        except OSError:
            continue
    return here


def _sockets(host: Host, address: ClusterAddress, here: Sequence[str]) -> frozenset[str]:
    """The listening sockets that a client reaches at the address."""
    if address.socket:
        return unix_listeners(host, address.socket, address.port)
    found = (tcp_listeners(host, each, address.port) for each in here if address.port)
    return next((sockets for sockets in found if sockets), frozenset())


def _judge(host: Host, pids: Sequence[int], *, deep: bool) -> tuple[list[Inspection], list[str]]:
    found: list[Inspection] = []
    unknown: list[str] = []
    ours = _of_deployments(host, pids, deep=deep)
    machine, files, uid = read_numa_system(host), MallocFiles(host), host.user_id()
    l3, spreads = L3Monitor(host, _BANDWIDTH_S), SpreadReader()
    for pid in pids:
        if pid in ours:
            found.append(ours[pid])
            continue
        try:
            refuse_foreign(host, pid, uid=uid)
            found.append(
                inspect_process(host, pid, machine, deep=deep, files=files, l3=l3, spreads=spreads)
            )
        except ProcessGone:
            continue  # for example a server's process for one connection
        except NotPermitted as fault:
            unknown.append(str(fault))
    return found, unknown


def _of_deployments(host: Host, pids: Iterable[int], *, deep: bool) -> dict[int, Inspection]:
    """The processes that belong to Atoll's deployments, inspected against their plans."""
    names = {environment(host, pid).get(MARK, "").rpartition(":")[0] for pid in pids} - {""}
    found: dict[int, Inspection] = {}
    for name in names:
        try:
            deployment = living(name, host)
            if deployment is not None:
                verified = verify(host, deployment, deep=deep, interval_s=_BANDWIDTH_S)
                found |= {one.pid: one for one in verified.processes}
        except AtollError:
            continue  # it has just ended: its processes are inspected like any other
    return found


def _seen(one: Inspection) -> ProcessSeen:
    def words(severity: Severity) -> tuple[str, ...]:
        return tuple(brief(found) for found in one.findings if found.severity is severity)

    return ProcessSeen(
        pid=one.pid,
        process=one.process,
        masks=dict(sorted(Counter(thread.cpus for thread in one.threads).items())),
        memory_policy=one.memory_policy,
        bytes_by_node=one.memory.bytes_by_node if one.memory else {},
        drift=words(Severity.DRIFT),
        notes=words(Severity.NOTE),
    )
