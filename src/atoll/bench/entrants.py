"""The entrants of a bench: engines times policies, and plans from files. Pure.

Every engine is also measured under WIM, the baseline of its speed-ups. By default each policy
that differs on this machine is measured: policies that coincide are measured once, and a note
says so. Policies that the user names are all measured, whether they coincide or not.

If an engine is measured under its own scheduler and under Atoll's, every plan is measured under
both. The baseline of a plan under Atoll's scheduler is the same plan under the engine's own, so
the two differ only in the scheduler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from atoll.bench.decompose import chain_plans
from atoll.errors import UsageError
from atoll.plan import comparable, make_plan
from atoll.plan.request import Choices
from atoll.schema.machine import Machine
from atoll.schema.plan import EngineTraits, HugePages, Malloc, Placement, Plan, Policy
from atoll.schema.results import Entrant, Scheduler

# From coarse to fine. The mixed policy and the control policy answer separate questions and are
# measured only if the user names them.
DEFAULT = (Policy.WIM, Policy.WIN, Policy.WICP, Policy.WIC)


def make_entrants(
    machine: Machine,
    engines: Iterable[tuple[EngineTraits, Sequence[str] | None]],
    plans: Iterable[tuple[Plan, EngineTraits]],
    schedulers: Mapping[str, Sequence[Scheduler]] | None = None,
    streams: int | None = None,
    choices: Choices | None = None,
) -> tuple[tuple[Entrant, ...], tuple[str, ...]]:
    """The entrants, each engine's baseline first, and notes on what was left out or added.

    `engines`: with their policies; None: each policy that differs on this machine.
    `plans`: from files, with the traits of their engines.
    `schedulers`: engine -> schedulers, its own first; only engines that have several.
    `streams`: concurrent queries of a deployment; None: enough to keep it busy.
    `choices`: of the engines' plans; not of `plans`. The baseline sets no place and no memory
    policy, whatever they say.
    Raises UsageError if a named policy does not fit the machine, and for fewer streams than
    servers.
    """
    notes: list[str] = []
    by_engine: dict[str, list[tuple[str, Plan]]] = {}
    known: dict[str, EngineTraits] = {}
    for traits, policies in engines:
        if traits.name in by_engine:
            raise UsageError(f"{traits.name}: named twice; name each engine once")
        known[traits.name] = traits
        found, remarks = _of_engine(machine, traits, policies, choices or {})
        by_engine[traits.name] = found
        notes += remarks
    for plan, traits in plans:
        known[plan.engine] = traits
        mine = by_engine.setdefault(plan.engine, [])
        if not mine and plan.policy is not Policy.WIM:
            # With the plan's total heap, malloc and huge pages, so that only placement differs.
            base = make_plan(
                machine,
                traits,
                "wim",
                heap_limit_bytes=plan.total_heap_bytes,
                malloc=plan.malloc,
                thp=plan.thp,
            )
            mine.append((_free_label(mine, base), base))
            notes.append(f"{mine[0][0]} was added as the baseline of speed-ups")
        mine.append((_free_label(mine, plan), plan))
    entrants: list[Entrant] = []
    for engine, labelled in by_engine.items():
        streaming, remarks = _streams(known[engine], labelled, streams)
        notes += remarks
        under = (schedulers or {}).get(engine, (None,))
        if len(under) > 1:
            notes.append(
                f"{engine}: the baseline under Atoll's scheduler is the same policy under the "
                "engine's own scheduler"
            )
        named = _entrants(engine, labelled, under, streaming)
        entrants += named
        notes += _warnings(named)
    return tuple(entrants), tuple(notes)


def make_chain(
    machine: Machine,
    traits: EngineTraits,
    schedulers: Sequence[Scheduler | None],
    count: int | None,
    streams: int | None = None,
) -> tuple[tuple[Entrant, ...], tuple[str, ...]]:
    """As `make_entrants`, for the chain of `atoll.bench.decompose` under one scheduler."""
    labelled, notes = chain_plans(machine, traits, count)
    streaming, more = _streams(traits, labelled, streams)
    entrants = _entrants(traits.name, labelled, schedulers or (None,), streaming)
    return tuple(entrants), (*notes, *more, *_warnings(entrants))


def _streams(
    traits: EngineTraits, labelled: Sequence[tuple[str, Plan]], asked: int | None
) -> tuple[int, list[str]]:
    """The number of query streams of each deployment, and notes if it is not one."""
    servers = 1 if traits.distributed else max(len(plan.slots) for _, plan in labelled)
    threads = 1 if traits.parallel_query else max(plan.total_threads for _, plan in labelled)
    if asked is not None and asked < servers:
        raise UsageError(
            f"--streams {asked}: {traits.name} has {servers} servers in one of the deployments, "
            f"and each needs a stream; use {servers} or more"
        )
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


def _warnings(entrants: Sequence[Entrant]) -> list[str]:
    """The plans' warnings, each once with the labels of its entrants."""
    having: dict[str, list[str]] = {}
    for entrant in entrants:
        for warning in entrant.plan.warnings if entrant.plan else ():
            having.setdefault(warning, []).append(entrant.label)
    return [f"{', '.join(labels)}: {warning}" for warning, labels in having.items()]


def _entrants(
    engine: str,
    labelled: Sequence[tuple[str, Plan]],
    schedulers: Sequence[Scheduler | None],
    streams: int,
) -> list[Entrant]:
    """Every plan under every scheduler."""
    first = schedulers[0]
    wim = next(label for label, plan in labelled if plan.policy is Policy.WIM)
    found = []
    for label, plan in labelled:
        for scheduler in schedulers:
            mine = _under(label, scheduler)
            base = _under(wim if scheduler == first else label, first)
            found.append(
                Entrant(
                    label=mine,
                    engine=engine,
                    plan=plan,
                    scheduler=scheduler,
                    streams=streams,
                    baseline=None if mine == base else base,
                )
            )
    return found


def _under(label: str, scheduler: Scheduler | None) -> str:
    """'ENGINE/wim/atoll'; without the suffix for an engine's own scheduler."""
    return f"{label}/atoll" if scheduler == "atoll" else label


def same_deployment(one: Plan, other: Plan, machine: Machine) -> bool:
    """Whether two plans differ only in name."""

    def sizes(plan: Plan) -> list[tuple[int, str]]:
        return sorted((slot.heap_bytes, slot.address or "") for slot in plan.slots)

    return same_place(one, other, machine) and sizes(one) == sizes(other)


def same_place(one: Plan, other: Plan, machine: Machine) -> bool:
    """Whether two plans have equal slots with equal CPUs and memory nodes, and equal malloc.

    A mask of all CPUs equals no mask.
    """
    everything = frozenset(machine.allowed.pus)

    def seats(plan: Plan) -> set[object]:
        return {
            (
                frozenset(slot.cpus) if slot.cpus is not None else everything,
                slot.memory_policy,
                slot.memory_nodes,
                slot.thread_cpus,
                slot.parallel_gc_threads,
                slot.concurrent_gc_threads,
            )
            for slot in plan.slots
        }

    return (
        one.engine == other.engine
        and len(one.slots) == len(other.slots)
        and seats(one) == seats(other)
        and one.coordinator == other.coordinator
        and (one.malloc, one.thp) == (other.malloc, other.thp)
    )


def _of_engine(
    machine: Machine, traits: EngineTraits, policies: Sequence[str] | None, choices: Choices
) -> tuple[list[tuple[str, Plan]], list[str]]:
    notes: list[str] = []

    def planner(policy: str) -> Callable[..., Plan]:
        own = Choices(**choices)
        if policy == Policy.WIM:
            own["memory"], own["placement"] = None, Placement.NONE
        return partial(make_plan, machine, traits, policy, **own)

    if policies is None:
        chosen: list[str] = []
        first: list[Plan] = []
        refused: UsageError | None = None
        for policy in DEFAULT:
            try:
                plan = planner(policy.value)()
            except UsageError as fault:
                if policy is Policy.WIM:
                    raise  # without a baseline there is nothing to compare with
                notes.append(f"{traits.name}/{policy.value} was left out: {fault}")
                refused = fault
                continue
            twin = next((one for one in first if same_deployment(one, plan, machine)), None)
            if twin is not None:
                notes.append(
                    f"{traits.name}/{policy.value} was left out: on this machine it is the same "
                    f"deployment as {traits.name}/{twin.policy.value}"
                )
                continue
            chosen.append(policy.value)
            first.append(plan)
        if refused is not None and choices and chosen == [Policy.WIM.value]:
            raise refused  # no policy can do what the user chose
    else:
        chosen = list(dict.fromkeys(policies))
        if Policy.WIM.value in chosen:
            chosen.remove(Policy.WIM.value)
        else:
            notes.append(f"{traits.name}/wim was added as the baseline of speed-ups")
        chosen.insert(0, Policy.WIM.value)
    plans = comparable([planner(policy) for policy in chosen])
    return [
        (f"{traits.name}/{name}", plan) for name, plan in zip(chosen, plans, strict=True)
    ], notes


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
