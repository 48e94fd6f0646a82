"""Where the machine's CPU time went, from the first line of /proc/stat (proc(5))."""

from __future__ import annotations

from typing import NamedTuple

from atoll.host.api import Host


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
