"""How idle the machine is, from /proc/stat (proc(5)).

Figures from a busy machine are worth little. The bench waits a while for other work to end, then
measures anyway, records how idle the machine was, and warns.
"""

from __future__ import annotations

from atoll.bench.cautions import IDLE_ENOUGH
from atoll.host.api import Host
from atoll.host.cpu_times import CpuTimes, cpu_times

WINDOW_S = 0.3


def wait_until_idle(host: Host, longest_s: float) -> float:
    """Wait up to `longest_s` for an idle window; returns the idle share of the last window."""
    deadline = host.monotonic() + longest_s
    while True:
        before = cpu_times(host)
        host.sleep(WINDOW_S)
        share = idle_between(before, cpu_times(host))
        if share >= IDLE_ENOUGH or host.monotonic() >= deadline:
            return share


def idle_between(before: CpuTimes, after: CpuTimes) -> float:
    """Share of idle time between two readings; 1 if no time passed."""
    idle, total = after.idle - before.idle, after.total - before.total
    return min(1.0, max(0.0, idle / total)) if total > 0 else 1.0
