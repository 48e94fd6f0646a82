"""Counts and foreign text as people read them. Sizes are in `atoll.schema.size`."""

from __future__ import annotations

from collections.abc import Sequence

REPLACEMENT = "\ufffd"


def plural(count: int, noun: str) -> str:
    """'1 core', '2 cores', '2 queries', '2 processes'."""
    if count == 1:
        return f"1 {noun}"
    if noun.endswith("ry"):
        return f"{count} {noun[:-1]}ies"
    return f"{count} {noun}{'es' if noun.endswith('s') else 's'}"


def first_of(found: Sequence[str], most: int, between: str = ", ") -> str:
    """'a, b and 3 more': the first `most`. Between sentences: 'a; b; and 3 more'."""
    rest = len(found) - most
    more = f"{between.replace(',', '')}and {rest} more" if rest > 0 else ""
    return between.join(found[:most]) + more


def printable(text: str) -> str:
    """The text with each unprintable character replaced, so that a name from a foreign process
    cannot end a line or control a terminal."""
    return "".join(letter if letter.isprintable() else REPLACEMENT for letter in text)


def first_line(text: str) -> str:
    """The first line that is not blank, printable, of at most 300 characters."""
    return printable((text.strip().splitlines() or ["no message"])[0])[:300]


def one_line(text: str) -> str:
    """As `printable`, with each run of white space as one blank."""
    return printable(" ".join(text.split()))
