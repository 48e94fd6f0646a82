"""How the rest of Atoll asks an engine, whoever wrote it.

What another package's engine raises, and what it gives that is not what `atoll.engines.api` says,
becomes an EngineFailed that names the engine and the line.
"""

from __future__ import annotations

import contextlib
import os
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from atoll.engines import registry
from atoll.engines.api import (
    Client,
    ConfigurableEngine,
    Data,
    Engine,
    Installation,
    Layout,
    LoadingEngine,
    ScheduledEngine,
    Table,
    UnattendedEngine,
)
from atoll.engines.facts import EngineFacts
from atoll.engines.userconfig.tree import UserTree
from atoll.errors import AtollError, EngineFailed
from atoll.host.api import Host
from atoll.schema.deployment import ProcessSpec
from atoll.schema.plan import EngineTraits, Plan
from atoll.schema.results import Scheduler

_CLIENT = ("execute", "instances", "close")
# Of a layout's parts.
_KINDS: Mapping[str, tuple[type, ...]] = {
    "processes": (tuple, list),
    "files": (Mapping,),
    "copies": (Mapping,),
    "links": (Mapping,),
    "endpoints": (tuple, list),
    "reasons": (Mapping,),
}


def blamed(fault: BaseException) -> EngineFailed | None:
    """The fault as one of the other package's engine that it came out of; None: out of none, or it
    says itself what is wrong."""
    if isinstance(fault, AtollError):
        return None
    engines = registry.others_by_package()
    told = None
    for frame, line in traceback.walk_tb(fault.__traceback__):
        module = str(frame.f_globals.get("__name__", ""))
        name = engines.get(module.partition(".")[0])
        if name:
            code = frame.f_code
            told = EngineFailed(
                f"engine {name!r}: {type(fault).__name__}: {fault} "
                f"({code.co_filename}:{line}, in {code.co_name}); "
                "mend or uninstall the package that brings it"
            )
    return told


@contextlib.contextmanager
def foreign_faults() -> Iterator[None]:
    """What another package's engine raises inside is an EngineFailed. Faults of ours stay."""
    try:
        yield
    except AtollError:
        raise
    except Exception as fault:
        told = blamed(fault)
        if told is None:
            raise
        raise told from fault


def located(engine: Engine, host: Host) -> Installation:
    """`engine.locate(host)`, and raises as that does."""
    with foreign_faults():
        found: object = engine.locate(host)
    if not isinstance(found, Installation):
        raise _wrong(engine, "locate", found, "an Installation")
    return found


def configured(engine: ConfigurableEngine, tree: UserTree) -> Engine:
    """`engine.on(tree)`, and raises as that does."""
    with foreign_faults():
        found = engine.on(tree)
    return _engine(engine, "on", found)


def unattended(engine: Engine) -> Engine:
    """The engine for deployments that run without Atoll."""
    if not isinstance(engine, UnattendedEngine):
        return engine
    with foreign_faults():
        found = engine.unattended()
    return _engine(engine, "unattended", found)


def _engine(engine: Engine, method: str, found: Engine) -> Engine:
    if not isinstance(getattr(found, "traits", None), EngineTraits):
        raise _wrong(engine, method, found, "an engine")
    return found


def wanted_ports(engine: Engine, plan: Plan) -> int:
    with foreign_faults():
        number: object = engine.ports(plan)
    if not isinstance(number, int) or number < 0:
        raise _wrong(engine, "ports", number, "a number")
    return number


def laid_out(
    engine: Engine,
    plan: Plan,
    installation: Installation,
    *,
    run_dir: str,
    ports: Sequence[int],
    scratch_dir: str | None = None,
) -> Layout:
    """`engine.layout(...)`. Raises EngineFailed for one that cannot be started."""
    with foreign_faults():
        layout: object = engine.layout(
            plan, installation, run_dir=run_dir, ports=ports, scratch_dir=scratch_dir
        )
    if not isinstance(layout, Layout):
        raise _wrong(engine, "layout", layout, "a Layout")
    fault = next(_faults_of(layout, plan), "")
    if fault:
        raise EngineFailed(f"engine {engine.traits.name!r}: its layout cannot be started: {fault}")
    return layout


def connected(engine: Engine, endpoints: Sequence[str], *, timeout_s: float) -> list[Client]:
    """`engine.connect(...)`. Raises EngineFailed, also unless it is a client for each endpoint."""
    clients: object = engine.connect(endpoints, timeout_s=timeout_s)
    if not isinstance(clients, list) or len(clients) != len(endpoints):
        raise _wrong(engine, "connect", clients, "a list with a client for each endpoint")
    for client in clients:
        lacking = [name for name in _CLIENT if not hasattr(client, name)]
        if lacking:
            raise EngineFailed(f"engine {engine.traits.name!r}: its client has no {lacking[0]}")
    return clients


def attaching(engine: Engine, table: Table) -> list[str]:
    """`engine.attach(table)`, and raises as that does."""
    with foreign_faults():
        statements: object = engine.attach(table)
    if not isinstance(statements, list):
        raise _wrong(engine, "attach", statements, "a list of statements")
    return statements


def engine_notes(facts: EngineFacts, files: Mapping[str, str]) -> Sequence[str]:
    """The remarks of `EngineFacts.notes` about a layout's files."""
    if facts.notes is None:
        return ()
    with foreign_faults():
        return facts.notes(files)


def holding(engine: Engine, data: Data) -> Engine:
    """The engine with these tables in it, where it keeps tables itself."""
    return engine.holding(data) if isinstance(engine, LoadingEngine) else engine


def under(engine: Engine, scheduler: Scheduler | None) -> Engine:
    """The engine with that scheduler; None: it has but its own."""
    if scheduler is None or not isinstance(engine, ScheduledEngine):
        return engine
    return engine.under(scheduler)


def _wrong(engine: Engine, method: str, found: object, wanted: str) -> EngineFailed:
    return EngineFailed(
        f"engine {engine.traits.name!r}: its {method} gives {type(found).__name__} "
        f"{str(found)[:60]!r} and not {wanted}; mend the package that brings it"
    )


def _faults_of(layout: Layout, plan: Plan) -> Iterator[str]:
    """What a supervisor could not start, or would start somewhere else than planned."""
    for name, kinds in _KINDS.items():
        part: object = getattr(layout, name)
        if not isinstance(part, kinds):
            yield f"its {name} are {type(part).__name__} and not {kinds[0].__name__}"
            return
    processes: Sequence[object] = layout.processes
    specs = [spec for spec in processes if isinstance(spec, ProcessSpec)]
    yield from (
        f"{type(spec).__name__} is no ProcessSpec" for spec in processes if spec not in specs
    )
    for spec in specs:
        if not spec.argv:
            yield f"process {spec.name!r} has no argument, not even a program"
        if not spec.name or "/" in spec.name:
            yield f"process {spec.name!r}: its log is named after it, so it needs a file's name"
        if spec.slot is not None and not 0 <= spec.slot < len(plan.slots):
            yield f"process {spec.name!r} sits in slot {spec.slot} of {len(plan.slots)}"
        if not _is_below(spec.cwd):
            yield f"process {spec.name!r}: cwd {spec.cwd!r} is not below the run folder"
    if not specs:
        yield "it has no process"
    names = Counter(spec.name for spec in specs)
    yield from (f"two processes are named {name!r}" for name, count in names.items() if count > 1)
    parts = (layout.files, layout.copies, layout.links)
    paths = Counter(path for part in parts for path in part)
    for path, count in paths.items():
        if not _is_below(path):
            yield f"{path!r} is not a path below the run folder"
        if count > 1:
            yield f"{path!r} is a file, a copy or a link, and not two of them"
    texts: list[object] = [*layout.endpoints, *(text for part in parts for text in part.values())]
    yield from (f"{text!r} is not text" for text in texts if not isinstance(text, str))
    if not layout.endpoints:
        yield "it has no endpoint, so nobody could ask it"


def _is_below(path: object) -> bool:
    return isinstance(path, str) and not os.path.isabs(path) and ".." not in path.split("/")
