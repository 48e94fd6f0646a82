"""A configuration file taken apart into pieces that keep every byte of it.

Joined, the pieces are the file again. A piece is a setting (with what stands before and behind
its value) or anything else: comments, blank lines, headers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from atoll.errors import UsageError


@dataclass(frozen=True, slots=True)
class Piece:
    """A natural line or, in properties, several that make one setting."""

    raw: str  # with its line's end
    section: str = ""  # of an option file: '[server]'
    key: str = ""  # in its one spelling; empty for what is no setting
    value: str = ""  # unquoted
    head: str = ""  # of raw: what stands before the value
    tail: str = ""  # of raw: what stands behind it
    includes: bool = False  # another file's settings come here


_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


def lines(text: str) -> Iterator[tuple[int, str, str]]:
    """(number, line, its end). Not splitlines(), which also splits at form feeds."""
    for number, raw in enumerate(_LINE.findall(text), start=1):
        body = raw.rstrip("\r\n")
        yield number, body, raw[len(body) :]


def fault(where: str, number: int, what: str) -> UsageError:
    return UsageError(f"{where}:{number}: {what}")
