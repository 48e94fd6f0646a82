"""Lines that fit a terminal. Pure."""

from __future__ import annotations

import textwrap

from atoll.schema.text import printable


def wrapped(line: str, width: int, *, whole_words: bool = False) -> str:
    """The line on several of at most that width, printable. With `whole_words` longer words are not
    broken: some are paths to copy."""
    return textwrap.fill(
        printable(line),
        width,
        subsequent_indent="  ",
        break_on_hyphens=False,
        break_long_words=not whole_words,
    )
