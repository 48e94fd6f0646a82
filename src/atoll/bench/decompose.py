"""The steps from one instance to bound instances (`atoll decompose`). Pure.

WIN differs from WIM in several things at once. The chain adds one difference at a time. SPMWIN is
the control of numa-distributed-engines section IV-D: as many instances as WIN, each with cores of
every node. 'first-touch' is WIN with unbound memory.

    wim -> wim/gc-threads        one JVM with as many GC threads as the instances have in total
    wim/gc-threads -> spmwin     one process becomes several, each with its own heap and caches
    spmwin -> win/first-touch    each instance's CPUs are on one node (so a JVM loses UseNUMA)
    win/first-touch -> win/bind  each instance's memory is bound to that node

The first step exists only for a JVM that has another number of parallel GC threads than the
instances in total (above 8 CPUs). Total heap, task threads, shuffle partitions and query streams
are equal in all entrants.
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
# Entrant -> what the step to it changes.
CHANGES = {
    _GC_THREADS: "GC threads",
    "spmwin": "instances and their heaps",
    _TOUCH: "CPU locality",
    _BIND: "memory locality",
}


def chain_plans(
    machine: Machine, traits: EngineTraits, count: int | None
) -> tuple[list[tuple[str, Plan]], list[str]]:
    """The chain of labels and plans, and notes. `count`: instances; None: one per NUMA node.

    Raises UsageError if WIN is one instance, or if the machine is too small.
    """
    nodes = {core.node for core in machine.cores if set(core.pus) & set(machine.allowed.pus)}
    if (count or len(nodes)) < 2:
        raise UsageError(
            f"{traits.name}: win is one instance "
            + ("with -n 1" if count else "on this machine with one NUMA node")
            + ", so there are no steps between wim and win; choose -n 2 or more"
        )
    # wim counts all CPUs, so the instances have all of them too.
    plan = partial(make_plan, machine, traits, smt=machine.smt)
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
            f"{traits.name}: one JVM has {one} GC threads here and {len(spmwin.slots)} JVMs have "
            f"{several} in total, so GC threads are a separate step"
        )
    chain |= {"spmwin": spmwin, _TOUCH: touched, _BIND: bound}
    if len(nodes) == 1:
        notes.append(
            f"{traits.name}: the machine has one NUMA node, so the step of CPU locality only puts "
            "the cores of a chiplet together, and the step of memory locality changes nothing"
        )
    elif any(len(slot.nodes) > 1 for slot in bound.slots):
        notes.append(
            f"{traits.name}: with -n {count} an instance of win has cores of several nodes, so its "
            "memory is bound to these nodes"
        )
    return [(f"{traits.name}/{name}", one) for name, one in chain.items()], notes


def _with_gc_threads_of(wim: Plan, instances: Plan) -> Plan:
    """`wim`, with as many GC threads in its one JVM as `instances` have in total."""
    parallel, concurrent = gc_threads(instances.slots)
    (slot,) = wim.slots
    own = slot.model_copy(
        update={"parallel_gc_threads": parallel, "concurrent_gc_threads": concurrent}
    )
    return wim.model_copy(update={"slots": (own,)})


def decomposition(
    engine: str, labels: Sequence[str], means: Mapping[str, Mapping[int, float]]
) -> Decomposition | None:
    """The contribution of each step of the chain; None if no block has all of its entrants.

    `means`: label -> block -> geometric mean over the queries, in seconds.
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
