"""Sizes in a user's configuration of a server, for the plan to count. Pure.

The plan counts the buffers that a server allocates once, in addition to its buffer pool, and what
its own background processes may use. The memory of sessions (work_mem, sort_buffer_size) comes out
of the room that the plan leaves for queries. A value that is not a size counts as 0: the server
itself refuses it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)", re.IGNORECASE | re.ASCII)
_UNITS = {"b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40, "p": 1 << 50}


def largest(files: Iterable[Mapping[str, str]], *, unit_bytes: Mapping[str, int]) -> dict[str, int]:
    """Setting -> the largest size that a file gives it. `unit_bytes`: setting -> the bytes that a
    number without a unit counts; 1024 for the others."""
    sizes: dict[str, int] = {}
    for settings in files:
        for name, value in settings.items():
            size = _bytes_of(value, unit_bytes.get(name, 1 << 10))
            sizes[name] = max(size, sizes.get(name, 0))
    return sizes


def _bytes_of(value: str, unit_bytes: int) -> int:
    match = _SIZE.fullmatch(value.strip())
    if match is None:
        return 0
    unit = match[2].lower().removesuffix("b") or match[2].lower()
    each = _UNITS.get(unit) if unit else unit_bytes
    return int(float(match[1]) * each) if each else 0
