"""A topology as QEMU's command line and as the ACPI table that numbers its CPUs. Pure.

Two things QEMU cannot be told on its command line are in a MADT of our own (ACPI 6.5, 5.2.12),
which the kernel takes from the initramfs in place of QEMU's (Documentation/admin-guide/acpi/
initrd_table_override.rst): the order in which Linux numbers CPUs, and CPUs that are left out.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from atoll.guest.topology import Place, Topology

# QEMU's own tables name themselves so; an override must, with a higher revision.
OEM_ID, OEM_TABLE_ID, OEM_REVISION = b"BOCHS ", b"BXPC    ", 2
LOCAL_APIC_ADDRESS = 0xFEE00000
IO_APIC_ADDRESS = 0xFEC00000
# q35: the timer on pin 2, the interrupts of PCI and of ACPI level-triggered and active high.
OVERRIDES = ((0, 2, 0), (5, 5, 0xD), (9, 9, 0xD), (10, 10, 0xD), (11, 11, 0xD))


def modules(topology: Topology) -> int:
    """CPU modules per die: where a die has several L3 domains, a module is one."""
    return max(1, topology.l3 // topology.dies)


def cores_per_module(topology: Topology) -> int:
    return topology.l3 * topology.cores // (topology.dies * modules(topology))


def ids(topology: Topology, place: Place) -> dict[str, int]:
    """QEMU's name of a hardware thread; it refuses an id of a level that the machine lacks."""
    found = {"socket-id": place.package}
    if topology.dies > 1:
        found["die-id"] = place.die
    if modules(topology) > 1:
        found["module-id"] = place.l3 % modules(topology)
    found["core-id"] = place.core % cores_per_module(topology)
    found["thread-id"] = place.thread
    return found


def apic_id(topology: Topology, place: Place) -> int:
    """Fields as wide as their counts need, as QEMU and Intel's SDM (vol. 3, 9.9.1) lay them out."""
    counts = {
        "socket-id": topology.packages,
        "die-id": topology.dies,
        "module-id": modules(topology),
        "core-id": cores_per_module(topology),
        "thread-id": topology.threads,
    }
    found = 0
    for level, index in ids(topology, place).items():
        found = found << (counts[level] - 1).bit_length() | index
    return found


def madt(topology: Topology) -> bytes:
    """The Multiple APIC Description Table: the CPUs in the order of their numbers."""
    places = topology.places()
    body = struct.pack("<II", LOCAL_APIC_ADDRESS, 1)
    for position in topology.numbering:
        # MAX_CPUS keeps the APIC id in its byte, whatever the shape.
        body += struct.pack("<BBBBI", 0, 8, position, apic_id(topology, places[position]), 1)
    body += struct.pack("<BBBBII", 1, 12, 0, 0, IO_APIC_ADDRESS, 0)
    for source, pin, flags in OVERRIDES:
        body += struct.pack("<BBBBIH", 2, 10, 0, source, pin, flags)
    body += struct.pack("<BBBHB", 4, 6, 0xFF, 0, 1)  # all CPUs: NMI on LINT1

    def header(checksum: int) -> bytes:
        return struct.pack(
            "<4sIBB6s8sI4sI",
            *(b"APIC", 36 + len(body), 3, checksum, OEM_ID, OEM_TABLE_ID, OEM_REVISION, b"BXPC", 1),
        )

    return header(-sum(header(0) + body) & 0xFF) + body


def cpu_argument(topology: Topology, lacking: Sequence[str], hidden: Sequence[str] = ()) -> str:
    """`-cpu`, without the features that shall be `hidden`. TCG drops topoext, without which an
    EPYC has no L3 domains: it is forced, and every feature that TCG lacks is named as off, so that
    nothing else is forced with it."""
    words = [topology.cpu]
    if topology.amd and not topology.hide_l3:
        off = sorted(set(lacking) - {"topoext"})
        words += ["+topoext", "x-force-features=on", *(f"-{name}" for name in off)]
    if topology.hide_l3:
        words.append("l3-cache=off")
    words += [f"-{name}" for name in hidden]
    return ",".join(words)


def arguments(topology: Topology, lacking: Sequence[str], hidden: Sequence[str] = ()) -> list[str]:
    """What makes QEMU this machine: CPUs, caches, nodes, distances."""
    machine = "q35,hpet=off"
    if not topology.hide_l3:
        level = "module" if modules(topology) > 1 else "die" if topology.l3 > 1 else "socket"
        machine += f",smp-cache.0.cache=l3,smp-cache.0.topology={level}"
    count = len(topology.places())
    argv = [
        *("-machine", machine),
        *("-cpu", cpu_argument(topology, lacking, hidden)),
        "-smp",
        f"{count},sockets={topology.packages},dies={topology.dies},modules={modules(topology)},"
        f"cores={cores_per_module(topology)},threads={topology.threads}",
        *("-m", f"{sum(topology.memory_mib)}M"),
    ]
    for node, memory in enumerate(topology.memory_mib):
        backed = ""
        if memory:
            argv += ["-object", f"memory-backend-ram,id=memory{node},size={memory}M"]
            backed = f",memdev=memory{node}"
        argv += ["-numa", f"node,nodeid={node}{backed}"]
    for place in topology.places():
        named = ",".join(f"{name}={value}" for name, value in ids(topology, place).items())
        argv += ["-numa", f"cpu,node-id={place.node},{named}"]
    nodes = range(len(topology.memory_mib))
    for one in nodes:
        for other in nodes:
            value = topology.distance(one, other)
            argv += ["-numa", f"dist,src={one},dst={other},val={value}"]
    return argv


def network(topology: Topology) -> list[str]:
    """The network cards. After all other devices, which would be put on the buses of the nodes."""
    nodes = range(topology.cpu_nodes if topology.nics else 0)
    return [word for node in nodes for word in _nic(node)]


def _nic(node: int) -> list[str]:
    """A network card on a PCI bus of the node, connected to nothing."""
    return [
        *("-device", f"pxb-pcie,id=bus{node},bus=pcie.0,bus_nr={16 * (node + 1)},numa_node={node}"),
        *("-device", f"pcie-root-port,id=port{node},bus=bus{node},chassis={node + 1}"),
        *("-netdev", f"hubport,id=net{node},hubid={node}"),
        *("-device", f"virtio-net-pci,netdev=net{node},bus=port{node},romfile="),
    ]
