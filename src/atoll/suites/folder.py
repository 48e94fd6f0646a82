"""The user's own SQL: a folder of .sql files, a query each, called as its file is.

The order is that of the names, numbers in them by their value: q2 before q10. Whatever is no .sql
file is left alone. Nothing of the text is changed but the semicolon at its end, which some servers
refuse.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from atoll.errors import UsageError

# Comments, or what is quoted: as standard SQL and PostgreSQL write it, and as MySQL does.
_STANDARD = r"""(?P<comment>--[^\n]*|/\*.*?\*/)
    |(?<!\w)[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|(?P<tag>\$\w*\$).*?(?P=tag)"""
# There 5--1 is 6: two dashes begin a comment only before a blank.
_MYSQL = r"""(?P<comment>--(?!\S)[^\n]*|\#[^\n]*|/\*.*?\*/)
    |'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`[^`]*`"""
_LIKE_MYSQL = ("mariadb",)
_RESERVED = ("pass", "geomean")  # what the summary calls its own rows


@dataclass(frozen=True, slots=True)
class Folder:
    name: str
    texts: Mapping[str, str]  # query -> SQL, in order
    checksum: str  # over names and texts


def read_folder(path: str, engine: str) -> Folder:
    """The folder, as that engine reads SQL.

    Raises UsageError naming the file: none there, empty, not UTF-8, several statements.
    """
    root = Path(path)
    try:
        files = sorted(
            (one for one in root.iterdir() if one.suffix == ".sql" and one.is_file()),
            key=lambda one: (natural(one.stem), one.stem),  # q1 and q01 are alike to the first
        )
    except OSError as fault:
        raise UsageError(
            f"--suite {path}: cannot be read ({fault.strerror}); with --url it is a folder of .sql "
            "files"
        ) from None
    if not files:
        raise UsageError(f"--suite {path}: has no .sql file; put a query in each")
    texts = {file.stem: _read(file, engine) for file in files}
    checksum = hashlib.sha256()
    for name, text in texts.items():
        checksum.update(f"{len(name)} {len(text)} {name}{text}".encode())
    return Folder(root.resolve().name, texts, checksum.hexdigest())


def choose(asked: str | None, names: Sequence[str]) -> tuple[str, ...]:
    """Those of a comma-separated list, in the folder's order; None: all. Raises UsageError."""
    if asked is None:
        return tuple(names)
    wanted = {name.strip() for name in asked.split(",") if name.strip()}
    unknown = sorted(wanted.difference(names), key=natural)
    if unknown or not wanted:
        raise UsageError(
            f"--queries: there is no {unknown[0] if unknown else asked!r}; the folder has "
            f"{', '.join(names[:5])}{', ...' if len(names) > 5 else ''}"
        )
    return tuple(name for name in names if name in wanted)


def natural(name: str) -> tuple[tuple[int, str], ...]:
    """A key that sorts numbers in a name by their value."""
    return tuple(
        (int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d+)", name)
    )


def bare(sql: str, engine: str) -> str:
    """The statement's own words, each where it stood: comments are blank, what is quoted is x."""
    pattern = _MYSQL if engine in _LIKE_MYSQL else _STANDARD
    return re.sub(
        pattern,
        lambda found: (" " if found["comment"] else "x") * len(found[0]),
        sql,
        flags=re.DOTALL | re.VERBOSE,
    )


def _read(file: Path, engine: str) -> str:
    if file.stem in _RESERVED or not file.stem.isprintable():
        raise UsageError(f"{file.parent}: a query cannot be called {file.stem!a}; rename its file")
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as fault:
        line = fault.object[: fault.start].count(b"\n") + 1
        raise UsageError(f"{file}:{line}: is not UTF-8; save it as UTF-8") from None
    except OSError as fault:
        raise UsageError(f"{file}: cannot be read ({fault.strerror})") from None
    words = bare(text, engine)
    statements = [part for part in words.split(";") if part.strip()]
    if not statements:
        raise UsageError(f"{file}: holds no statement; write a query into it, or remove it")
    if len(statements) > 1:
        raise UsageError(
            f"{file}: holds {len(statements)} statements; put each into a file of its own"
        )
    return text[: len(words.rstrip("; \t\r\n"))].lstrip()
