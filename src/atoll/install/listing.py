"""Lists the files of an installed part, and finds damage by comparing them with the list.

A list in the part's folder has the size, executable bit and SHA-256 of each file, and the target of
each link. Additional files are ignored, because engines write caches.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from atoll.store.files import sha256

LIST = ".atoll-files.json"


def write_list(tree: Path) -> None:
    """Raises OSError."""
    sums: dict[tuple[int, int], str] = {}  # a hard-linked file is read once
    found: dict[str, Any] = {}
    for path in _files(tree):
        seen = path.lstat()
        if path.is_symlink():
            found[str(path.relative_to(tree))] = os.readlink(path)
            continue
        if (seen.st_dev, seen.st_ino) not in sums:
            sums[seen.st_dev, seen.st_ino] = sha256(path)
        found[str(path.relative_to(tree))] = [
            seen.st_size,
            bool(seen.st_mode & 0o100),
            sums[seen.st_dev, seen.st_ino],
        ]
    (tree / LIST).write_text(json.dumps(found))


def damage(tree: Path, *, contents: bool = False) -> str:
    """The first difference from the list; '' for an undamaged part and for one without a list.
    `contents`: also read every file, which takes about a second per gigabyte."""
    try:
        listed = json.loads((tree / LIST).read_bytes())
        faults = (_fault(tree / name, had, contents) for name, had in listed.items())
        return next((fault for fault in faults if fault), "")
    except FileNotFoundError:
        return ""
    except (OSError, ValueError, AttributeError, TypeError) as fault:
        return f"{LIST} cannot be read ({fault})"


def _fault(path: Path, had: Any, contents: bool) -> str:
    try:
        seen = path.lstat()
        if path.is_symlink() or isinstance(had, str):
            same = path.is_symlink() and os.readlink(path) == had
            return "" if same else f"{path} has another target"
        size, runs, checksum = had
        if seen.st_size != size:
            return f"{path} has {seen.st_size} bytes, not {size}"
        if runs and not seen.st_mode & 0o100:
            return f"{path} is no longer executable"
        return f"{path} has changed" if contents and sha256(path) != checksum else ""
    except OSError as fault:
        return f"{path} is missing" if isinstance(fault, FileNotFoundError) else str(fault)


def _files(tree: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(tree):
        yield from (Path(folder, name) for name in names)
        yield from (path for name in folders if (path := Path(folder, name)).is_symlink())
