"""Reads from the text of a query which columns of its result it orders by. Pure.

This suffices for suites whose outermost ORDER BY names result columns or their numbers, as TPC-H's
does.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_WORD = re.compile(r"\(|\)|\border\s+by\b|\blimit\s+\d+", re.IGNORECASE)
_KEY = re.compile(r"(?:\w+\.)?(\w+)(?:\s+(?:asc|desc))?(?:\s+nulls\s+(?:first|last))?", re.I)


def ordering_of(sql: str, columns: Sequence[str]) -> tuple[tuple[int, ...], int | None]:
    """(positions of the columns ordered by, the LIMIT). The positions end before the first key
    that is not a result column, because from there on the result does not show the order."""
    depth = 0
    start: int | None = None
    end = len(sql)
    limit: int | None = None
    for word in _WORD.finditer(sql):
        if word[0] == "(":
            depth += 1
        elif word[0] == ")":
            depth -= 1
        elif depth == 0 and word[0][0] in "oO":
            start = word.end()
        elif depth == 0:
            end = word.start()
            limit = int(word[0].split()[1])
    if start is None:
        return (), limit
    places = {name.lower(): place for place, name in enumerate(columns)}
    keys: list[int] = []
    for text in sql[start:end].rstrip("; \n").split(","):
        key = _KEY.fullmatch(text.strip())
        if key is None:
            break
        named = key[1].lower()
        place = int(named) - 1 if named.isdecimal() else places.get(named)
        if place is None or place >= len(columns):
            break
        keys.append(place)
    return tuple(keys), limit


def with_limit(sql: str, limit: int) -> str:
    """The same query with another LIMIT at its end."""
    return re.sub(r"\d+\s*\Z", str(limit), sql)
