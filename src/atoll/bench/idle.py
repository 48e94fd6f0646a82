"""How idle the machine is, from /proc/stat (proc(5)): the guard against a busy machine.

Figures of a machine that somebody else uses are worth little; what cannot be prevented is
waited out for a while, then recorded, then said.
"""

from __future__ import annotations

from atoll.bench.cautions import IDLE_ENOUGH
from atoll.host.api import Host
from atoll.host.cpu_times import CpuTimes, cpu_times

WINDOW_S = 0.3
PATIENCE_S = 5.0


def settled_idle_share(host: Host) -> float:
    """The idle share over the last window, waiting up to PATIENCE_S for a quiet one."""
    deadline = host.monotonic() + PATIENCE_S
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
