"""How idle the machine is, from /proc/stat (proc(5)): the guard against a busy machine.

Figures of a machine that somebody else uses are worth little; what cannot be prevented is
waited out for a while, then recorded, then said.
"""

from __future__ import annotations

from atoll.bench.cautions import IDLE_ENOUGH
from atoll.host.api import Host

WINDOW_S = 0.3
PATIENCE_S = 5.0


def settled_idle_share(host: Host) -> float:
    """The idle share over the last window, waiting up to PATIENCE_S for a quiet one."""
    deadline = host.monotonic() + PATIENCE_S
    while True:
        before = _jiffies(host)
        host.sleep(WINDOW_S)
        share = idle_between(before, _jiffies(host))
        if share >= IDLE_ENOUGH or host.monotonic() >= deadline:
            return share


def idle_between(before: tuple[int, int], after: tuple[int, int]) -> float:
    """Share of idle time between two readings of (idle, all) jiffies; 1 if no time passed."""
    idle, total = after[0] - before[0], after[1] - before[1]
    return min(1.0, max(0.0, idle / total)) if total > 0 else 1.0


def _jiffies(host: Host) -> tuple[int, int]:
    """(idle, all) of the line 'cpu': idle and iowait count as idle. (0, 0) where unreadable."""
    try:
        first = host.read_text("/proc/stat").split("\n", 1)[0].split()
    except OSError:
        return 0, 0
    # user nice system idle iowait irq softirq steal; guest time is already within user and nice.
    numbers = [int(field) for field in first[1:9]]
    return numbers[3] + numbers[4], sum(numbers)
