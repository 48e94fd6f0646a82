"""How the CPUs spent their time, and when this process started (proc(5))."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple

from atoll.host.api import Host
from atoll.host.procfs import parse_stat


class CpuTimes(NamedTuple):
    """Clock ticks since boot, summed over the CPUs."""

    idle: int  # iowait counts as idle
    steal: int  # taken by the hypervisor
    total: int

    @property
    def busy(self) -> int:
        return self.total - self.idle - self.steal


_NOTHING = CpuTimes(0, 0, 0)


def cpu_times(host: Host, cpus: Iterable[int] | None = None) -> CpuTimes:
    """The times of these CPUs; None: of all CPUs. All zero if the system does not report them."""
    found = times_by_name(host)
    names = ["cpu"] if cpus is None else [f"cpu{cpu}" for cpu in set(cpus)]
    times = [found[name] for name in names if name in found]
    return CpuTimes(*(sum(ticks) for ticks in zip(*times, strict=True))) if times else _NOTHING


def times_by_name(host: Host) -> dict[str, CpuTimes]:
    """'cpu0' and so on, and 'cpu' for all. Empty if the system does not report them."""
    try:
        text = host.read_text("/proc/stat")
    except OSError:
        return {}
    found = {}
    for line in text.split("\n"):
        if not line.startswith("cpu"):
            break  # they come first; the line of interrupts has thousands of words
        # user nice system idle iowait irq softirq steal; guest time is within user and nice.
        name, *fields = line.split()
        ticks = [int(field) for field in fields[:8] if field.isdecimal()]
        if len(ticks) == 8:
            found[name] = CpuTimes(ticks[3] + ticks[4], ticks[7], sum(ticks))
    return found


def process_started_s(host: Host) -> float:
    """When this process started, on the host's monotonic clock; now if that is unknown."""
    now_s = host.monotonic()
    try:
        uptime_s = float(host.read_text("/proc/uptime").split()[0])
        start_ticks = parse_stat(host.read_text("/proc/self/stat")).start_ticks
    except (OSError, ValueError, IndexError):
        return now_s
    return now_s - max(0.0, uptime_s - start_ticks / os.sysconf("SC_CLK_TCK"))
