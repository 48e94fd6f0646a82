"""Situations for the tests of advice: a case for every rule, and what following advice makes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from atoll.advice.process_rules import NEVER
from atoll.advice.situation import Situation, Subject
from atoll.schema.advice import Line, Preload, PreloadEffect, Reach, SubjectKind, Workload
from atoll.schema.machine import Machine
from atoll.schema.plan import Placement
from tests.parts.machines import NodeShape, build, milan, plain

ONE = plain(cores=4)
TWO = plain(cores=4, nodes=2)
MILAN = milan(packages=2, chiplets=2, cores=2)
NPS2 = milan(packages=2, chiplets=4, cores=2, nodes_per_package=2)
L3_AS_NUMA = milan(packages=2, chiplets=2, cores=2, nodes_per_package=2)
# A package with memory of its own, and CXL memory without CPUs.
TIERS = build([[NodeShape((), 4, 16), NodeShape((), 0, 64)], [NodeShape((), 4, 16)]])
# A package, and CXL memory.
CXL = build([[NodeShape((), 4, 16), NodeShape((), 0, 64)]])
# Two packages, one of them without memory.
BARE = build([[NodeShape((), 4, 16)], [NodeShape((), 4, 0)], [NodeShape((), 4, 16)]])

KNOBS = {
    "numa-balancing": "1",
    "thp-enabled": "always",
    "thp-defrag": "always",
    "zone-reclaim": "1",
    "governor": "schedutil",
    "weighted-interleave": "0=3,1-2=1 (auto)",
}
EFFECTIVE = Preload(effect=PreloadEffect.EFFECTIVE, why="it calls malloc")
PARTIAL = Preload(effect=PreloadEffect.PARTIAL, why="a library has its own")
NO_EFFECT = Preload(effect=PreloadEffect.NONE, why="it is static")

L, B, A = Workload.LATENCY, Workload.BANDWIDTH, Workload.ALLOCATION


def subject(machine: Machine, **changes: object) -> Subject:
    """On all CPUs of the machine."""
    whole = Subject(cpus=frozenset(machine.pus), preload=EFFECTIVE)
    return replace(whole, **changes)  # type: ignore[arg-type]  # the fields of a test, by name


def on_node(machine: Machine, node: int, **changes: object) -> Subject:
    return subject(machine, cpus=frozenset(machine.node_by_os_index[node].pus), **changes)


def situation(machine: Machine, sub: Subject | None = None, **changes: object) -> Situation:
    whole = Situation(
        machine=machine,
        subject=sub or subject(machine),
        knobs=KNOBS,
        root=True,
        mallocs=("jemalloc", "tbbmalloc"),
    )
    return replace(whole, **changes)  # type: ignore[arg-type]  # the fields of a test, by name


def without(*names: str) -> dict[str, str]:
    return {name: value for name, value in KNOBS.items() if name not in names}


_ONE_CPU = frozenset({0})
# Rule -> a situation in which it decides.
CASES: dict[str, Situation] = {
    "one-core": situation(TWO, subject(TWO, cpus=_ONE_CPU)),
    "one-place": situation(ONE),
    "dense": situation(MILAN, workload=L),
    "sparse": situation(MILAN),
    "bound-already": situation(MILAN, subject(MILAN, is_bound=True)),
    "one-node": situation(ONE),
    "far-memory": situation(BARE, on_node(BARE, 1)),
    "own-node-first": situation(CXL),
    "bind-confined": situation(TWO, on_node(TWO, 1)),
    "touch-latency": situation(TWO, workload=L),
    "weighted": situation(TIERS, workload=B),
    "interleave-spanning": situation(TWO),
    "no-effect": situation(TWO, subject(TWO, preload=NO_EFFECT), workload=A),
    "partial-effect": situation(TWO, subject(TWO, preload=PARTIAL), workload=A),
    "one-thread": situation(TWO, subject(TWO, cpus=_ONE_CPU), workload=A),
    "allocates-little": situation(TWO, workload=B),
    "unknown-allocation": situation(TWO),
    "measured-malloc": situation(TWO, workload=A, churn_ns={"system": 90.0, "jemalloc": 20.0}),
    "has-malloc": situation(TWO, subject(TWO, malloc="mimalloc"), workload=A),
    "papers-malloc": situation(TWO, workload=A),
    "thp-off": situation(TWO, subject(TWO, may_have_thp=False)),
    "thp-asked": situation(TWO, knobs=KNOBS | {"thp-enabled": "madvise"}),
    "thp-lookups": situation(TWO, workload=L),
    "thp-malloc": situation(TWO, workload=A),
    "thp-unknown": situation(TWO),
    "smt-off": situation(TWO),
    "smt-engine": situation(
        plain(smt=2), subject(plain(smt=2), kind=SubjectKind.ENGINE, name="reef")
    ),
    "smt-unknown": situation(plain(smt=2)),
    "no-numa-balancing": situation(TWO, knobs=without("numa-balancing")),
    "balancing-one-node": situation(ONE),
    "balancing-tiers": situation(TIERS),
    "balancing-policy": situation(TWO),
    "balancing-latency": situation(TWO, workload=L),
    "balancing-off": situation(TWO, policy_fault="EPERM"),
    "no-thp-enabled": situation(TWO, knobs=without("thp-enabled")),
    "thp-process": situation(TWO),
    "no-thp-defrag": situation(TWO, knobs=without("thp-defrag")),
    "defrag-unused": situation(TWO, subject(TWO, may_have_thp=False)),
    "defrag-stalls": situation(TWO, workload=L),
    "defrag-leave": situation(TWO),
    "no-zone-reclaim": situation(TWO, knobs=without("zone-reclaim")),
    "reclaim-one-node": situation(ONE),
    "reclaim-bound": situation(TWO, on_node(TWO, 0)),
    "reclaim-off": situation(TWO),
    "no-governor": situation(TWO, knobs=without("governor")),
    "governor-lowest": situation(
        TWO, knobs=KNOBS | {"governor": "powersave"}, frequency_driver="acpi-cpufreq"
    ),
    "governor-latency": situation(TWO, workload=L),
    "governor-leave": situation(TWO),
    "sub-numa-virtual": situation(NPS2, virtual=True),
    "sub-numa-used": situation(NPS2, on_node(NPS2, 0)),
    "sub-numa-covered": situation(NPS2),
    "sub-numa-merge": situation(NPS2, policy_fault="EPERM"),
    "sub-numa-split": situation(MILAN, on_node(MILAN, 0, instances=2), workload=B),
    "sub-numa-leave": situation(TWO),
}


def followed(before: Situation, lines: Iterable[Line]) -> Situation:
    """The situation after each line of this program and of the system was followed."""
    sub, knobs = before.subject, dict(before.knobs)
    for line in lines:
        if line.leaves or (line.obstacle and line.supported.value == "no"):
            continue
        if line.reach is Reach.SYSTEM:
            knobs[line.tuner] = line.advised
        elif line.tuner == "threads":
            sub = replace(sub, threads=Placement(line.advised))
        elif line.tuner == "memory":
            sub = replace(sub, policy=line.advised)
        elif line.tuner == "malloc":
            sub = replace(sub, malloc=line.advised)
        elif line.tuner == "thp":
            assert line.advised == NEVER
            sub = replace(sub, may_have_thp=False)
    return replace(before, subject=sub, knobs=knobs)
