"""Reads the value of `--queries`: '1,3-5', 'q18', '1-5p', or nothing for all queries. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from atoll.errors import UsageError

_NUMBER = r"q?(\d{1,4})([a-z]?)"
_RANGE = re.compile(rf"\s*{_NUMBER}\s*(?:-\s*{_NUMBER}\s*)?")


def select_queries(asked: str | None, names: Sequence[str]) -> tuple[str, ...]:
    """The names ('q1') that are asked for, each once, in the order of the suite.

    A letter after the number belongs to the name ('q1p'); in a range it stands at the end.

    Raises UsageError for what is no list, an empty range or a query that the suite has not.
    """
    if asked is None or not asked.strip():
        return tuple(names)
    chosen: set[str] = set()
    for part in asked.split(","):
        match = _RANGE.fullmatch(part.lower())
        if match is None or (match[3] and match[2] not in ("", match[4])):
            raise UsageError(f"--queries: {part.strip()!r} is not a query; use for example 1,3-5")
        first, last = int(match[1]), int(match[3] or match[1])
        letter = match[4] if match[3] else match[2]
        if last < first:
            raise UsageError(
                f"--queries: the range {part.strip()!r} is empty; write the smaller number first"
            )
        wanted = [f"q{number}{letter}" for number in range(first, last + 1)]
        if unknown := [name for name in wanted if name not in names]:
            raise UsageError(
                f"--queries: there is no {unknown[0]}; the suite has {names[0]} to {names[-1]}"
            )
        chosen.update(wanted)
    return tuple(name for name in names if name in chosen)
