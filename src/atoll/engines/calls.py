"""How the rest of Atoll calls an engine, whoever wrote it.

If the engine of another package raises a fault, or returns a value of the wrong type, the caller
gets an EngineFailed of one line that names the engine.
"""

from __future__ import annotations

import contextlib
import os
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from atoll.engines import registry
from atoll.engines.api import (
    AllocatingEngine,
    Client,
    ConfigurableEngine,
    Data,
    Engine,
    Installation,
    Layout,
    LoadingEngine,
    PortedEngine,
    ProfiledEngine,
    ScheduledEngine,
    SpanningEngine,
    Table,
    UnattendedEngine,
)
from atoll.engines.facts import EngineFacts
from atoll.engines.userconfig.tree import UserTree
from atoll.errors import AtollError, EngineFailed, UsageError
from atoll.host.api import Host
from atoll.host.programs import ProgramFiles
from atoll.plan.cluster import refuse_part
from atoll.schema.deployment import ProcessSpec
from atoll.schema.operator_graph import OperatorGraph
from atoll.schema.plan import EngineTraits, Plan
from atoll.schema.results import Scheduler
from atoll.schema.text import first_line

_CLIENT = ("execute", "instances", "close")
T = TypeVar("T")


def blamed(fault: BaseException) -> EngineFailed | None:
    """An EngineFailed for a fault that the engine of another package raised. None for any other
    fault, and for an AtollError, which already is one line for the user."""
    if isinstance(fault, AtollError):
        return None
    engines = registry.others_by_package()
    blame = None
    for frame, line in traceback.walk_tb(fault.__traceback__):
        module = str(frame.f_globals.get("__name__", ""))
        name = engines.get(module.partition(".")[0])
        if name:
            code = frame.f_code
            blame = EngineFailed(
                f"engine {name!r}: {type(fault).__name__}: {fault} "
                f"({code.co_filename}:{line}, in {code.co_name}); "
                "fix or uninstall the package that brings it"
            )
    return blame


@contextlib.contextmanager
def foreign_faults() -> Iterator[None]:
    """Raises what `blamed` gives for the faults of another package's engine, and others as they
    are."""
    try:
        yield
    except Exception as fault:
        blame = blamed(fault)
        if blame is None:
            raise
        raise blame from fault


def _returned(engine: Engine, method: str, kind: type[T], *args: object, **kwargs: object) -> T:
    """The value that the engine's method returns. Raises EngineFailed for another type."""
    with foreign_faults():
        value = getattr(engine, method)(*args, **kwargs)
    if not isinstance(value, kind):
        raise _wrong(engine, method, value, kind.__name__)
    return value


def _wrong(engine: Engine, method: str, value: object, wanted: str) -> EngineFailed:
    return EngineFailed(
        f"engine {engine.traits.name!r}: its {method} returned {str(value)[:60]!r} of type "
        f"{type(value).__name__}, not {wanted}; fix or uninstall the package that brings it"
    )


def located(engine: Engine, host: Host) -> Installation:
    return _returned(engine, "locate", Installation, host)


def graph_in(engine: ProfiledEngine, document: bytes) -> OperatorGraph:
    """The graph in an engine's own document. Raises ValueError of one line for another document."""
    try:
        return _returned(engine, "graph", OperatorGraph, document)
    except ValueError as fault:
        raise ValueError(f"not {engine.document} ({first_line(str(fault))})") from None


def malloc_files(engine: Engine, host: Host) -> ProgramFiles | None:
    """None if the engine does not name them, or is not installed."""
    if not isinstance(engine, AllocatingEngine):
        return None
    try:
        return _returned(engine, "malloc_files", ProgramFiles, host)
    except EngineFailed:
        return None


def configured(engine: ConfigurableEngine, tree: UserTree) -> Engine:
    return _engine(engine, "on", tree)


def unattended(engine: Engine) -> Engine:
    """The engine for deployments that run without Atoll."""
    return _engine(engine, "unattended") if isinstance(engine, UnattendedEngine) else engine


def with_ports(engine: Engine) -> Engine:
    """The engine whose clients can connect at ports."""
    return _engine(engine, "with_ports") if isinstance(engine, PortedEngine) else engine


def spanning(engine: Engine, secret: str) -> Engine:
    """Raises UsageError if the engine cannot span machines."""
    if not isinstance(engine, SpanningEngine):
        raise UsageError(f"{engine.traits.name} cannot span machines; plan it for each machine")
    return _engine(engine, "spanning", secret)


def require_secret(plan: Plan, engine: Engine) -> None:
    """Raises UsageError for a part of a cluster without the cluster's secret."""
    if plan.cluster is None:
        return
    with foreign_faults():
        if isinstance(engine, SpanningEngine) and engine.secret:
            return
    refuse_part(plan, "start it with 'atoll fleet up', or on each of them with --secret")


def _engine(engine: Engine, method: str, *args: object) -> Engine:
    with foreign_faults():
        made: Engine = getattr(engine, method)(*args)
    if not isinstance(getattr(made, "traits", None), EngineTraits):
        raise _wrong(engine, method, made, "an engine")
    return made


def wanted_ports(engine: Engine, plan: Plan) -> int:
    number = _returned(engine, "ports", int, plan)
    if number < 0:
        raise _wrong(engine, "ports", number, "a count")
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
    """`engine.layout(...)`, with thread placement if an OpenMP runtime carries it out.

    Raises EngineFailed for a layout that cannot be started, UsageError if its processes would not
    keep to the plan's thread placement.
    """
    require_secret(plan, engine)
    where = {"run_dir": run_dir, "ports": ports, "scratch_dir": scratch_dir}
    layout = _returned(engine, "layout", Layout, plan, installation, **where)
    try:
        fault = next(_faults_of(layout, plan), "")
    except (AttributeError, TypeError) as wrong_type:
        fault = str(wrong_type)
    if fault:
        raise EngineFailed(f"engine {engine.traits.name!r}: its layout cannot be started: {fault}")
    if plan.task_threads is None:
        return layout
    if any(spec.seats_threads for spec in layout.processes):
        raise seats_itself(plan)
    return replace(layout, processes=tuple(_placed(spec, plan) for spec in layout.processes))


def seats_itself(plan: Plan) -> UsageError:
    """The fault of thread placement under Atoll's scheduler."""
    return UsageError(
        f"placement {plan.placement}: under Atoll's scheduler the threads of {plan.engine} move "
        "between chiplets; make the plan with --placement none, or leave out --scheduler"
    )


def _placed(spec: ProcessSpec, plan: Plan) -> ProcessSpec:
    """An OpenMP runtime binds thread k of the program to CPU k of the slot's order."""
    if spec.slot is None or plan.task_threads is None or not plan.task_threads.openmp:
        return spec
    places = ",".join(f"{{{cpu}}}" for cpu in plan.slots[spec.slot].thread_cpus)
    env = {**spec.env, "OMP_PLACES": places, "OMP_PROC_BIND": "close"}
    return spec.model_copy(update={"env": env})


def connected(engine: Engine, endpoints: Sequence[str], *, timeout_s: float) -> list[Client]:
    clients = _returned(engine, "connect", list, endpoints, timeout_s=timeout_s)
    if len(clients) != len(endpoints):
        raise _wrong(engine, "connect", clients, "a client for each endpoint")
    for client in clients:
        missing = [name for name in _CLIENT if not hasattr(client, name)]
        if missing:
            raise EngineFailed(f"engine {engine.traits.name!r}: its client has no {missing[0]}")
    return clients


def attaching(engine: Engine, table: Table) -> list[str]:
    return _returned(engine, "attach", list, table)


def engine_notes(facts: EngineFacts, files: Mapping[str, str]) -> Sequence[str]:
    """The remarks of `EngineFacts.notes` about a layout's files."""
    if facts.notes is None:
        return ()
    with foreign_faults():
        return facts.notes(files)


def holding(engine: Engine, data: Data) -> Engine:
    """The engine whose instances start with these tables, if it keeps tables itself."""
    return engine.holding(data) if isinstance(engine, LoadingEngine) else engine


def under(engine: Engine, scheduler: Scheduler | None) -> Engine:
    """The engine with that scheduler. None stands for an engine that has only its own."""
    if scheduler is None or not isinstance(engine, ScheduledEngine):
        return engine
    return engine.under(scheduler)


def _faults_of(layout: Layout, plan: Plan) -> Iterator[str]:
    """Why a supervisor could not start the layout, or would start it elsewhere than planned.
    Raises AttributeError or TypeError for a part of another type."""
    parts = (layout.files, layout.copies, layout.links)
    names = Counter(spec.name for spec in layout.processes)
    paths = Counter(path for part in parts for path in part)
    if not names:
        yield "it has no process"
    endpoints: object = layout.endpoints
    joins = plan.cluster and not plan.cluster.leads
    if not (isinstance(endpoints, tuple | list) and (endpoints or joins)):
        yield "it has no tuple of endpoints, so nobody could send it a query"
    if layout.access and len(layout.access) != len(layout.endpoints):
        yield "it does not say for each endpoint how to reach it"
    for spec in layout.processes:
        if not spec.argv:
            yield f"process {spec.name!r} has no arguments, not even a program"
        if names[spec.name] > 1 or not spec.name or "/" in spec.name:
            yield f"process {spec.name!r}: each needs a name that can also be its log's file name"
        if spec.slot is not None and not 0 <= spec.slot < len(plan.slots):
            yield f"process {spec.name!r} uses slot {spec.slot} of {len(plan.slots)}"
    for path in (*paths, *(spec.cwd for spec in layout.processes)):
        if os.path.isabs(path) or ".." in path.split("/"):
            yield f"{path!r} is not a path below the run folder"
        if paths[path] > 1:
            yield f"{path!r} is listed twice among files, copies and links"
    texts: Sequence[object] = [
        *(text for part in parts for text in part.values()),
        *layout.endpoints,
        *(text for one in layout.access for text in (one.address, one.command, one.remark)),
    ]
    for text in texts:
        if not isinstance(text, str):
            yield f"{text!r} is not text"
