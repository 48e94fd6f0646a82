"""The files of a knob: a pattern with at most one `*`, which stands for a number in a name."""

from __future__ import annotations

import re
from collections.abc import Sequence

from atoll.host.api import Host

# /proc/irq/24/..., /sys/.../policy3/..., /sys/.../node1
_KEY = re.compile(r"/(?:policy|node)?(\d+)(?=/|$)")


def key_of(path: str) -> int | None:
    """The number in a file's path that distinguishes it from the knob's others; None if there is
    none."""
    match = _KEY.search(path)
    return int(match[1]) if match else None


def files(patterns: Sequence[str], host: Host) -> list[str]:
    """The existing files, by pattern, then by number."""
    return [path for pattern in patterns for path in _matches(pattern, host)]


def is_match(pattern: str, path: str) -> bool:
    head, star, tail = (re.escape(part) for part in pattern.partition("*"))
    return re.fullmatch(head + (r"[0-9]+" if star else "") + tail, path) is not None


def _matches(pattern: str, host: Host) -> list[str]:
    head, star, tail = pattern.partition("*")
    if not star:
        return [pattern] if host.exists(pattern) else []
    folder, _, stem = head.rpartition("/")
    try:
        names = host.list_dir(folder)
    except OSError:
        return []
    numbers = sorted(
        int(name[len(stem) :])
        for name in names
        if name.startswith(stem) and name[len(stem) :].isdecimal()
    )
    paths = (f"{folder}/{stem}{number}{tail}" for number in numbers)
    return [path for path in paths if host.exists(path)]
