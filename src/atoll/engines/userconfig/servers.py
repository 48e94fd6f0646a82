"""How PostgreSQL and MariaDB read their configuration files. Pure.

The readers raise UsageError 'FILE:LINE: what is wrong' for what the server refuses, and never
repeat the line: it may hold a password. Sources: PostgreSQL 15, "Setting Parameters" and
guc-file.l; MariaDB 10.11, "Configuring MariaDB with Option Files".
"""

from __future__ import annotations

import re

from atoll.engines.userconfig.pieces import Piece, fault, lines
from atoll.errors import UsageError

# ---- postgresql.conf -----------------------------------------------------------------------------

_NAME = r"[A-Za-z_\x80-\U0010ffff][\w\x80-\U0010ffff]*"
_QUOTED = r"'(?:[^'\\]|\\.|'')*'"
_WORD = r"[A-Za-z_\x80-\U0010ffff][-._:/\w\x80-\U0010ffff]*"
_NUMBER = r"[-+]?(?:\d*\.\d*(?:[Ee][-+]?\d+)?|(?:0x[0-9A-Fa-f]+|\d+)[A-Za-z]*)"
_POSTGRESQL = re.compile(
    rf"(?P<head>\s*(?P<key>{_NAME}(?:\.{_NAME})*)(?:\s*=\s*|\s+|(?=')))"
    rf"(?P<value>{_QUOTED}|{_WORD}|{_NUMBER})(?P<tail>\s*(?:\#.*)?)"
)
_INCLUDES = ("include", "include_if_exists", "include_dir")
_POSTGRESQL_CONTROLS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def postgresql(text: str, *, where: str) -> list[Piece]:
    pieces: list[Piece] = []
    for number, body, end in lines(text):
        stripped = body.strip()
        if not stripped or stripped.startswith("#"):
            pieces.append(Piece(body + end))
            continue
        match = _POSTGRESQL.fullmatch(body)
        if match is None:
            raise fault(where, number, "cannot be read; write name = 'value'")
        key, value = match["key"].lower(), _unquoted(match["value"])
        if key in _INCLUDES:
            pieces.append(Piece(body + end, value=value, includes=True))
            continue
        head, tail = match["head"], match["tail"] + end
        pieces.append(Piece(body + end, key=key, value=value, head=head, tail=tail))
    return pieces


def _unquoted(value: str) -> str:
    if not value.startswith("'"):
        return value
    return re.sub(
        r"\\(.)|''",
        lambda match: _POSTGRESQL_CONTROLS.get(match[1], match[1]) if match[1] else "'",
        value[1:-1],
    )


def write_postgresql(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "''").replace("\n", "\\n")
    return f"'{escaped}'"


# ---- option files: my.cnf ------------------------------------------------------------------------

_OPTION = re.compile(r"(?P<head>\s*(?P<key>[A-Za-z][\w-]*)(?:\s*=\s*)?)(?P<value>.*?)(?P<tail>\s*)")
_OPTION_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "r": "\r", "s": " "} | {
    mark: mark for mark in "\"'\\"
}


def option_key(name: str) -> str:
    """An option's one spelling: dashes are underscores, and 'loose' only forgives."""
    return name.replace("-", "_").removeprefix("loose_")


def sections(text: str, *, where: str) -> list[Piece]:
    pieces: list[Piece] = []
    section = ""
    for number, body, end in lines(text):
        stripped = body.strip()
        if not stripped or stripped[0] in "#;":
            pieces.append(Piece(body + end, section))
        elif stripped[0] == "!":
            pieces.append(Piece(body + end, section, value=stripped, includes=True))
        elif stripped[0] == "[":
            if "]" not in stripped:
                raise fault(where, number, "is no group; write [name]")
            section = stripped[1 : stripped.index("]")].rstrip()
            pieces.append(Piece(body + end, section))
        else:
            pieces.append(_option(body, end, section, f"{where}:{number}"))
    return pieces


def _option(body: str, end: str, section: str, where: str) -> Piece:
    if not section:
        raise UsageError(f"{where}: stands before any [group]")
    told = body[: _comment_start(body)]
    match = _OPTION.fullmatch(told)
    if match is None or (match["value"] and "=" not in match["head"]):
        raise UsageError(f"{where}: is no option; write name = value")
    value = match["value"]
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        value = value[1:-1]
    has_value = "=" in match["head"]
    return Piece(
        body + end,
        section,
        key=option_key(match["key"]),
        value=re.sub(r"\\(.)", lambda found: _OPTION_ESCAPES.get(found[1], found[0]), value),
        head=match["head"] if has_value else f"{match['head'].rstrip()} = ",
        tail=match["tail"] + body[len(told) :] + end,
    )


def _comment_start(line: str) -> int:
    """Where a comment behind an option begins; a # inside quotes is none."""
    quote, escaped = "", False
    for place, character in enumerate(line):
        if character in "\"'" and not escaped and quote in ("", character):
            quote = "" if quote else character
        if character == "#" and not quote:
            return place
        escaped = bool(quote) and character == "\\" and not escaped
    return len(line)


def write_option(value: str) -> str:
    if re.fullmatch(r"[\w./:,+-]*", value, re.ASCII):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
