"""Who else turns the tuners: daemons that run here, the service manager, the kernel's command line.

Two programs that turn the same switch undo each other's work, so advice names them.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from contextlib import suppress

from atoll.host.api import Host
from atoll.inspect.processes import process_table
from atoll.schema.advice import Neighbour
from atoll.schema.text import printable

_KNOBS_OF_TUNED = ("numa-balancing", "thp-enabled", "governor", "zone-reclaim")
# comm -> (what it turns, what it does and what to do about it)
DAEMONS: dict[str, tuple[tuple[str, ...], str]] = {
    "numad": (
        ("threads", "memory"),
        "binds busy processes to nodes and moves their pages; stop it, or exclude bound processes "
        "(numad -x PID)",
    ),
    "tuned": (
        _KNOBS_OF_TUNED,
        "sets its profile's values again when it starts or changes; put the values into a profile",
    ),
    "irqbalance": (
        ("irq-affinity",),
        "moves interrupts every 10 s; ban those that you place (--banirq)",
    ),
    "kubelet": (
        ("threads", "memory"),
        "places containers by its CPU and Topology Manager; a mask inside a container can only be "
        "narrower",
    ),
    "power-profiles-daemon": (("governor",), "sets the governor when the profile changes"),
}
# Parameter of the kernel -> the knob that it sets at boot.
_BOOT = {
    "numa_balancing": ("numa-balancing",),
    "transparent_hugepage": ("thp-enabled",),
    "isolcpus": ("threads",),
    "nohz_full": ("threads",),
    "numa": ("memory",),
}


def neighbours(host: Host, pid: int | None = None) -> tuple[Neighbour, ...]:
    """Of the process `pid`, or of what is started from here. Daemons first. Raises nothing: an
    unreadable /proc shows none."""
    running: set[str] = set()
    with suppress(OSError):
        running = {stat.comm for stat in process_table(host).values() if stat.lives}
    daemons = _daemons(running, _tuned_profile(host))
    return (*daemons, *_service(host, pid), *_boot_parameters(host))


def _daemons(running: Collection[str], profile: str) -> list[Neighbour]:
    # The kernel keeps 15 bytes of a name.
    found = [name for name in DAEMONS if name[:15] in running]
    return [
        Neighbour(
            name=f"{name} ({profile})" if name == "tuned" and profile else name,
            turns=DAEMONS[name][0],
            does=DAEMONS[name][1],
        )
        for name in found
    ]


def _service(host: Host, pid: int | None) -> list[Neighbour]:
    """systemd, for a process in a service: its unit may set the same."""
    try:
        cgroup = host.read_text(f"/proc/{'self' if pid is None else pid}/cgroup")
    except OSError:
        return []
    unit = re.search(r"([^/\s]+\.service)\b", cgroup)
    if unit is None:
        return []
    does = "its unit may set CPUAffinity=, NUMAPolicy=, AllowedCPUs= and AllowedMemoryNodes="
    return [
        Neighbour(name=printable(f"systemd ({unit[1]})"), turns=("threads", "memory"), does=does)
    ]


def _tuned_profile(host: Host) -> str:
    try:
        return host.read_text("/etc/tuned/active_profile").strip()
    except OSError:
        return ""


def _boot_parameters(host: Host) -> list[Neighbour]:
    try:
        words = host.read_text("/proc/cmdline").split()
    except OSError:
        return []
    return [
        Neighbour(name=f"boot: {word}", turns=turns, does="sets it at every boot")
        for word in words
        if (turns := _BOOT.get(word.partition("=")[0])) and "=" in word
    ]
