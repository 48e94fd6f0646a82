"""Who else turns the tuners: daemons that run here, the service manager, the kernel's command line.

Two programs that turn the same switch undo each other's work, so advice names them.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

from atoll.host.api import Host
from atoll.inspect.processes import process_table
from atoll.schema.advice import Neighbour

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
    "systemd": (
        ("threads", "memory"),
        "starts services with CPUAffinity=, NUMAPolicy=, AllowedCPUs= of their units, if set",
    ),
}
# Parameter of the kernel -> the knob that it sets at boot.
_BOOT = {
    "numa_balancing": ("numa-balancing",),
    "transparent_hugepage": ("thp-enabled",),
    "isolcpus": ("threads",),
    "nohz_full": ("threads",),
    "numa": ("memory",),
}


def neighbours(host: Host) -> tuple[Neighbour, ...]:
    """Daemons first. Raises nothing: an unreadable /proc shows none."""
    running: set[str] = set()
    with suppress(OSError):
        running = {stat.comm for stat in process_table(host).values() if stat.lives}
    return (*_daemons(running, _tuned_profile(host)), *_boot_parameters(host))


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
