"""The syntax of MariaDB's option files (my.cnf): read, merged with options of Atoll, written. Pure.

The readers raise UsageError 'FILE:LINE: what is wrong' for a line that MariaDB refuses. They never
repeat the line, because it may contain a password. Source: MariaDB 10.11, "Configuring MariaDB
with Option Files".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from atoll.engines.userconfig.included import Including
from atoll.engines.userconfig.merge import Settings, merge_below, read_pieces
from atoll.engines.userconfig.pieces import Piece, fault, lines
from atoll.errors import UsageError

_OPTION = re.compile(r"\s*(?P<key>[A-Za-z][\w-]*)(?P<equals>\s*=\s*)?(?P<value>.*?)\s*")
_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "r": "\r", "s": " "} | {mark: mark for mark in "\"'\\"}
INCLUDING = Including(
    re.compile(r"\s*!include(?P<folder>dir)?\s+(?P<path>\S.*?)\s*$"),
    ending=".cnf",
    beside_first=True,  # the server's working folder is the first file's
)


def read(text: str, groups: Collection[str], *, where: str) -> dict[str, str]:
    """Options of those groups together, by name with underscores; '' for one without a value."""
    return read_pieces(piece for piece in pieces(text, where=where) if piece.section in groups)


def merge(
    text: str, group: str, settings: Settings, *, where: str, also: Collection[str] = ()
) -> str:
    """The file with `settings` in it; see `userconfig.merge`. `also`: other groups that the same
    program reads, in which options are replaced too. New options go into `group`, at the end."""
    found = pieces(text, where=where)
    read_groups = {group, *also}
    # The merge must not see the keys of a group that the program does not read.
    ours = [
        piece
        if piece.section in read_groups
        else Piece(piece.raw, piece.section, includes=piece.includes)
        for piece in found
    ]
    last = found[-1].section if found else ""
    return merge_below(
        ours,
        {_key(name): value for name, value in settings.items()},
        line=_line,
        header="" if last == group else f"[{group}]\n",
    )


def write(group: str, settings: Mapping[str, str]) -> str:
    """A new file with these options in `group`."""
    return f"[{group}]\n" + "".join(_line(key, value) for key, value in settings.items())


def pieces(text: str, *, where: str) -> list[Piece]:
    found: list[Piece] = []
    group = ""
    for number, body, end in lines(text):
        stripped = body.strip()
        if not stripped or stripped[0] in "#;":
            found.append(Piece(body + end, group))
        elif stripped[0] == "!":
            found.append(Piece(body + end, group, value=stripped, includes=True))
        elif stripped[0] == "[":
            if "]" not in stripped:
                raise fault(where, number, "not a group; write [name]")
            group = stripped[1 : stripped.index("]")].rstrip()
            found.append(Piece(body + end, group))
        else:
            found.append(_option(body, end, group, f"{where}:{number}"))
    return found


def _option(body: str, end: str, group: str, where: str) -> Piece:
    if not group:
        raise UsageError(f"{where}: an option before the first [group]; write [mariadbd] above it")
    match = _OPTION.fullmatch(body[: _comment_start(body)])
    if match is None or (match["value"] and not match["equals"]):
        raise UsageError(f"{where}: not an option; write name = value")
    value = match["value"]
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        value = value[1:-1]
    return Piece(
        body + end,
        group,
        key=_key(match["key"]),
        value=re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[0]), value),
    )


def _key(name: str) -> str:
    """An option's name in one spelling. The prefix 'loose' only tells MariaDB to ignore an unknown
    option."""
    return name.replace("-", "_").removeprefix("loose_")


def _comment_start(line: str) -> int:
    """Where a comment after an option begins. A # inside quotes does not begin one."""
    quote, escaped = "", False
    for place, character in enumerate(line):
        if character in "\"'" and not escaped and quote in ("", character):
            quote = "" if quote else character
        if character == "#" and not quote:
            return place
        escaped = bool(quote) and character == "\\" and not escaped
    return len(line)


def _written(value: str) -> str:
    if re.fullmatch(r"[\w./:,+-]*", value, re.ASCII):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _line(key: str, value: str) -> str:
    return f"{key} = {_written(value)}\n"
