"""Engines by name: those that Atoll brings, and those of other packages.

A package adds an engine with an entry point in the group `atoll.engines` that names a class
(or a function) without arguments which gives an `atoll.engines.base.Engine`. An engine's
module is imported only when the engine is asked for.
"""

from __future__ import annotations

import importlib
from importlib.metadata import EntryPoint, entry_points

from atoll.engines.base import Engine
from atoll.errors import EngineFailed, UsageError

GROUP = "atoll.engines"

_OWN = {
    "spark": ("atoll.engines.spark", "SparkEngine"),
    "duckdb": ("atoll.engines.duckdb", "DuckDBEngine"),
    "trino": ("atoll.engines.trino", "TrinoEngine"),
    "presto": ("atoll.engines.presto", "PrestoEngine"),
    "postgresql": ("atoll.engines.postgresql", "PostgreSQLEngine"),
    "mariadb": ("atoll.engines.mariadb", "MariaDBEngine"),
}


def names() -> tuple[str, ...]:
    """All engines that can be asked for: Atoll's own first, then others by name."""
    return (*_OWN, *sorted(point for point in _others() if point not in _OWN))


def get(name: str) -> Engine:
    """The engine of that name. Raises UsageError if there is none, EngineFailed if another
    package's engine cannot be loaded."""
    if name in _OWN:
        module, kind = _OWN[name]
        engine: Engine = getattr(importlib.import_module(module), kind)()
        return engine
    point = _others().get(name)
    if point is None:
        raise UsageError(f"engine {name!r} is not known; known are: {', '.join(names())}")
    try:
        made: Engine = point.load()()
    except Exception as fault:  # whatever a foreign module does wrong is told in one line
        raise EngineFailed(
            f"engine {name!r} ({point.value}) cannot be loaded: {fault}; "
            "mend or uninstall the package that brings it"
        ) from None
    return made


def _others() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}
