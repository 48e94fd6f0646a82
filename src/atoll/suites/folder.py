"""The user's own SQL: a folder of .sql files, one query per file, named after the file.

Queries are sorted by name, and numbers in names by value: q2 comes before q10. Other files are
ignored. The text stays as it is, except for the semicolon at its end, which some servers refuse.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from atoll.errors import UsageError

_RESERVED = ("pass", "geomean", "throughput")  # rows of the summary
_MOST_BYTES = 1 << 20  # of a query or a manifest; a larger file is something else


@dataclass(frozen=True, slots=True)
class Folder:
    name: str
    texts: Mapping[str, str]  # query -> SQL, in order
    checksum: str  # over names and texts


def read_folder(path: str, comments_and_quotes: str) -> Folder:
    """The queries of the folder. `comments_and_quotes`: see `EngineFacts`.

    Raises UsageError naming the file: no file, an empty one, not UTF-8, several statements.
    """
    root = Path(path)
    try:
        files = sorted(
            (one for one in root.iterdir() if one.suffix == ".sql" and one.is_file()),
            key=lambda one: (natural(one.stem), one.stem),  # the first sorts q1 and q01 alike
        )
    except OSError as fault:
        raise UsageError(
            f"--suite {path}: cannot be read ({fault.strerror}); name a folder of .sql files"
        ) from None
    if not files:
        raise UsageError(f"--suite {path}: no .sql file found; put one query into each file")
    texts = {file.stem: _read(file, comments_and_quotes) for file in files}
    checksum = hashlib.sha256()
    for name, text in texts.items():
        checksum.update(f"{len(name)} {len(text)} {name}{text}".encode())
    return Folder(root.resolve().name, texts, checksum.hexdigest())


def choose(chosen: str | None, names: Sequence[str]) -> tuple[str, ...]:
    """The queries of a comma-separated list, in the folder's order; None: all of them.

    Raises UsageError.
    """
    if chosen is None:
        return tuple(names)
    wanted = {name.strip() for name in chosen.split(",") if name.strip()}
    unknown = sorted(wanted.difference(names), key=natural)
    if unknown or not wanted:
        raise UsageError(
            f"--queries: no query {unknown[0] if unknown else chosen!r}; the folder has "
            f"{', '.join(names[:5])}{', ...' if len(names) > 5 else ''}"
        )
    return tuple(name for name in names if name in wanted)


def natural(name: str) -> tuple[tuple[int, str], ...]:
    """A key that sorts the numbers in a name by value."""
    return tuple(
        (int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d+)", name)
    )


def bare(sql: str, comments_and_quotes: str) -> str:
    """The statement's own words, each at its place: blanks for comments, x for quoted text."""
    return re.sub(
        comments_and_quotes,
        lambda found: (" " if found["comment"] else "x") * len(found[0]),
        sql,
        flags=re.DOTALL | re.VERBOSE,
    )


def require_file(path: Path) -> None:
    """Raises UsageError for what is there and no file: to open a pipe may take forever."""
    if path.exists() and not path.is_file():
        raise UsageError(f"{path}: is not a file; remove it, or name another one")


def read_small(file: Path) -> str:
    """The text of a file that people write. Raises UsageError if it is none or not readable."""
    try:
        require_file(file)
        if (size := file.stat().st_size) > _MOST_BYTES:
            raise UsageError(f"{file}: has {size} bytes, and may have {_MOST_BYTES}; remove it")
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as fault:
        line = fault.object[: fault.start].count(b"\n") + 1
        raise UsageError(f"{file}:{line}: is not UTF-8; re-save it as UTF-8") from None
    except OSError as fault:
        raise UsageError(f"{file}: cannot be read ({fault.strerror})") from None


def _read(file: Path, comments_and_quotes: str) -> str:
    if file.stem in _RESERVED or not file.stem.isprintable():
        raise UsageError(f"{file.parent}: a query cannot be called {file.stem!a}; rename its file")
    text = read_small(file)
    words = bare(text, comments_and_quotes)
    statements = [part for part in words.split(";") if part.strip()]
    if not statements:
        raise UsageError(f"{file}: contains no statement; write a query into it, or remove it")
    if len(statements) > 1:
        raise UsageError(
            f"{file}: contains {len(statements)} statements; put each into a file of its own"
        )
    return text[: len(words.rstrip("; \t\r\n"))].lstrip()
