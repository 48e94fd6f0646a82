"""Values of switches, in the kernel's and the user's notation. Pure.

A value is one line. For a choice, shown as `always [madvise] never`, it is the chosen word. Knobs
with many files are written `KEY=VALUE,...`. A KEY is a number or a range, and a part without `=`
continues the VALUE before it, so that CPU lists need no quotes: `24=0-3,8,25-26=4`.
`parse_keyed` reads what `format_keyed` writes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from atoll.schema.cpulist import parse_cpulist

_CHOSEN = re.compile(r"\[([^\[\]\s]+)\]")


def value_of(text: str) -> str:
    """The value in the contents of a file of /sys or /proc: its first line, or the chosen word."""
    line = text.partition("\n")[0]
    chosen = _CHOSEN.search(line)
    return chosen[1] if chosen else line.strip()


def choices(text: str) -> tuple[str, ...]:
    """Every word of a choice: of `always [madvise] never` all three."""
    return tuple(word.strip("[]") for word in text.split())


def parse_keyed(text: str) -> dict[int, str]:
    """'24=0-3,8,25-26=4' as {24: '0-3,8', 25: '4', 26: '4'}. Raises ValueError."""
    values: dict[int, str] = {}
    keys: tuple[int, ...] = ()
    for part in text.split(","):
        head, equals, tail = part.partition("=")
        if equals:
            keys = parse_cpulist(head)
            if not keys:
                raise ValueError(f"no number before '=' in {part!r}")
            if twice := sorted(values.keys() & set(keys)):
                raise ValueError(f"{twice[0]} occurs twice")
            values.update(dict.fromkeys(keys, tail.strip()))
        elif not keys:
            raise ValueError(f"{part!r} is not KEY=VALUE")
        else:
            values.update((key, f"{values[key]},{part.strip()}") for key in keys)
    return values


def format_keyed(values: Mapping[int, str]) -> str:
    """{24: '0-3,8', 25: '4', 26: '4'} as '24=0-3,8,25-26=4'."""
    runs: list[tuple[int, int, str]] = []
    for key in sorted(values):
        if runs and runs[-1][1] == key - 1 and runs[-1][2] == values[key]:
            runs[-1] = (runs[-1][0], key, values[key])
        else:
            runs.append((key, key, values[key]))
    return ",".join(
        f"{first}={value}" if first == last else f"{first}-{last}={value}"
        for first, last, value in runs
    )
