"""Who is measured: engines times policies, and plans from files. Pure.

Every engine is measured under WIM too, the baseline that speed-ups are over. Without a choice
of policies each one that differs on this machine is taken: those that coincide are measured
once, and that is said. Policies that were named are measured as named, coinciding or not.

Where an engine is measured under its own scheduler and under Atoll's, every plan is measured under
both, side by side, and Atoll's is judged by the same plan under the engine's own: the two then
differ in the scheduler alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from atoll.bench.decompose import chain_plans
from atoll.errors import UsageError
from atoll.plan import make_comparable_plans, make_plan
from atoll.schema.machine import Machine
from atoll.schema.plan import EngineTraits, Plan, Policy
from atoll.schema.results import Entrant, Scheduler

# From coarse to fine, and each only if it differs from those before it. The mixed and the
# control policy answer questions of their own and are measured when they are named.
DEFAULT = (Policy.WIM, Policy.WIN, Policy.WICP, Policy.WIC)


def line_up(
    machine: Machine,
    engines: Iterable[tuple[EngineTraits, Sequence[str] | None]],
    plans: Iterable[tuple[Plan, EngineTraits]],
    schedulers: Mapping[str, Sequence[Scheduler]] | None = None,
    streams: int | None = None,
) -> tuple[tuple[Entrant, ...], tuple[str, ...]]:
    """The entrants, each engine's baseline first, and notes on what was left out or added.

    `engines` come with the policies to measure them under, None for each that differs here;
    `plans` come from files, with their engine's traits; `schedulers` by engine, its own first, of
    those that have any but their own; `streams` is how many queries each deployment runs at a
    time, None what keeps all of it busy. Raises UsageError for what the machine cannot hold, where
    it was named, and for fewer streams than servers.
    """
    notes: list[str] = []
    by_engine: dict[str, list[tuple[str, Plan]]] = {}
    known: dict[str, EngineTraits] = {}
    for traits, policies in engines:
        if traits.name in by_engine:
            raise UsageError(f"engine {traits.name} is named twice; name it once")
        known[traits.name] = traits
        found, said = _of_engine(machine, traits, policies)
        by_engine[traits.name] = found
        notes += said
    for plan, traits in plans:
        known[plan.engine] = traits
        mine = by_engine.setdefault(plan.engine, [])
        if not mine and plan.policy is not Policy.WIM:
            # As much heap as the plan gives out, so that only placement differs.
            base = make_plan(machine, traits, "wim", heap_limit_bytes=plan.total_heap_bytes)
            mine.append((f"{plan.engine}/wim", base))
            notes.append(f"{plan.engine}/wim was added: speed-ups are over it")
        mine.append((_free_label(mine, plan), plan))
    entrants: list[Entrant] = []
    for engine, labelled in by_engine.items():
        streaming, said = _streams(known[engine], labelled, streams)
        notes += said
        under = (schedulers or {}).get(engine, (None,))
        if len(under) > 1:
            notes.append(
                f"{engine}: speed-ups under Atoll's scheduler are over the same policy under "
                "the engine's own"
            )
        named = _entrants(engine, labelled, under, streaming)
        entrants += named
        notes += _warnings(named)
    return tuple(entrants), tuple(notes)


def line_up_chains(
    machine: Machine,
    engines: Iterable[EngineTraits],
    schedulers: Mapping[str, Sequence[Scheduler]],
    count: int | None,
    streams: int | None = None,
) -> tuple[tuple[Entrant, ...], tuple[str, ...]]:
    """As `line_up`, for `--decompose`: of each engine the chain of `atoll.bench.decompose`.

    `schedulers` has one per engine at most.
    """
    entrants: list[Entrant] = []
    notes: list[str] = []
    for traits in engines:
        labelled, said = chain_plans(machine, traits, count)
        notes += said
        streaming, also = _streams(traits, labelled, streams)
        notes += also
        under = schedulers.get(traits.name, (None,))
        named = _entrants(traits.name, labelled, under, streaming)
        entrants += named
        notes += _warnings(named)
    return tuple(entrants), tuple(notes)


def _streams(
    traits: EngineTraits, labelled: Sequence[tuple[str, Plan]], asked: int | None
) -> tuple[int, list[str]]:
    """How many query streams each deployment gets, and a note where that is not one."""
    servers = 1 if traits.distributed else max(len(plan.slots) for _, plan in labelled)
    threads = 1 if traits.parallel_query else max(plan.total_threads for _, plan in labelled)
    if asked is not None and asked < servers:
        raise UsageError(
            f"--streams {asked}: {traits.name} has {servers} servers in one of the deployments, "
            f"and each wants a stream; give {servers} or more"
        )
    streams = asked or max(servers, threads)
    why = ["a query runs on one thread"] if threads > 1 else []
    why += ["it has several servers in one of them"] if servers > 1 else []
    copies = "; each server has a full copy of the data" if servers > 1 else ""
    notes = []
    if streams > 1:
        because = "as asked" if asked else f"because {' and '.join(why)}"
        notes.append(
            f"{traits.name}: {streams} concurrent query streams in every deployment, dealt "
            f"round-robin, {because}{copies}"
        )
    if streams < threads:
        # The coarser policies would lose by that.
        notes.append(
            f"{traits.name}: a query runs on one thread, so with {streams} of {threads} streams "
            "threads are idle, and which ones differs by policy"
        )
    return streams, notes


def _warnings(entrants: Sequence[Entrant]) -> list[str]:
    """What the plans warn of, each warning once, with the entrants that have it."""
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
    """Every plan under every scheduler, the plan's first entrant the baseline of its others."""
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
    """Whether two plans differ in name only: the same CPUs and memory for the same slots.

    A mask of all CPUs is no mask.
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
    )


def _of_engine(
    machine: Machine, traits: EngineTraits, policies: Sequence[str] | None
) -> tuple[list[tuple[str, Plan]], list[str]]:
    notes: list[str] = []
    if policies is None:
        chosen: list[str] = []
        first: list[Plan] = []
        for policy in DEFAULT:
            try:
                plan = make_plan(machine, traits, policy.value)
            except UsageError as fault:
                notes.append(f"{traits.name}/{policy.value} was left out: {fault}")
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
    else:
        chosen = list(dict.fromkeys(policies))
        if Policy.WIM.value in chosen:
            chosen.remove(Policy.WIM.value)
        else:
            notes.append(f"{traits.name}/wim was added: speed-ups are over it")
        chosen.insert(0, Policy.WIM.value)
    plans = make_comparable_plans(machine, traits, chosen)
    return [
        (f"{traits.name}/{name}", plan) for name, plan in zip(chosen, plans, strict=True)
    ], notes


def _free_label(taken: Sequence[tuple[str, Plan]], plan: Plan) -> str:
    """'ENGINE/wic', or 'ENGINE/wic-2' if that name is taken."""
    labels = {label for label, _ in taken}
    wanted = f"{plan.engine}/{plan.policy.value}"
    number = 1
    label = wanted
    while label in labels:
        number += 1
        label = f"{wanted}-{number}"
    return label
