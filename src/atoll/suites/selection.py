"""Reads the value of `--queries`: '1,3-5', 'q18', or nothing for all queries. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from atoll.errors import UsageError

_RANGE = re.compile(r"\s*q?(\d{1,4})\s*(?:-\s*q?(\d{1,4})\s*)?", re.IGNORECASE)


def select_queries(asked: str | None, names: Sequence[str]) -> tuple[str, ...]:
    """The names ('q1') that are asked for, each once, in the order of the suite.

    Raises UsageError for what is no list, an empty range or a query that the suite has not.
    """
    if asked is None or not asked.strip():
        return tuple(names)
    chosen: set[str] = set()
    for part in asked.split(","):
        match = _RANGE.fullmatch(part)
        if match is None:
            raise UsageError(f"--queries: {part.strip()!r} is not a query; use for example 1,3-5")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise UsageError(
                f"--queries: the range {part.strip()!r} is empty; write the smaller number first"
            )
        wanted = {f"q{number}" for number in range(first, last + 1)}
        unknown = sorted(wanted.difference(names), key=lambda name: int(name[1:]))
        if unknown:
            raise UsageError(
                f"--queries: there is no {unknown[0]}; the suite has {names[0]} to {names[-1]}"
            )
        chosen |= wanted
    return tuple(name for name in names if name in chosen)
