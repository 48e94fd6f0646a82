"""Engines by name: those that Atoll brings, and those of other packages.

A package adds an engine with an entry point in the group `atoll.engines` that names a class
(or a function) without arguments which gives an `atoll.engines.api.Engine`. An engine's
module is imported only when the engine is asked for.
"""

from __future__ import annotations

import importlib
from importlib.metadata import EntryPoint, entry_points

from atoll.engines.api import Engine
from atoll.errors import EngineFailed, UsageError
from atoll.schema.plan import EngineTraits

GROUP = "atoll.engines"

_OWN = {
    "spark": ("atoll.engines.spark.engine", "SparkEngine"),
    "duckdb": ("atoll.engines.duckdb.engine", "DuckDBEngine"),
    "trino": ("atoll.engines.trino.engine", "TrinoEngine"),
    "presto": ("atoll.engines.trino.presto", "PrestoEngine"),
    "postgresql": ("atoll.engines.postgresql.engine", "PostgreSQLEngine"),
    "mariadb": ("atoll.engines.mariadb.engine", "MariaDBEngine"),
}


_MEMBERS = ("traits", "locate", "ports", "layout", "connect", "attach")


def names() -> tuple[str, ...]:
    """All engines that can be asked for: Atoll's own first, then others by name."""
    return (*_OWN, *(name for name in sorted(_others()) if name not in _OWN))


def get(name: str) -> Engine:
    """The engine of that name. Raises UsageError if there is none, EngineFailed if another
    package's engine cannot be loaded."""
    if name in _OWN:
        module, kind = _OWN[name]
        engine: Engine = getattr(importlib.import_module(module), kind)()
        return engine
    points = _others().get(name)
    if points is None:
        raise UsageError(f"engine {name!r} is not known; known are: {', '.join(names())}")
    if len(points) > 1:
        packages = " and ".join(_package(point) for point in points)
        raise EngineFailed(f"{packages} bring an engine {name!r} each; uninstall one of them")
    try:
        made: Engine = points[0].load()()
        wrong = _wrong(name, made)
    except Exception as fault:  # whatever a foreign module does wrong is told in one line
        wrong = f"{type(fault).__name__}: {fault}"
    if wrong:
        raise EngineFailed(
            f"engine {name!r} ({points[0].value}) cannot be loaded: {wrong}; "
            f"mend or uninstall {_package(points[0])}"
        )
    return made


def passed_over() -> tuple[str, ...]:
    """Other packages' engines that have the name of one of Atoll's: why nobody can ask for them."""
    return tuple(
        f"{name} of {_package(point)} is passed over: Atoll brings an engine of that name; "
        "the entry point needs another"
        for name, points in sorted(_others().items())
        for point in points
        if name in _OWN
    )


def others_by_package() -> dict[str, str]:
    """The top package of each module that brings an engine, and the engine's name."""
    return {
        point.module.partition(".")[0]: name
        for name, points in _others().items()
        for point in points
    }


def _wrong(name: str, made: object) -> str:
    """Why that is no engine that can be asked for by `name`; empty if it is one."""
    lacking = [member for member in _MEMBERS if not hasattr(made, member)]
    if lacking:
        return f"it has no {lacking[0]}"
    traits: object = getattr(made, "traits", None)
    if not isinstance(traits, EngineTraits):
        return f"its traits are {type(traits).__name__} and not EngineTraits"
    if traits.name != name:
        return f"its traits name it {traits.name!r}; the entry point must have the same name"
    return ""


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist else point.value


def _others() -> dict[str, list[EntryPoint]]:
    found: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=GROUP):
        found.setdefault(point.name, []).append(point)
    return found
