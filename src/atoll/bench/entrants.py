"""The entrants of a bench: engines times cells, and plans from files. Pure.

Every engine is also measured under WIM, the baseline of its speed-ups. Unless something is varied,
the policies are: each that differs on this machine. Cells whose deployments coincide on this
machine are one entrant, which keeps all their names.

If an engine is measured under its own scheduler and under Atoll's, the baseline of a cell under
Atoll's scheduler is the same cell under the engine's own, so the two differ only in the scheduler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from atoll.bench.axes import KNOB, Axis, Grid, chosen, in_bench_words, is_run_axis
from atoll.bench.cells import (
    PLAN,
    Cell,
    Values,
    baseline_of,
    baselines,
    label_of,
    make_cells,
    policy_of,
)
from atoll.bench.decompose import chain_plans
from atoll.bench.sameness import coincide
from atoll.errors import UsageError
from atoll.plan import comparable, make_plan
from atoll.plan.request import Choices
from atoll.schema.machine import Machine
from atoll.schema.plan import EngineTraits, HugePages, Malloc, Plan, Policy
from atoll.schema.results import CellName, Entrant, Scheduler

# From coarse to fine. The mixed policy and the control policy answer separate questions and are
# measured only if the user names them.
DEFAULT = (Policy.WIM, Policy.WIN, Policy.WICP, Policy.WIC)
_POLICIES = Axis("policy", tuple(policy.value for policy in DEFAULT))


@dataclass(frozen=True, slots=True)
class _Planned:
    cell: Cell
    plan: Plan


@dataclass(frozen=True, slots=True)
class _Engine:
    """What is measured of one engine, the baseline first."""

    base: Values  # of the baseline
    planned: tuple[_Planned, ...]


def make_entrants(
    machine: Machine,
    engines: Iterable[EngineTraits],
    plans: Iterable[tuple[Plan, EngineTraits]],
    grid: Grid | None = None,
    *,
    choices: Choices | None = None,
    schedulers: Mapping[str, Sequence[Scheduler]] | None = None,
    knobs: Mapping[str, str] | None = None,
) -> tuple[tuple[Entrant, ...], tuple[str, ...]]:
    """The entrants, each engine's baseline first, and notes on what was left out, merged or added.

    `plans`: from files, with the traits of their engines; of the grid they get the run's axes.
    `choices`: of the engines' plans, besides the grid. `schedulers`: engine -> its schedulers, its
    own first, of engines that have several. `knobs`: the present values of the grid's knobs.
    Raises UsageError if a value of the grid fits no cell, and for fewer streams than servers.
    """
    grid = grid or Grid()
    notes: list[str] = []
    by_engine: dict[str, _Engine] = {}
    files: dict[str, list[Plan]] = {}
    known: dict[str, EngineTraits] = {}
    for traits in engines:
        if traits.name in known:
            raise UsageError(f"{traits.name}: named twice; name each engine once")
        known[traits.name] = traits
        by_engine[traits.name], remarks = _of_engine(machine, traits, grid, choices or {})
        notes += remarks
    for plan, traits in plans:
        known[plan.engine] = traits
        files.setdefault(plan.engine, []).append(plan)
    for engine, own in files.items():
        beside = by_engine.get(engine)
        by_engine[engine], remarks = _of_files(machine, known[engine], own, beside, grid)
        notes += remarks
    entrants: list[Entrant] = []
    for engine, measured in by_engine.items():
        own_scheduler = next(iter((schedulers or {}).get(engine, ())), None)
        found, remarks = _entrants(machine, known[engine], measured, own_scheduler, knobs or {})
        entrants += found
        notes += [*remarks, *_warnings(found)]
    return tuple(entrants), tuple(notes)


def make_chain(
    machine: Machine,
    traits: EngineTraits,
    scheduler: Scheduler | None,
    count: int | None,
    streams: int | None = None,
) -> tuple[tuple[Entrant, ...], tuple[str, ...]]:
    """As `make_entrants`, for the chain of `atoll.bench.decompose` under one scheduler."""
    labelled, notes = chain_plans(machine, traits, count)
    streaming, more = _streams(traits, [plan for _, plan in labelled], streams)
    labels = [f"{label}/atoll" if scheduler == "atoll" else label for label, _ in labelled]
    entrants = [
        Entrant(
            label=label,
            engine=traits.name,
            plan=plan,
            scheduler=scheduler,
            streams=streaming,
            baseline=None if label == labels[0] else labels[0],
        )
        for label, (_, plan) in zip(labels, labelled, strict=True)
    ]
    return tuple(entrants), (*notes, *more, *_warnings(entrants))


def _entrants(
    machine: Machine,
    traits: EngineTraits,
    measured: _Engine,
    own_scheduler: Scheduler | None,
    knobs: Mapping[str, str],
) -> tuple[list[Entrant], list[str]]:
    """The entrants of one engine, those that coincide merged."""
    engine, base, planned = traits.name, measured.base, measured.planned
    asked = {one.cell.values.get("streams") for one in planned}
    shared = asked.pop() if len(asked) == 1 else None
    plans = [one.plan for one in planned]
    default, notes = _streams(traits, plans, int(shared) if shared else None)
    found: list[Entrant] = []
    named: dict[str, str] = {}  # a cell's label -> its entrant's
    refused: list[tuple[Cell, UsageError]] = []
    for one in planned:
        values, label = one.cell.values, one.cell.label
        streams = int(values.get("streams", default))
        try:
            _check_streams(traits, [one.plan], streams)
        except UsageError as fault:
            refused.append((one.cell, fault))
            continue
        wanted = [label_of(engine, one, base) for one in baselines(values, base, own_scheduler)]
        wanted.append(planned[0].cell.label)
        baseline = next((named[one] for one in wanted if one in named), None)
        entrant = Entrant(
            label=label,
            engine=engine,
            plan=one.plan,
            scheduler=values.get("scheduler", own_scheduler),
            streams=streams,
            knobs={name: values.get(f"{KNOB}{name}", now) for name, now in knobs.items()},
            baseline=baseline,
            cells=(CellName(label=label, values=dict(values)),),
        )
        twin = next((other for other in found if coincide(other, entrant, machine)), None)
        if twin is None or PLAN in values:
            named[label] = label
            found.append(entrant)
            continue
        named[label] = twin.label
        cells = (*twin.cells, *entrant.cells)
        found[found.index(twin)] = twin.model_copy(update={"cells": cells})
        notes.append(
            f"{label} is measured as {twin.label}: on this machine they are the same deployment"
        )
    kept = [one.cell for one in planned if one.cell.label in named]
    _refuse_values(kept, refused, by_default=False, chosen=False)
    notes += [f"{cell.label} was left out: {fault}" for cell, fault in refused]
    if len({entrant.scheduler for entrant in found}) > 1:
        notes.append(
            f"{engine}: the baseline under Atoll's scheduler is the same policy under the "
            "engine's own scheduler"
        )
    return found, notes


def _streams(
    traits: EngineTraits, plans: Sequence[Plan], asked: int | None
) -> tuple[int, list[str]]:
    """The number of query streams of each deployment, and notes if it is not one."""
    servers = 1 if traits.distributed else max(len(plan.slots) for plan in plans)
    threads = 1 if traits.parallel_query else max(plan.total_threads for plan in plans)
    if asked is not None:
        _check_streams(traits, plans, asked)
    streams = asked or max(servers, threads)
    why = ["a query runs on one thread"] if threads > 1 else []
    why += ["one of them has several servers"] if servers > 1 else []
    copies = "; each server has a full copy of the data" if servers > 1 else ""
    notes = []
    if streams > 1:
        because = "as requested" if asked else f"because {' and '.join(why)}"
        notes.append(
            f"{traits.name}: {streams} concurrent query streams in every deployment, distributed "
            f"round-robin, {because}{copies}"
        )
    if streams < threads:
        # This puts the coarser policies at a disadvantage.
        notes.append(
            f"{traits.name}: a query runs on one thread, so {streams} streams leave some of "
            f"{threads} threads idle, and the policies differ in which"
        )
    return streams, notes


def _check_streams(traits: EngineTraits, plans: Sequence[Plan], streams: int) -> None:
    servers = 1 if traits.distributed else max(len(plan.slots) for plan in plans)
    if streams < servers:
        raise UsageError(
            f"--streams {streams}: {traits.name} has {servers} servers in one of the deployments, "
            f"and each needs a stream; use {servers} or more"
        )


def _warnings(entrants: Sequence[Entrant]) -> list[str]:
    """The plans' warnings, each once with the labels of its entrants."""
    having: dict[str, list[str]] = {}
    for entrant in entrants:
        for warning in entrant.plan.warnings if entrant.plan else ():
            having.setdefault(warning, []).append(entrant.label)
    return [f"{', '.join(labels)}: {warning}" for warning, labels in having.items()]


def _of_engine(
    machine: Machine, traits: EngineTraits, grid: Grid, choices: Choices
) -> tuple[_Engine, list[str]]:
    """The cells of an engine that the machine can have, with equal heaps where the CPUs are equal.

    Raises UsageError if the baseline does not fit, or a value of the grid in no cell.
    """
    by_default = not grid.values("policy") and not grid.values("n")
    by_default &= all(axis.name == "scheduler" for axis in grid.varied)
    if by_default:
        grid = grid.having(_POLICIES)
    cells = make_cells(traits.name, grid)
    planners = {cell.label: _planner(machine, traits, cell.values, choices) for cell in cells}
    refused: list[tuple[Cell, UsageError]] = []
    kept: list[Cell] = []
    for cell in cells:
        try:
            planners[cell.label]()
        except UsageError as fault:
            if cell is cells[0]:
                raise  # without a baseline there is nothing to compare with
            refused.append((cell, UsageError(in_bench_words(str(fault)))))
        else:
            kept.append(cell)
    _refuse_values(kept, refused, by_default=by_default, chosen=bool(choices or grid.fixed))
    notes = [f"{cell.label} was left out: {fault}" for cell, fault in refused]
    if grid.values("policy") and Policy.WIM.value not in grid.values("policy"):
        notes.append(f"{cells[0].label} was added as the baseline of speed-ups")
    plans: dict[str, Plan] = {}
    for group in _alike(kept):
        found = comparable([planners[cell.label] for cell in group])
        plans |= {cell.label: plan for cell, plan in zip(group, found, strict=True)}
    planned = tuple(_Planned(cell, plans[cell.label]) for cell in kept)
    return _Engine(cells[0].values, planned), notes


def _planner(
    machine: Machine, traits: EngineTraits, values: Values, choices: Choices
) -> Callable[..., Plan]:
    return partial(
        make_plan, machine, traits, policy_of(values), **Choices(**{**choices, **chosen(values)})
    )


def _refuse_values(
    kept: Sequence[Cell],
    refused: Sequence[tuple[Cell, UsageError]],
    *,
    by_default: bool,
    chosen: bool,
) -> None:
    """Raises the fault of a value that the user named and that fits no cell."""
    if by_default:
        if refused and chosen and len({policy_of(cell.values) for cell in kept}) == 1:
            raise refused[-1][1]  # no policy can do what the user chose
        return
    measured = {pair for cell in kept for pair in cell.values.items()}
    measured |= {("policy", policy_of(cell.values)) for cell in kept}
    for cell, fault in refused:
        if any(pair not in measured for pair in cell.values.items()):
            raise UsageError(f"{cell.label}: {fault}") from None


def _alike(cells: Sequence[Cell]) -> list[list[Cell]]:
    """The cells by what decides how large a deployment can be."""
    groups: dict[tuple[str | None, ...], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.values.get("cores"), cell.values.get("smt")), []).append(cell)
    return list(groups.values())


def _of_files(
    machine: Machine,
    traits: EngineTraits,
    plans: Sequence[Plan],
    beside: _Engine | None,
    grid: Grid,
) -> tuple[_Engine, list[str]]:
    """The plans of an engine from files, after its cells, or after a baseline for them."""
    notes: list[str] = []
    run = Grid(tuple(axis for axis in grid.axes if is_run_axis(axis.name)))
    before = beside.planned if beside else ()
    taken = [(one.cell.label, one.plan) for one in before]
    if beside is None and plans[0].policy is not Policy.WIM:
        # With the plan's total heap, malloc and huge pages, so that only placement differs.
        base = make_plan(
            machine,
            traits,
            "wim",
            heap_limit_bytes=plans[0].total_heap_bytes,
            malloc=plans[0].malloc,
            thp=plans[0].thp,
        )
        taken.append((_free_label(taken, base), base))
        notes.append(f"{taken[0][0]} was added as the baseline of speed-ups")
    for plan in plans:
        taken.append((_free_label(taken, plan), plan))
    by_label = dict(taken[len(before) :])
    cells = make_cells(traits.name, run, tuple(by_label))
    planned = [_Planned(cell, by_label[cell.values[PLAN]]) for cell in cells]
    return _Engine(beside.base if beside else baseline_of(run), (*before, *planned)), notes


def _free_label(taken: Sequence[tuple[str, Plan]], plan: Plan) -> str:
    """'ENGINE/wic' or 'ENGINE/wic/jemalloc', or 'ENGINE/wic-2' if that name is taken."""
    labels = {label for label, _ in taken}
    parts = [plan.engine, plan.policy.value]
    parts += [plan.malloc.value] if plan.malloc is not Malloc.SYSTEM else []
    parts += ["no-thp"] if plan.thp is HugePages.NEVER else []
    wanted = "/".join(parts)
    number = 1
    label = wanted
    while label in labels:
        number += 1
        label = f"{wanted}-{number}"
    return label
