"""How much memory the kernels may use, given free memory, the cgroup's limit and the node.

A part always stays free, for the probe's tables and for the machine's other work.
"""

from __future__ import annotations

from atoll.host.api import Host
from atoll.host.procfs import status_field
from atoll.schema.machine import Machine

USED_AT_MOST = 0.75
_CGROUP = "/sys/fs/cgroup"


def free_bytes(host: Host, machine: Machine) -> int:
    """The bytes for all kernels together, now."""
    limits = [machine.memory_bytes] if machine.memory_bytes else []
    available = _kib(_text(host, "/proc/meminfo"), "MemAvailable")
    if available is not None:
        limits.append(available)
    cgroup = _cgroup_left(host)
    if cgroup is not None:
        limits.append(cgroup)
    elif machine.allowed.memory_max_bytes is not None:
        limits.append(machine.allowed.memory_max_bytes)
    return int(min(limits, default=0) * USED_AT_MOST)


def node_free_bytes(host: Host, node: int) -> int:
    """The bytes available on one memory node, now: free memory and page cache that can be dropped.
    0 if there is no such node. A system without NUMA folders has everything on node 0."""
    text = _text(host, f"/sys/devices/system/node/node{node}/meminfo")
    if not text:
        available = _kib(_text(host, "/proc/meminfo"), "MemAvailable") or 0
        return int(available * USED_AT_MOST) if node == 0 else 0
    # 'Node 0 MemFree:   123 kB'
    plain = "\n".join(line.split(maxsplit=2)[-1] for line in text.splitlines() if line.strip())
    free = (_kib(plain, "MemFree") or 0) + (_kib(plain, "Inactive(file)") or 0)
    return int(free * USED_AT_MOST)


def _cgroup_left(host: Host) -> int | None:
    """The least that any memory.max from this process's cgroup (v2) upwards leaves; page cache that
    can be dropped counts as left. None: no limit is visible."""
    path = next(
        (
            line.split(":", 2)[2]
            for line in _text(host, "/proc/self/cgroup").splitlines()
            if line.startswith("0::")
        ),
        "/",
    )
    limits: list[int] = []
    parts = [part for part in path.split("/") if part]
    for depth in range(len(parts), -1, -1):
        folder = "/".join([_CGROUP, *parts[:depth]])
        most, now = (_text(host, f"{folder}/memory.{name}") for name in ("max", "current"))
        if most.isdecimal() and now.isdecimal():
            given_up = _number(_text(host, f"{folder}/memory.stat"), "inactive_file")
            limits.append(max(0, int(most) - max(0, int(now) - given_up)))
    return min(limits, default=None)


def _kib(text: str, field: str) -> int | None:
    words = status_field(text, field).split()
    return int(words[0]) * 1024 if words and words[0].isdecimal() else None


def _number(text: str, field: str) -> int:
    lines = (line.split(" ", 1) for line in text.splitlines() if " " in line)
    return next((int(value) for name, value in lines if name == field and value.isdecimal()), 0)


def _text(host: Host, path: str) -> str:
    try:
        return host.read_text(path).strip()
    except OSError:
        return ""
