"""The process table, kept from one look to the next.

Only processes that are new since the last look are read: /proc/PID/stat of every process of a
large machine would cost more than all else. A pid that the kernel gives to another process between
two looks keeps its old entry; whether a planned process is the recorded one is checked elsewhere
by its start time.
"""

from __future__ import annotations

from atoll.host.api import Host
from atoll.host.procfs import Stat, parse_stat
from atoll.inspect.processes import GONE


class ProcessList:
    def __init__(self, host: Host) -> None:
        self._host = host
        self.table: dict[int, Stat] = {}

    def refresh(self) -> bool:
        """Whether processes have begun or ended since the last call."""
        found = {int(name) for name in self._host.list_dir("/proc") if name.isdigit()}
        gone, begun = self.table.keys() - found, found - self.table.keys()
        for pid in gone:
            del self.table[pid]
        for pid in begun:
            try:
                self.table[pid] = parse_stat(self._host.read_text(f"/proc/{pid}/stat"))
            except GONE:
                continue
        return bool(gone or begun)
