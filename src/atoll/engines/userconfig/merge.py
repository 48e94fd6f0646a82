"""Our settings put into a user's configuration file, with all else in it left as it is.

A key's value is replaced where it stands; what is missing is added at the end, below a line that
says so; None takes a key out. Where a key stands several times, all of them are replaced, so that
it does not matter which the engine believes. Where another file is included below a key's place,
which may set it again, the setting is added at the end too. Merging twice is merging once.

Pure. Every function raises UsageError 'FILE:LINE: what is wrong'; `where` is the file's name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from atoll.engines.userconfig import java, servers
from atoll.engines.userconfig.pieces import Piece

MARK = "# set by atoll: placement"

Settings = Mapping[str, str | None]


def merge_properties(text: str, settings: Settings, *, where: str, separator: str = "=") -> str:
    """Java properties. `separator=" "` writes new lines as spark-defaults.conf has them."""
    return _merged(
        java.properties(text, where=where),
        settings,
        write=java.write_property,
        line=lambda key, value: (
            f"{java.write_property(key, is_key=True)}{separator}{java.write_property(value)}\n"
        ),
    )


def read_properties(text: str, *, where: str) -> dict[str, str]:
    """Key to value; of a key that stands several times the last, as Java has it."""
    return _read(java.properties(text, where=where))


def merge_flags(
    text: str, flags: Sequence[str], *, where: str, without: re.Pattern[str] | None = None
) -> str:
    """jvm.config: one flag a line. A flag replaces the user's of the same kind (-Xmx, -XX:Name,
    -Dname, the choice of a garbage collector). Those that begin as `without` are taken out."""
    pieces = java.flags(text, where=where)
    taken_out: dict[str, str | None] = {
        piece.key: None for piece in pieces if without and piece.key and without.match(piece.value)
    }
    return _merged(
        pieces,
        taken_out | {java.flag_kind(flag): flag for flag in flags},
        write=lambda flag: flag,
        line=lambda _, flag: f"{flag}\n",
    )


def read_flags(text: str, *, where: str) -> list[str]:
    """The flags in their order."""
    return [piece.value for piece in java.flags(text, where=where) if piece.value]


def merge_postgresql(text: str, settings: Settings, *, where: str) -> str:
    """postgresql.conf. Names of settings in lower case."""
    return _merged(
        servers.postgresql(text, where=where),
        settings,
        write=servers.write_postgresql,
        line=lambda key, value: f"{key} = {servers.write_postgresql(value)}\n",
    )


def read_postgresql(text: str, *, where: str) -> dict[str, str]:
    """Name to value, of this file alone: not of what it includes."""
    return _read(servers.postgresql(text, where=where))


def merge_sections(
    text: str,
    section: str,
    settings: Settings,
    *,
    where: str,
    also: Collection[str] = (),
) -> str:
    """An option file (my.cnf). `also`: other groups that the same program reads; what they set is
    replaced there, too. New settings go into `section`, at the end of the file."""
    pieces = servers.sections(text, where=where)
    read = {section, *also}
    # To the merge, a key of a group that the program does not read is no key.
    ours = [
        piece if piece.section in read else Piece(piece.raw, piece.section, includes=piece.includes)
        for piece in pieces
    ]
    last = pieces[-1].section if pieces else ""
    return _merged(
        ours,
        {servers.option_key(key): value for key, value in settings.items()},
        write=servers.write_option,
        line=lambda key, value: f"{key} = {servers.write_option(value)}\n",
        header="" if last == section else f"[{section}]\n",
    )


def read_sections(text: str, sections: Collection[str], *, where: str) -> dict[str, str]:
    """Option (with underscores) to value, of those groups together; '' for one without a value."""
    pieces = servers.sections(text, where=where)
    return _read(piece for piece in pieces if piece.section in sections)


def _read(pieces: Iterable[Piece]) -> dict[str, str]:
    return {piece.key: piece.value for piece in pieces if piece.key}


def _merged(
    pieces: Sequence[Piece],
    settings: Settings,
    *,
    write: Callable[[str], str],
    line: Callable[[str, str], str],
    header: str = "",
) -> str:
    last_include = max((at for at, piece in enumerate(pieces) if piece.includes), default=-1)
    kept: list[str] = []
    holds: set[str] = set()
    for at, piece in enumerate(pieces):
        if piece.key not in settings:
            kept.append(piece.raw)
            continue
        value = settings[piece.key]
        if value is None:
            continue
        same = value == piece.value
        kept.append(piece.raw if same else f"{piece.head}{write(value)}{piece.tail}")
        if at > last_include:
            holds.add(piece.key)
    text = "".join(kept)
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
