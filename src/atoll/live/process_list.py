"""The process table, kept from one look to the next.

/proc/PID/stat of every process of a large machine would cost more than all else, so only some are
read: processes that are new, those whose parent has ended (they have another one now), and those
that the caller suspects, because the kernel may have given their pid to another process.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from atoll.host.api import Host
from atoll.host.procfs import Stat, parse_stat
from atoll.inspect.processes import GONE


class ProcessList:
    """`begun`: the processes that began between the last two calls of `refresh`."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.table: dict[int, Stat] = {}
        self.begun: set[int] = set()

    def refresh(self, suspects: Iterable[int] = ()) -> bool:
        """Whether processes have begun, ended or got another parent since the last call."""
        first, self.begun = not self.table, set()
        found = {int(name) for name in self._host.list_dir("/proc") if name.isdigit()}
        gone = self.table.keys() - found
        for pid in gone:
            del self.table[pid]
        changed = self._read({*(found - self.table.keys()), *(found & {*suspects})})
        changed = self._read([pid for pid in self.table if self._is_orphan(pid)]) or changed
        if first:
            self.begun.clear()
        return changed or bool(gone)

    def _is_orphan(self, pid: int) -> bool:
        """Whether its parent has ended, also if another process, which is younger, has its pid."""
        stat = self.table[pid]
        parent = self.table.get(stat.parent)
        return stat.parent != 0 and (parent is None or parent.start_ticks > stat.start_ticks)

    def _read(self, pids: Iterable[int]) -> bool:
        changed = False
        for pid in pids:
            was = self.table.pop(pid, None)
            with suppress(*GONE):
                self.table[pid] = parse_stat(self._host.read_text(f"/proc/{pid}/stat"))
            now = self.table.get(pid)
            if now and (was is None or was.start_ticks != now.start_ticks):
                self.begun.add(pid)
            changed |= _link(was) != _link(now)
        return changed


def _link(stat: Stat | None) -> tuple[int, int, bool] | None:
    return (stat.start_ticks, stat.parent, stat.lives) if stat else None
