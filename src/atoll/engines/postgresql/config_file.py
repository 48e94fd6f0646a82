"""The syntax of postgresql.conf: read, merged with settings of Atoll, written. Pure.

The readers raise UsageError 'FILE:LINE: what is wrong' for a line that PostgreSQL refuses. They
never repeat the line, because it may contain a password. Sources: PostgreSQL 15, "Setting
Parameters" and guc-file.l.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from atoll.engines.userconfig.included import Including
from atoll.engines.userconfig.merge import Settings, merge_below, read_pieces
from atoll.engines.userconfig.pieces import Piece, fault, lines

_NAME = r"[A-Za-z_\x80-\U0010ffff][\w\x80-\U0010ffff]*"
_QUOTED = r"'(?:[^'\\]|\\.|'')*'"
_WORD = r"[A-Za-z_\x80-\U0010ffff][-._:/\w\x80-\U0010ffff]*"
_NUMBER = r"[-+]?(?:\d*\.\d*(?:[Ee][-+]?\d+)?|(?:0x[0-9A-Fa-f]+|\d+)[A-Za-z]*)"
_SETTING = re.compile(
    rf"\s*(?P<key>{_NAME}(?:\.{_NAME})*)(?:\s*=\s*|\s+|(?='))"
    rf"(?P<value>{_QUOTED}|{_WORD}|{_NUMBER})\s*(?:\#.*)?"
)
_INCLUDES = ("include", "include_if_exists", "include_dir")
_CONTROLS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
INCLUDING = Including(
    re.compile(
        r"\s*include(?P<folder>_dir)?(?P<maybe>_if_exists)?(?:\s*=\s*|\s+|(?='))"
        r"(?P<quote>'?)(?P<path>[^'\n]+?)(?P=quote)\s*(?:#.*)?$",
        re.IGNORECASE,
    ),
    ending=".conf",
    beside_first=False,
)


def read(text: str, *, where: str) -> dict[str, str]:
    """Settings by name, of this file alone, without those of the files that it includes."""
    return read_pieces(pieces(text, where=where))


def merge(text: str, settings: Settings, *, where: str) -> str:
    """The file with `settings` in it; see `userconfig.merge`. Names are in lower case."""
    return merge_below(pieces(text, where=where), settings, line=_line)


def write(settings: Mapping[str, str]) -> str:
    """A new file with these settings."""
    return "".join(_line(key, value) for key, value in settings.items())


def pieces(text: str, *, where: str) -> list[Piece]:
    found: list[Piece] = []
    for number, body, end in lines(text):
        stripped = body.strip()
        if not stripped or stripped.startswith("#"):
            found.append(Piece(body + end))
            continue
        match = _SETTING.fullmatch(body)
        if match is None:
            raise fault(where, number, "cannot be read; write name = 'value'")
        key, value = match["key"].lower(), _unquoted(match["value"])
        if key in _INCLUDES:
            found.append(Piece(body + end, value=value, includes=True))
        else:
            found.append(Piece(body + end, key=key, value=value))
    return found


def _unquoted(value: str) -> str:
    if not value.startswith("'"):
        return value
    return re.sub(
        r"\\(.)|''",
        lambda match: _CONTROLS.get(match[1], match[1]) if match[1] else "'",
        value[1:-1],
    )


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "''").replace("\n", "\\n")
    return f"'{escaped}'"


def _line(key: str, value: str) -> str:
    return f"{key} = {_quoted(value)}\n"
