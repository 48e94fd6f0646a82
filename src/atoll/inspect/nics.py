"""Where a deployment's instances listen, and what its NICs have moved.

The counters of an interface count the traffic of the whole machine. They do not count what
instances of one machine send each other: the kernel delivers that over lo, whatever address it is
sent to.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterable, Sequence

from atoll.host.api import Host
from atoll.inspect.listeners import bound_addresses, peers
from atoll.schema.deployment import NicCount, ProcessRecord
from atoll.schema.inspection import Finding, NicLook, Severity
from atoll.schema.plan import Plan

_LO = "lo"
_FIRST_TABLE = 7001  # of routes by source: no program is known to use it


def count_bytes(host: Host, plan: Plan) -> tuple[NicCount, ...]:
    """The counters of the plan's NICs and of lo; of no interface if the plan names no address."""
    if not plan.addresses:
        return ()
    names = sorted({*_holders(host, plan).values(), _LO})
    return tuple(count for name in names for count in _count(host, name))


def _holders(host: Host, plan: Plan) -> dict[str, str]:
    """Address of the plan -> the interface that has it now: a plan made elsewhere names none."""
    return {
        address: name
        for name, own in host.addresses().items()
        for address in own
        if address in plan.addresses
    }


def _count(host: Host, name: str) -> list[NicCount]:
    folder = f"/sys/class/net/{name}/statistics"
    try:
        received, sent = (int(host.read_text(f"{folder}/{way}_bytes")) for way in ("rx", "tx"))
    except (OSError, ValueError):
        return []  # the interface is gone
    return [NicCount(name=name, rx_bytes=received, tx_bytes=sent)]


def look_at_nics(host: Host, plan: Plan, since: Iterable[NicCount]) -> tuple[NicLook, ...]:
    """What the NICs have moved. `since`: their counters when the deployment started."""
    before = {count.name: count for count in since}
    holders = _holders(host, plan)
    looks = []
    for now in count_bytes(host, plan):
        first = before.get(now.name)
        if first and (first.rx_bytes > now.rx_bytes or first.tx_bytes > now.tx_bytes):
            first = None  # the interface was created since then
        own = [slot for slot in plan.slots if holders.get(slot.address or "") == now.name]
        looks.append(
            NicLook(
                name=now.name,
                address=own[0].address if own else None,
                slots=tuple(slot.index for slot in own),
                rx_bytes=now.rx_bytes - (first.rx_bytes if first else 0),
                tx_bytes=now.tx_bytes - (first.tx_bytes if first else 0),
                since="deployment" if first else "interface",
            )
        )
    return tuple(looks)


def listener_findings(host: Host, process: ProcessRecord, pids: Sequence[int]) -> list[Finding]:
    """Drift if one of the processes `pids`, which come from `process`, has opened its port at
    another address than planned. If none has opened it, it is still starting. Another address of
    loopback beside the planned one is none: an agent for JMX may listen there."""
    spec = process.spec
    if spec.ready_port is None or not pids:
        return []
    found = bound_addresses(host, pids, spec.ready_port)
    if spec.ready_address in found:
        found = frozenset(x for x in found if not ipaddress.ip_address(x).is_loopback)
    return [
        Finding(
            code="listens-elsewhere",
            severity=Severity.DRIFT,
            process=spec.name,
            pid=pids[0],
            expected=f"port {spec.ready_port} at {spec.ready_address}",
            found=address,
            cause="the engine's configuration was changed, or the engine ignores its address",
            remedy="set the engine's address again, or plan again with --listen",
        )
        for address in sorted(found - {spec.ready_address})
    ]


def route_findings(host: Host, plan: Plan) -> list[Finding]:
    """Drift if packets from the address of a slot leave over another interface than that which has
    the address, as with two NICs on one network: to a neighbour of the address, or to a peer that
    it has a connection with."""
    holders = _holders(host, plan)
    local = {address for own in host.addresses().values() for address in own}
    findings = []
    for number, (address, nic) in enumerate(sorted(holders.items())):
        for peer in (_neighbour(address, local), *peers(host, address)):
            route = None if nic == _LO or peer in local else host.route(address, peer)
            if route is None or route.interface == nic:
                continue
            slots = [slot.index for slot in plan.slots if slot.address == address]
            table = _FIRST_TABLE + number
            via = " via GATEWAY" if route.gateway else ""
            findings.append(
                Finding(
                    code="leaves-elsewhere",
                    severity=Severity.DRIFT,
                    process=f"slots at {address}" if len(slots) != 1 else f"slot {slots[0]}",
                    pid=0,
                    expected=f"packets from {address} leave over {nic}",
                    found=f"to {peer} they leave over {route.interface}",
                    cause="the kernel chooses a route by the destination alone, and "
                    f"{route.interface}'s comes first",
                    remedy=f"ip route add {route.subnet}{via} dev {nic} table {table} && "
                    f"ip rule add from {address} table {table}; to undo: ip rule del table "
                    f"{table} && ip route flush table {table}",
                )
            )
            break
    return findings


def _neighbour(address: str, local: Collection[str]) -> str:
    """An address close by that is not of this machine."""
    number = int(ipaddress.IPv4Address(address))
    near = (str(ipaddress.IPv4Address(number ^ change)) for change in range(1, 256))
    return next(each for each in near if each not in local)
