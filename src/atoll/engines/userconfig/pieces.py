"""Splits a configuration file into pieces that, joined, give the file again byte for byte.

A piece is a setting, with the text before and after its value, or anything else: a comment, a blank
line, a header.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from atoll.errors import UsageError


@dataclass(frozen=True, slots=True)
class Piece:
    """A line; in properties, all lines of one setting."""

    raw: str  # with the end of the line
    section: str = ""  # of an option file: '[server]'
    key: str = ""  # in its one spelling; empty if the piece is not a setting
    value: str = ""  # unquoted
    # The parts of raw before and after the value, in formats whose values are replaced in place.
    head: str = ""
    tail: str = ""
    includes: bool = False  # includes the settings of another file


_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


def lines(text: str) -> Iterator[tuple[int, str, str]]:
    """(number, line, its end). Not splitlines(), which also splits at form feeds."""
    for number, raw in enumerate(_LINE.findall(text), start=1):
        body = raw.rstrip("\r\n")
        yield number, body, raw[len(body) :]


def numbered(pieces: Iterable[Piece]) -> Iterator[tuple[int, Piece]]:
    """Each piece with the number of its first line."""
    number = 1
    for piece in pieces:
        yield number, piece
        number += len(_LINE.findall(piece.raw))


def fault(where: str, number: int, what: str) -> UsageError:
    return UsageError(f"{where}:{number}: {what}")
