"""Memory bandwidth and L3 occupancy of a process by L3 domain, from resctrl's monitors.

Follows the kernel's Documentation/filesystems/resctrl.rst. A monitor counts a group of tasks, not
a process: the numbers are those of the groups that contain the process's threads, with everything
else in those groups (by default every task that is in no other group). Atoll mounts nothing and
creates no group; where resctrl is not mounted there is no data.

Bandwidth is the difference of two reads. With sub-NUMA clustering (mon_sub_L3_YY) a domain's
number is its sum, as in the kernel's own file. 'Unavailable', 'Error' and 'Unassigned' count as
unknown. The module was tested only on trees in memory built after that document, because no test
machine has the feature.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from atoll.host.api import Host
from atoll.schema.inspection import L3Look

_OCCUPANCY, _TOTAL, _LOCAL = "llc_occupancy", "mbm_total_bytes", "mbm_local_bytes"
_DOMAIN = re.compile(r"mon_L3_(\d+)")
_NO_GROUPS = frozenset({"info", "mon_data", "mon_groups"})

# domain -> monitor -> value; None: the kernel gives no value
Counts = dict[int, dict[str, int | None]]


@dataclass(frozen=True, slots=True)
class _Reading:
    """The counts of every group at one time."""

    at_s: float
    by_group: Mapping[str, Counts]


class L3Monitor:
    """Measures all groups at once, over `interval_s`, when the first process is inspected: a run
    waits once, however many processes it inspects."""

    def __init__(self, host: Host, interval_s: float) -> None:
        self._host = host
        self._interval_s = interval_s
        self._readings: tuple[_Reading, _Reading] | None = None

    def look(self, pid: int) -> tuple[L3Look, ...]:
        """The values by domain; empty if resctrl is not mounted, monitors nothing, or does not know
        the process.

        Raises PermissionError.
        """
        host = self._host
        try:
            mount = find_mount(host.read_text("/proc/self/mountinfo"))
        except FileNotFoundError:
            return ()
        groups = groups_of(host, mount, pid) if mount is not None else []
        if mount is None or not any(_counts(host, group) for group in groups):
            return ()
        if self._readings is None:
            first = _read(host, mount)
            host.sleep(self._interval_s)
            self._readings = (first, _read(host, mount))
        before, after = (_sum(reading, groups) for reading in self._readings)
        seconds = self._readings[1].at_s - self._readings[0].at_s
        return tuple(
            L3Look(
                l3=domain,
                occupancy_bytes=after[domain].get(_OCCUPANCY),
                total_bytes_per_s=_rate(before, after, domain, _TOTAL, seconds),
                local_bytes_per_s=_rate(before, after, domain, _LOCAL, seconds),
            )
            for domain in sorted(after)
        )


def memory_traffic(
    host: Host, pids: Iterable[int], *, own_groups: bool = False
) -> tuple[int, int] | None:
    """Bytes to all memory and to local memory that the processes' groups have counted since they
    were made; None if resctrl is not mounted, does not count, or may not be read. `own_groups`:
    None also if a process is in the default group, which counts the rest of the machine too."""
    try:
        mount = find_mount(host.read_text("/proc/self/mountinfo"))
        if mount is None:
            return None
        groups = dict.fromkeys(group for pid in pids for group in groups_of(host, mount, pid))
        if own_groups and mount in groups:
            return None
        domains = _sum(_read(host, mount), groups).values()
    except OSError:
        return None
    whole = local = 0
    for domain in domains:
        one, other = domain.get(_TOTAL), domain.get(_LOCAL)
        if one is None or other is None:
            return None
        whole, local = whole + one, local + other
    return (whole, local) if domains else None


def find_mount(mountinfo: str) -> str | None:
    """Where resctrl is mounted, from /proc/self/mountinfo (proc(5)). Pure."""
    for line in mountinfo.split("\n"):
        fields, _, kind = line.partition(" - ")
        if kind.split(" ")[0] == "resctrl" and len(fields.split(" ")) > 4:
            # Spaces and similar characters are written in octal.
            return re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), fields.split(" ")[4])
    return None


def groups_of(host: Host, mount: str, pid: int) -> list[str]:
    """The folders whose monitors count the process's threads, each once.

    The tasks and counts of a control group include those of its monitoring groups. Monitoring
    groups therefore come first, and a control group counts only for threads that are in none of
    them.
    """
    threads = _names(host, f"/proc/{pid}/task")
    folders = []
    for control in _controls(host, mount):
        left = threads & _tasks(host, control)
        inner = []
        for name in sorted(_names(host, f"{control}/mon_groups")):
            tasks = threads & _tasks(host, f"{control}/mon_groups/{name}")
            if tasks:
                inner.append(f"{control}/mon_groups/{name}")
                left -= tasks
        folders += [control] if left else inner
    return folders


def _controls(host: Host, mount: str) -> list[str]:
    return [mount, *(f"{mount}/{name}" for name in sorted(_names(host, mount) - _NO_GROUPS))]


def _read(host: Host, mount: str) -> _Reading:
    groups = []
    for control in _controls(host, mount):
        inner = sorted(_names(host, f"{control}/mon_groups"))
        groups += [control, *(f"{control}/mon_groups/{name}" for name in inner)]
    return _Reading(host.monotonic(), {group: _counts(host, group) for group in groups})


def _counts(host: Host, group: str) -> Counts:
    return {
        int(match[1]): {
            monitor: _value(host, f"{group}/mon_data/{name}/{monitor}")
            for monitor in (_OCCUPANCY, _TOTAL, _LOCAL)
        }
        for name in _names(host, f"{group}/mon_data")
        if (match := _DOMAIN.fullmatch(name))
    }


def _sum(reading: _Reading, groups: Iterable[str]) -> Counts:
    """The sum over the groups; unknown if one of them is unknown."""
    sums: Counts = {}
    for group in groups:
        for domain, values in reading.by_group.get(group, {}).items():
            domain_sums = sums.setdefault(domain, dict.fromkeys(values, 0))
            for monitor, value in values.items():
                so_far = domain_sums[monitor]
                domain_sums[monitor] = None if value is None or so_far is None else so_far + value
    return sums


def _rate(before: Counts, after: Counts, domain: int, monitor: str, seconds: float) -> float | None:
    first, last = before.get(domain, {}).get(monitor), after[domain].get(monitor)
    if first is None or last is None or last < first or seconds <= 0:
        return None  # a falling counter was given to another group meanwhile
    return (last - first) / seconds


def _value(host: Host, path: str) -> int | None:
    try:
        text = host.read_text(path).strip()
    except OSError:
        return None  # this processor lacks the monitor
    return int(text) if text.isascii() and text.isdecimal() else None


def _tasks(host: Host, group: str) -> set[str]:
    try:
        return set(host.read_text(f"{group}/tasks").split())
    except (FileNotFoundError, NotADirectoryError):
        return set()  # removed meanwhile, or a file rather than a group


def _names(host: Host, folder: str) -> set[str]:
    try:
        return set(host.list_dir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return set()
