"""Where the machine's CPU time went, and how old this process is (proc(5))."""

from __future__ import annotations

import os
from typing import NamedTuple

from atoll.host.api import Host
from atoll.host.procfs import parse_stat


class CpuTimes(NamedTuple):
    """Clock ticks since boot, all CPUs together."""

    idle: int  # iowait counts as idle
    steal: int  # taken by the hypervisor
    total: int

    @property
    def busy(self) -> int:
        return self.total - self.idle - self.steal


def cpu_times(host: Host) -> CpuTimes:
    """All zero where the system does not tell."""
    try:
        first = host.read_text("/proc/stat").split("\n", 1)[0].split()
    except OSError:
        return CpuTimes(0, 0, 0)
    # user nice system idle iowait irq softirq steal; guest time is already within user and nice.
    numbers = [int(field) for field in first[1:9]]
    if len(numbers) < 8:
        return CpuTimes(0, 0, 0)
    return CpuTimes(idle=numbers[3] + numbers[4], steal=numbers[7], total=sum(numbers))


def process_started_s(host: Host) -> float:
    """When this process began, on the host's monotonic clock; now, where that is not told."""
    now_s = host.monotonic()
    try:
        uptime_s = float(host.read_text("/proc/uptime").split()[0])
        start_ticks = parse_stat(host.read_text("/proc/self/stat")).start_ticks
    except (OSError, ValueError, IndexError):
        return now_s
    return now_s - max(0.0, uptime_s - start_ticks / os.sysconf("SC_CLK_TCK"))
