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


def cpu_times(host: Host, cpus: Iterable[int] | None = None) -> CpuTimes:
    """The times of these CPUs; None: of all CPUs. All zero if the system does not report them."""
    names = {"cpu"} if cpus is None else {f"cpu{cpu}" for cpu in cpus}
    try:
        lines = [line.split() for line in host.read_text("/proc/stat").splitlines()]
    except OSError:
        return CpuTimes(0, 0, 0)
    idle = steal = total = 0
    for line in lines:
        # user nice system idle iowait irq softirq steal; guest time is within user and nice.
        ticks = [int(field) for field in line[1:9] if field.isdecimal()]
        if not line or line[0] not in names or len(ticks) < 8:
            continue
        idle += ticks[3] + ticks[4]
        steal += ticks[7]
        total += sum(ticks)
    return CpuTimes(idle, steal, total)


def process_started_s(host: Host) -> float:
    """When this process started, on the host's monotonic clock; now if that is unknown."""
    now_s = host.monotonic()
    try:
        uptime_s = float(host.read_text("/proc/uptime").split()[0])
        start_ticks = parse_stat(host.read_text("/proc/self/stat")).start_ticks
    except (OSError, ValueError, IndexError):
        return now_s
    return now_s - max(0.0, uptime_s - start_ticks / os.sysconf("SC_CLK_TCK"))
