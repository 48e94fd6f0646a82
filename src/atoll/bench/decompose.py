"""From the whole machine to bound instances, step by step (`atoll bench --decompose`). Pure.

WIN against WIM changes several things at once. Between them lie SPMWIN, the control of
numa-distributed-engines section IV-D (as many instances as WIN, each with cores of every node), and
WIN whose memory is left to first touch:

    wim -> wim/gc-threads        one JVM with as many collector threads as the instances have in sum
    wim/gc-threads -> spmwin     one process becomes several: heaps and caches of their own
    spmwin -> win/first-touch    each instance's CPUs lie on one node (so UseNUMA goes, in a JVM)
    win/first-touch -> win/bind  its memory is bound to that node

Without a JVM, and where one JVM has that many parallel collector threads anyhow (up to 8 CPUs),
there is no first step, and the next begins at wim. (There several may have more concurrent ones,
each at least one.) Total heap, task threads, shuffle partitions and query streams are the same in
all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from atoll.bench.estimates import GEOMEAN, interval_of, speedup_of
from atoll.errors import UsageError
from atoll.plan import comparable, make_plan
from atoll.plan.jvm import gc_threads
from atoll.schema.machine import Machine
from atoll.schema.plan import EngineTraits, MemoryPolicy, Plan
from atoll.schema.summary import Decomposition, Step
from atoll.stats import shares

_GC_THREADS = "wim/gc-threads"
_TOUCH = f"win/{MemoryPolicy.FIRST_TOUCH.value}"
_BIND = f"win/{MemoryPolicy.BIND.value}"
# What the step to each changes.
CHANGES = {
    _GC_THREADS: "GC threads",
    "spmwin": "instances and their heaps",
    _TOUCH: "CPU locality",
    _BIND: "memory locality",
}


def chain_plans(
    machine: Machine, traits: EngineTraits, count: int | None
) -> tuple[list[tuple[str, Plan]], list[str]]:
    """The chain, labelled, and notes; `count` instances, None: one per NUMA node.

    Raises UsageError where there is nothing to decompose, or the machine cannot hold it.
    """
    nodes = {core.node for core in machine.cores if set(core.pus) & set(machine.allowed.pus)}
    if (count or len(nodes)) < 2:
        raise UsageError(
            f"--decompose: {traits.name}/win is one instance here, "
            + ("as -n 1 asks" if count else "since the machine has one NUMA node")
            + ", so nothing lies between it and wim; divide the machine with -n 2 or more"
        )
    plan = partial(make_plan, machine, traits)
    touch, bind = MemoryPolicy.FIRST_TOUCH, MemoryPolicy.BIND
    wim, spmwin, touched, bound = comparable(
        [
            partial(plan, "wim", memory=touch),
            partial(plan, "spmwin", count=count, memory=touch),
            partial(plan, "win", count=count, memory=touch),
            partial(plan, "win", count=count, memory=bind),
        ]
    )
    chain = {"wim": wim}
    notes = []
    one, several = gc_threads(wim.slots).parallel, gc_threads(spmwin.slots).parallel
    if traits.jvm and one != several:
        chain[_GC_THREADS] = _with_gc_threads_of(wim, spmwin)
        notes.append(
            f"{traits.name}: one JVM has {one} GC threads here, {len(spmwin.slots)} have {several} "
            "in sum, so that is a step of its own"
        )
    chain |= {"spmwin": spmwin, _TOUCH: touched, _BIND: bound}
    if len(nodes) == 1:
        notes.append(
            f"{traits.name}: the machine has one NUMA node, so the step to CPU locality can only "
            "bring the cores of a chiplet together, and the step to memory locality changes nothing"
        )
    elif any(len(slot.nodes) > 1 for slot in bound.slots):
        notes.append(
            f"{traits.name}: with -n {count} an instance of win has cores of several nodes, so "
            "its memory is bound to those"
        )
    return [(f"{traits.name}/{name}", one) for name, one in chain.items()], notes


def _with_gc_threads_of(wim: Plan, instances: Plan) -> Plan:
    """`wim`, its one JVM with the collector threads that those of `instances` have in sum."""
    parallel, concurrent = gc_threads(instances.slots)
    (slot,) = wim.slots
    own = slot.model_copy(
        update={"parallel_gc_threads": parallel, "concurrent_gc_threads": concurrent}
    )
    return wim.model_copy(update={"slots": (own,)})


def decomposition(
    engine: str, labels: Sequence[str], means: Mapping[str, Mapping[int, float]]
) -> Decomposition | None:
    """What each step of the chain `labels` contributes; None if no block was finished by all.

    `means` has, per label and block, the geometric mean over the queries, in seconds.
    """
    found = shares.decompose([means[label] for label in labels])
    if found is None:
        return None
    steps = []
    for place, estimate in enumerate(found.steps):
        share = found.shares[place] if found.shares else None
        steps.append(
            Step(
                before=labels[place],
                after=labels[place + 1],
                changes=_changes(engine, labels[place + 1]),
                speedup=speedup_of(GEOMEAN, estimate),
                share=share.value if share else None,
                share_interval=interval_of(share.interval) if share else None,
            )
        )
    return Decomposition(
        engine=engine,
        whole=speedup_of(GEOMEAN, found.whole),
        steps=tuple(steps),
        why_no_shares=found.why,
    )


def _changes(engine: str, label: str) -> str:
    """`label` may end with a scheduler: 'ENGINE/win/bind/atoll'."""
    name = label.removeprefix(f"{engine}/").removesuffix("/atoll")
    return CHANGES.get(name, "")
