"""Engines by name: Atoll's own, and those of other packages.

A package adds an engine with an entry point in the group `atoll.engines`. The entry point names a
class (or a function) without arguments that returns an `atoll.engines.api.Engine`. Engines that
Atoll can render and cannot run have the group `atoll.rendered_engines`, and return an
`atoll.engines.rendered.RenderedEngine`. An engine's module is imported only when the engine is
used.
"""

from __future__ import annotations

import importlib
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from atoll.engines.api import Engine
from atoll.engines.facts import EngineFacts, facts_of
from atoll.engines.placeable import Attachable, Installable, Placeable
from atoll.engines.rendered import RenderedEngine
from atoll.errors import EngineFailed, UsageError
from atoll.schema.plan import EngineTraits

GROUP = "atoll.engines"
RENDERED = "atoll.rendered_engines"

_OWN = {
    GROUP: {
        "spark": ("atoll.engines.spark.engine", "SparkEngine"),
        "duckdb": ("atoll.engines.duckdb.engine", "DuckDBEngine"),
        "trino": ("atoll.engines.trino.engine", "TrinoEngine"),
        "presto": ("atoll.engines.trino.engine", "PrestoEngine"),
        "postgresql": ("atoll.engines.postgresql.engine", "PostgreSQLEngine"),
        "mariadb": ("atoll.engines.mariadb.engine", "MariaDBEngine"),
    },
    RENDERED: {
        "singlestore": ("atoll.engines.singlestore.engine", "SingleStoreEngine"),
        "greenplum": ("atoll.engines.greenplum.engine", "GreenplumEngine"),
    },
}
# Programs whose operators can be placed, see `atoll.engines.placeable`.
_PLACEABLE = {
    "flink": ("atoll.engines.flink.program", "FlinkProgram"),
    "sharedplan": ("atoll.engines.sharedplan", "SharedPlan"),
    "postgresql": ("atoll.engines.postgresql.operators.backends", "PostgreSQLBackends"),
}
_MEMBERS = {
    GROUP: ("traits", "locate", "ports", "layout", "connect", "attach"),
    RENDERED: ("traits", "policy", "render"),
}


def names(group: str = GROUP) -> tuple[str, ...]:
    """All engines of the group: Atoll's own first, then the others by name."""
    own = _OWN[group]
    return (*own, *(name for name in sorted(_others(group)) if name not in own))


def get(name: str) -> Engine:
    """The engine of that name. Raises UsageError if none has it, EngineFailed if another
    package's engine cannot be loaded."""
    engine: Engine = _load(name, GROUP)
    return engine


def get_rendered(name: str) -> RenderedEngine | None:
    """The engine of that name that Atoll can only render; None if none has it. Raises EngineFailed
    if another package's engine cannot be loaded."""
    if name not in names(RENDERED):
        return None
    engine: RenderedEngine = _load(name, RENDERED)
    return engine


def placeable_names() -> tuple[str, ...]:
    return tuple(_PLACEABLE)


def get_placeable(name: str) -> Placeable:
    """The program of that name. Raises UsageError if there is none, with the reason if it is an
    engine whose operators cannot be placed."""
    if name not in _PLACEABLE:
        known = f"operators can be placed of: {', '.join(_PLACEABLE)}"
        why = why_not_placeable(name)
        if not why:
            raise UsageError(f"program {name!r} is not known; {known}")
        raise UsageError(f"the operators of {name} cannot be placed: {why}; {known}")
    module, kind = _PLACEABLE[name]
    try:
        made: Placeable = getattr(importlib.import_module(module), kind)()
    except ImportError as fault:
        raise EngineFailed(
            f"{name}: the Python package {fault.name} is missing; install it with: "
            f"pip install 'atoll[{name}]'"
        ) from None
    return made


def get_attachable(name: str) -> Attachable:
    """As `get_placeable`; also raises UsageError if only its own `start` gives access to it."""
    program = get_placeable(name)
    if not isinstance(program, Attachable):
        raise UsageError(
            f"a {name} that runs cannot be watched or placed: it reads its placement when it "
            f"starts; 'atoll operators compare {name}' starts one of its own"
        )
    return program


def why_not_placeable(name: str) -> str:
    """Why the operators of an engine cannot be placed; empty if they can, or if it is not known."""
    if name in _PLACEABLE or name not in names():
        return ""
    return facts_of(get(name)).shared_threads or "its threads are not known"


def programs() -> dict[str, Installable]:
    """The programs that are no engines for queries, and that Atoll installs."""
    made = {name: get_placeable(name) for name in _PLACEABLE if name not in names()}
    return {name: program for name, program in made.items() if isinstance(program, Installable)}


def _load(name: str, group: str) -> Any:
    if name in _OWN[group]:
        module, kind = _OWN[group][name]
        return getattr(importlib.import_module(module), kind)()
    points = _others(group).get(name)
    if points is None:
        raise UsageError(
            f"engine {name!r} is not known; known are: {', '.join(names())}; 'atoll render' also "
            f"knows: {', '.join(names(RENDERED))}"
        )
    if len(points) > 1:
        packages = " and ".join(_package(point) for point in points)
        raise EngineFailed(f"{packages} both bring an engine {name!r}; uninstall one of them")
    try:
        made = points[0].load()()
        wrong = _wrong(name, made, group)
    except Exception as fault:  # whatever another package raises becomes one line
        wrong = f"{type(fault).__name__}: {fault}"
    if wrong:
        raise EngineFailed(
            f"engine {name!r} ({points[0].value}) cannot be loaded: {wrong}; "
            f"fix or uninstall {_package(points[0])}"
        )
    return made


def passed_over() -> tuple[str, ...]:
    """A line for each engine of another package that has the name of one of Atoll's."""
    return tuple(
        f"{name} of {_package(point)} is ignored: Atoll has an engine of that name; "
        "the entry point needs another"
        for group, own in _OWN.items()
        for name, points in sorted(_others(group).items())
        for point in points
        if name in own
    )


def others_by_package() -> dict[str, str]:
    """The top package of each module that brings an engine, and the engine's name."""
    return {
        point.module.partition(".")[0]: name
        for group in _OWN
        for name, points in _others(group).items()
        for point in points
    }


def _wrong(name: str, made: object, group: str) -> str:
    """Why the object cannot be used as the engine `name`; empty if it can."""
    lacking = [member for member in _MEMBERS[group] if not hasattr(made, member)]
    if lacking:
        return f"it has no {lacking[0]}"
    traits: object = getattr(made, "traits", None)
    if not isinstance(traits, EngineTraits):
        return f"its traits are {type(traits).__name__} and not EngineTraits"
    if traits.name != name:
        return f"its traits name it {traits.name!r}; the entry point must have the same name"
    facts: object = facts_of(made)
    if not isinstance(facts, EngineFacts):
        return f"its facts are {type(facts).__name__} and not EngineFacts"
    return facts.fault()


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist else point.value


def _others(group: str) -> dict[str, list[EntryPoint]]:
    found: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=group):
        found.setdefault(point.name, []).append(point)
    return found
