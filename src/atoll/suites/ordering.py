"""Reads what a query orders by, and its LIMIT, from its outermost level. Pure.

The texts are a query's own words (`atoll.suites.folder.bare`), so that no quoted text or comment is
taken for a word, and a place in them is the same place in the query.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_WORD = re.compile(
    r"""(?P<open>\() | (?P<close>\)) | (?P<comma>,)
    | \b(?: (?P<select>select\b) | (?<!distinct\s)(?P<source>from\b) | (?P<order>order\s+by\b)
    | (?P<limit>limit\s+(?:\d+\s*,\s*)?(?P<count>\d+)
        | fetch\s+(?:first|next)\s+(?:(?P<fetched>\d+)\s+)?rows?\s+only\b)
    | (?P<end>offset\s+\d+ | fetch\s+(?:first|next)\b) )""",
    re.IGNORECASE | re.VERBOSE,
)
_DIRECTION = re.compile(r"(?:\s+(?:asc|desc))?(?:\s+nulls\s+(?:first|last))?\s*\Z", re.IGNORECASE)
_COLUMN = re.compile(r"((?:\w+\.)*)(\w+)")


@dataclass(frozen=True, slots=True)
class Key:
    """What an ORDER BY sorts by, without the direction."""

    place: slice  # of its text in the query
    name: str = ""  # in lower case, if it is a column or a number
    qualified: bool = False  # the name follows that of a table, so it may be another column's alias

    def column(self, columns: Sequence[str]) -> int | None:
        """The place of the result column of that name, or with that number."""
        if self.name.isdecimal():
            found = int(self.name) - 1
            return found if 0 <= found < len(columns) else None
        places = {name.lower(): place for place, name in enumerate(columns)}
        return places.get(self.name)


@dataclass(frozen=True, slots=True)
class Outline:
    """The outermost level of a query."""

    keys: tuple[Key, ...]
    limit: int | None
    limit_place: slice | None
    # The select list; None: there is not one, or a further column in it would change the rows
    # (UNION, DISTINCT).
    columns: slice | None


def outline_of(words: str) -> Outline:
    order: int | None = None
    end = len(words.rstrip("; \t\r\n"))
    limit: int | None = None
    limit_place: slice | None = None
    commas: list[int] = []
    selects: list[int] = []
    columns: slice | None = None
    for word in _outermost(words):
        if word["select"]:
            selects.append(word.end())
        elif word["source"] and selects and columns is None:
            columns = slice(selects[0], word.start())
        elif word["comma"] and order is not None and word.start() < end:
            commas.append(word.start())
        elif word["order"]:
            order = word.end()
        elif word["limit"] or word["end"]:
            end = min(end, word.start())
        if word["limit"]:
            limit = int(word["count"] or word["fetched"] or 1)
            limit_place = slice(word.start(), word.end())
    if len(selects) != 1 or re.match(r"\s*distinct\b", words[selects[0] :], re.IGNORECASE):
        columns = None
    edges = [] if order is None else [order, *(comma + 1 for comma in commas)]
    ends = [*commas, end]
    keys = (_key(words, start, stop) for start, stop in zip(edges, ends, strict=False))
    return Outline(tuple(keys), limit, limit_place, columns)


def ordering_of(words: str, columns: Sequence[str]) -> tuple[tuple[int, ...], int | None]:
    """(positions of the columns ordered by, the LIMIT). The positions end before the first key
    that is not a result column, because from there on the result does not show the order."""
    outline = outline_of(words)
    places: list[int] = []
    for key in outline.keys:
        place = key.column(columns)
        if place is None:
            break
        places.append(place)
    return tuple(places), outline.limit


def is_only_counted(words: str) -> bool:
    """Whether the result has no column that shows which rows the LIMIT keeps."""
    outline = outline_of(words)
    if outline.limit is None:
        return False
    name = outline.keys[0].name if outline.keys else ""
    if not name or name.isdecimal() or outline.columns is None:
        return not name
    shown = words[outline.columns].lower()
    return "*" not in shown and not re.search(rf"\b{name}\b", shown)


def hidden_keys(outline: Outline, columns: Sequence[str]) -> list[Key]:
    """The keys that may be no columns of the result. A name that follows a table's is that table's,
    whatever the result calls its own column."""
    return [key for key in outline.keys if key.qualified or key.column(columns) is None]


def with_keys(sql: str, outline: Outline, keys: Sequence[Key], limit: int | None) -> str:
    """The same query with `keys` as further columns at the end, and with another LIMIT."""
    if outline.limit_place is not None and limit is not None:
        place = outline.limit_place
        sql = f"{sql[: place.start]}limit {limit}{sql[place.stop :]}"
    if keys and outline.columns is not None:
        end = outline.columns.stop
        added = "".join(f", {sql[key.place]}" for key in keys)
        sql = f"{sql[:end]}{added} {sql[end:]}"
    return sql


def _outermost(words: str) -> Iterator[re.Match[str]]:
    """The words outside of parentheses."""
    depth = 0
    for word in _WORD.finditer(words):
        if word["open"]:
            depth += 1
        elif word["close"]:
            depth -= 1
        elif depth == 0:
            yield word


def _key(words: str, start: int, stop: int) -> Key:
    text = words[start:stop]
    start += len(text) - len(text.lstrip())
    # Without the blanks at the end the direction would be part of a wrong key.
    stop = start + len(_DIRECTION.sub("", words[start:stop].rstrip()))
    found = _COLUMN.fullmatch(words[start:stop])
    if found is None:
        return Key(slice(start, stop))
    return Key(slice(start, stop), found[2].lower(), bool(found[1]))
