"""Parses the value that a user gives a knob into values of files, spelt as the kernel shows them.

A value that was written therefore reads back as the same text, and no knob needs its own
comparison. Values that the kernel would refuse are refused here, with a clearer message. The
parsers raise ValueError for wrong syntax and UsageError for a value that this machine lacks.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Collection
from dataclasses import dataclass

from atoll.errors import UsageError
from atoll.host.api import Host
from atoll.knobs.files import key_of
from atoll.knobs.values import choices, parse_keyed
from atoll.schema.cpulist import format_cpulist, parse_cpulist

_ONLINE = "/sys/devices/system/cpu/online"


@dataclass(frozen=True, slots=True)
class KnobFiles:
    """A knob's files on this machine."""

    host: Host
    paths: list[str]


def number(low: int, high: int) -> Callable[[str, KnobFiles], dict[str, str]]:
    def parse(text: str, files: KnobFiles) -> dict[str, str]:
        return dict.fromkeys(files.paths, _integer(text, low, high))

    return parse


def choice(text: str, files: KnobFiles) -> dict[str, str]:
    for path in files.paths:
        allowed = choices(files.host.read_text(path))
        if text not in allowed:
            raise UsageError(f"this kernel only has {', '.join(allowed)}")
    return dict.fromkeys(files.paths, text)


def governor(text: str, files: KnobFiles) -> dict[str, str]:
    policies = {key: path for path in files.paths if (key := key_of(path)) is not None}
    allowed = {key: found for key, path in policies.items() if (found := _governors(path, files))}
    if "=" in text:
        asked = _of_these(parse_keyed(text), allowed, "CPU policy with CPUs online")
    else:
        asked = dict.fromkeys(allowed, text)
    for key, value in asked.items():
        if value not in allowed[key]:
            raise UsageError(f"CPU policy {key} only has {', '.join(allowed[key])}")
    return {policies[key]: value for key, value in asked.items()}


def _governors(path: str, files: KnobFiles) -> list[str]:
    """Empty if all CPUs of the policy are offline: the kernel then keeps the folder and returns
    EBUSY (drivers/cpufreq/cpufreq.c, show)."""
    known = path.rpartition("/")[0] + "/scaling_available_governors"
    try:
        return files.host.read_text(known).split()
    except OSError as fault:
        if fault.errno == errno.EBUSY:
            return []
        raise


def weights(text: str, files: KnobFiles) -> dict[str, str | None]:
    """All weights, even unchanged ones (None): the ratio is the value. `auto` is turned off
    first."""
    nodes = {key: path for path in files.paths if (key := key_of(path)) is not None}
    asked = _of_these(parse_keyed(text), nodes, "node")
    mode: dict[str, str | None] = {path: "false" for path in files.paths if key_of(path) is None}
    kept = dict.fromkeys(nodes.values())
    return mode | kept | {nodes[key]: _integer(value, 1, 255) for key, value in asked.items()}


def irqs(text: str, files: KnobFiles) -> dict[str, str]:
    online = set(parse_cpulist(files.host.read_text(_ONLINE)))
    lines = {key: path for path in files.paths if (key := key_of(path)) is not None}
    masks: dict[str, str] = {}
    for key, value in _of_these(parse_keyed(text), lines, "interrupt").items():
        cpus = parse_cpulist(value)
        if not cpus or not online.issuperset(cpus):
            raise UsageError(
                f"interrupt {key} cannot go to CPUs {value!r}; online are {format_cpulist(online)}"
            )
        masks[lines[key]] = format_cpulist(cpus)
    return masks


def _of_these(asked: dict[int, str], there: Collection[int], what: str) -> dict[int, str]:
    for key in asked:
        if key not in there:
            raise UsageError(f"no {what} {key} here; choose from {format_cpulist(there)}")
    return asked


def _integer(text: str, low: int, high: int) -> str:
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and low <= int(text) <= high):
        raise ValueError(f"{text!r} is not a number from {low} to {high}")
    return str(int(text))
