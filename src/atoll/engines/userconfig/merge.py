"""Puts Atoll's settings into a user's configuration file and leaves all else as it is.

`merge_pieces` replaces a value in place; a missing setting is added at the end, below a line that
says so; None removes a setting. If a setting occurs several times, all values are replaced, so that
it does not matter which one the engine uses.

`merge_below` is for formats with comments behind a setting and with included files: it comments out
the user's line and adds the setting at the end. So no comment of the user's speaks for a value of
Atoll's, each setting is made once, below all includes, and lines keep their numbers.

A second merge changes nothing. Pure. Every function raises UsageError 'FILE:LINE: ...'; `where` is
the file's name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from atoll.engines.userconfig import java
from atoll.engines.userconfig.pieces import Piece

MARK = "# set by atoll: placement"

Settings = Mapping[str, str | None]


def merge_properties(text: str, settings: Settings, *, where: str, separator: str = "=") -> str:
    """Merges Java properties. `separator`: between name and value on new lines."""
    return merge_pieces(
        java.properties(text, where=where),
        settings,
        write=java.write_property,
        line=lambda key, value: (
            f"{java.write_property(key, is_key=True)}{separator}{java.write_property(value)}\n"
        ),
    )


def read_properties(text: str, *, where: str) -> dict[str, str]:
    """Key to value; the last value of a key that occurs several times, as in Java."""
    return read_pieces(java.properties(text, where=where))


def merge_flags(
    text: str, flags: Sequence[str], *, where: str, without: re.Pattern[str] | None = None
) -> str:
    """Merges a file with one JVM flag per line, such as jvm.config.

    A flag replaces the user's flags of the same kind (`flag_kind`). Flags that match `without` are
    removed.
    """
    pieces = java.flags(text, where=where)
    taken_out: dict[str, str | None] = {
        piece.key: None for piece in pieces if without and piece.key and without.match(piece.value)
    }
    return merge_pieces(
        pieces,
        taken_out | {java.flag_kind(flag): flag for flag in flags},
        write=lambda flag: flag,
        line=lambda _, flag: f"{flag}\n",
    )


def read_flags(text: str, *, where: str) -> list[str]:
    """The flags, in order."""
    return [piece.value for piece in java.flags(text, where=where) if piece.value]


def read_pieces(pieces: Iterable[Piece]) -> dict[str, str]:
    """Key to value; the last value of a key that occurs several times."""
    return {piece.key: piece.value for piece in pieces if piece.key}


def merge_pieces(
    pieces: Sequence[Piece],
    settings: Settings,
    *,
    write: Callable[[str], str],
    line: Callable[[str, str], str],
) -> str:
    kept: list[str] = []
    holds: set[str] = set()
    for piece in pieces:
        if piece.key not in settings:
            kept.append(piece.raw)
            continue
        value = settings[piece.key]
        if value is None:
            continue
        same = value == piece.value
        kept.append(piece.raw if same else f"{piece.head}{write(value)}{piece.tail}")
        holds.add(piece.key)
    return _with_missing("".join(kept), settings, holds, line)


def merge_below(
    pieces: Sequence[Piece],
    settings: Settings,
    *,
    line: Callable[[str, str], str],
    header: str = "",
) -> str:
    last_include = max((at for at, piece in enumerate(pieces) if piece.includes), default=-1)
    kept: list[str] = []
    holds: set[str] = set()
    for at, piece in enumerate(pieces):
        if piece.key not in settings:
            kept.append(piece.raw)
        elif settings[piece.key] == piece.value and at > last_include:
            kept.append(piece.raw)
            holds.add(piece.key)
        else:
            what = "removed" if settings[piece.key] is None else "replaced below"
            kept.append(f"# {what}: {piece.raw.lstrip()}")
    return _with_missing("".join(kept), settings, holds, line, header)


def _with_missing(
    text: str,
    settings: Settings,
    holds: Collection[str],
    line: Callable[[str, str], str],
    header: str = "",
) -> str:
    missing = {
        key: value for key, value in settings.items() if value is not None and key not in holds
    }
    if not missing:
        return text
    if text and not text.endswith(("\n", "\r")):
        text += "\n"
    if MARK not in text.splitlines():
        text += f"{MARK}\n"
    return text + header + "".join(line(key, value) for key, value in missing.items())
