"""What a user's postgresql.conf or option files have a server take beside its buffer pool, for the
plan to count. Pure.

Counted is what a server sets aside once, and what its own processes may grow to, whatever runs.
What a session may take (work_mem, sort_buffer_size) is taken out of the room that the plan leaves
for queries. Sources: PostgreSQL 15, "Resource Consumption" and "Automatic
Vacuuming"; MariaDB 10.11, "Server System Variables". A value that is no size is left to the server,
which refuses it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from atoll.schema.plan import EngineTraits
from atoll.schema.size import MIB

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)", re.IGNORECASE | re.ASCII)
_UNITS = {"b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40, "p": 1 << 50}
_PAGE_BYTES = 8192  # PostgreSQL's, in which wal_buffers counts where no unit is said
_VACUUM_WORKERS = 3  # PostgreSQL's default of autovacuum_max_workers
_MOST_VACUUM_BYTES = 1 << 30  # a vacuum uses no more, whatever it is allowed
# Those of MariaDB, with its defaults, which are part of what an empty server was measured to weigh.
_BUFFERS_BYTES = {
    "key_buffer_size": 128 * MIB,
    "aria_pagecache_buffer_size": 128 * MIB,
    "innodb_log_buffer_size": 16 * MIB,
    "query_cache_size": 1 * MIB,
}


def counted(ours: EngineTraits, taken: Mapping[str, int], *, where: str) -> EngineTraits:
    """`ours` with what `taken` says, setting by setting."""
    named = [name for name, size in taken.items() if size]
    if not named:
        return ours
    return ours.model_copy(
        update={
            "asked_bytes": sum(taken.values()),
            "asked_source": f"{where} ({', '.join(named)})",
        }
    )


def postgresql(files: Iterable[Mapping[str, str]]) -> dict[str, int]:
    """Setting -> bytes, of settings by file; where several files say one, the most."""
    theirs = _most(files, unit_bytes={"wal_buffers": _PAGE_BYTES, "autovacuum_max_workers": 1})
    # -1, the default of the first, is the second's.
    vacuum = "autovacuum_work_mem" if theirs.get("autovacuum_work_mem") else "maintenance_work_mem"
    each = min(theirs.get(vacuum, 0), _MOST_VACUUM_BYTES)
    workers = theirs.get("autovacuum_max_workers", _VACUUM_WORKERS)
    return {"wal_buffers": theirs.get("wal_buffers", 0), vacuum: each * workers}


def mariadb(files: Iterable[Mapping[str, str]]) -> dict[str, int]:
    """Option -> bytes beyond its default, of options by file; where several say one, the most."""
    theirs = _most(files, unit_bytes=dict.fromkeys(_BUFFERS_BYTES, 1))
    return {name: max(0, theirs.get(name, 0) - default) for name, default in _BUFFERS_BYTES.items()}


def _most(files: Iterable[Mapping[str, str]], *, unit_bytes: Mapping[str, int]) -> dict[str, int]:
    found: dict[str, int] = {}
    for settings in files:
        for name, value in settings.items():
            size = _bytes_of(value, unit_bytes.get(name, 1 << 10))
            found[name] = max(size, found.get(name, 0))
    return found


def _bytes_of(value: str, unit_bytes: int) -> int:
    """0 for what is no size."""
    match = _SIZE.fullmatch(value.strip())
    if match is None:
        return 0
    unit = match[2].lower().removesuffix("b") or match[2].lower()
    each = _UNITS.get(unit) if unit else unit_bytes
    return int(float(match[1]) * each) if each else 0
