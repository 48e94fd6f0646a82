"""Decides what is measured in which mode and order, and divides the time. Pure.

`--quick` has 30 s and `--full` 5 minutes of wall time, even on a busy machine. So the time is not
the sum of the parts; it is handed out. When a kind begins, it gets the part of the remaining time
that its weight gives it. A kind that needs less leaves more to the later ones, one that overran
leaves less, and the total stays within the limit. The rest of the 30 s (300 s) is for starting, for
a request that cannot be stopped at once, and for the inference at the end.

The number of pairs grows with the square of the PUs. Full mode measures all pairs and takes longer
on a large machine: 1 ms per pair and home where 3 ms do not fit. Quick mode keeps its 30 s: first
the pairs get less time; then only one PU of each core is measured, with the siblings of one core
per package; then only every n-th core, spread evenly over the machine.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from atoll.schema.machine import Machine
from atoll.schema.profile import Kind, Mode

TOTAL_S = {Mode.QUICK: 24.0, Mode.FULL: 280.0}
# After its time, a request has this long to end before its probe is killed.
GRACE_S = {Mode.QUICK: 1.5, Mode.FULL: 5.0}
# The parts of the time, in seconds if all kinds are measured in quick mode.
WEIGHTS = {
    Kind.LATENCY: 4.0,
    Kind.BANDWIDTH: 2.0,
    Kind.NODES: 3.0,
    Kind.CACHE: 4.5,
    Kind.STREAM: 5.0,
    Kind.SHARING: 2.5,
    Kind.CHURN: 3.0,
}
# Figures per ordered pair of PUs: compare-and-swap and store; producer to consumer.
FIGURES_PER_PAIR = {Kind.LATENCY: 2, Kind.BANDWIDTH: 1}
PAIR_MOST_S = 0.003
MOST_RETRIES = 5  # for pairs that did not settle
_PAIR_LEAST_S = {Mode.QUICK: 0.0005, Mode.FULL: 0.001}
# The cost of a request besides its sampling: waking threads, a line each way.
_REQUEST_S = 0.0005
# Starting, reading the machine, and the inference.
_AROUND_S = 1.5


@dataclass(frozen=True, slots=True)
class PairPlan:
    """Which PUs are paired, and how long each pair is sampled with one home."""

    pus: tuple[int, ...]
    each_s: float

    def seconds(self, kind: Kind) -> float:
        """The time of a kind without repeated measurements."""
        figures = len(self.pus) * (len(self.pus) - 1) * FIGURES_PER_PAIR[kind]
        return figures * (self.each_s + _REQUEST_S)


@dataclass(frozen=True, slots=True)
class Budget:
    mode: Mode
    kinds: tuple[Kind, ...]  # in the order in which they are measured
    total_s: float
    grace_s: float
    # Time that a kind gets beyond its weight: for the pairs of a large machine in full mode.
    extra_s: dict[Kind, float] = field(default_factory=dict)
    pairs: dict[Kind, PairPlan] = field(default_factory=dict)

    def share_s(self, kind: Kind, *, elapsed_s: float) -> float:
        """The time limit of a kind that begins now, after the kinds before it have ended."""
        rest = self.kinds[self.kinds.index(kind) :]
        weight = WEIGHTS[kind] / sum(WEIGHTS[later] for later in rest)
        common_s = self.total_s - elapsed_s - sum(self.extra_s.get(later, 0.0) for later in rest)
        return self.extra_s.get(kind, 0.0) + max(0.0, common_s * weight)

    @property
    def estimate_s(self) -> float:
        """The longest that the run takes if no probe has to be killed."""
        if set(self.kinds) <= set(FIGURES_PER_PAIR):
            once_s = sum(plan.seconds(kind) for kind, plan in self.pairs.items())
            return min(self.total_s, (1 + MOST_RETRIES) * once_s) + _AROUND_S
        return self.total_s + _AROUND_S


def budget(mode: Mode, kinds: Sequence[Kind], machine: Machine, cpus: Sequence[int]) -> Budget:
    """The budget of a run. `cpus` are the CPUs that may be measured."""
    ordered = tuple(kind for kind in Kind if kind in kinds)
    total_s, grace_s = TOTAL_S[mode], GRACE_S[mode]
    paired = [kind for kind in FIGURES_PER_PAIR if kind in ordered]
    if not paired or len(cpus) < 2:
        return Budget(mode, ordered, total_s, grace_s)
    weights = sum(WEIGHTS[kind] for kind in ordered)
    shares_s = {kind: total_s * WEIGHTS[kind] / weights for kind in paired}
    # Both matrices use the same pairs, so that both can support one grouping.
    figures = sum(FIGURES_PER_PAIR[kind] for kind in paired)
    plan = _pair_plan(mode, machine, cpus, sum(shares_s.values()) / figures)
    extra_s = (
        {kind: max(0.0, plan.seconds(kind) - shares_s[kind]) for kind in paired}
        if mode is Mode.FULL
        else {}
    )
    return Budget(
        mode,
        ordered,
        total_s + sum(extra_s.values()),
        grace_s,
        extra_s,
        dict.fromkeys(paired, plan),
    )


def _pair_plan(mode: Mode, machine: Machine, cpus: Sequence[int], figure_s: float) -> PairPlan:
    """The pairs that fit. `figure_s`: the time for one figure of all pairs."""

    def each_s(pus: Sequence[int]) -> float:
        return min(PAIR_MOST_S, figure_s / (len(pus) * (len(pus) - 1)) - _REQUEST_S)

    least_s = _PAIR_LEAST_S[mode]
    if mode is Mode.FULL:
        return PairPlan(tuple(cpus), max(least_s, each_s(cpus)))
    fewer = next(pus for pus in _ever_fewer(machine, cpus) if each_s(pus) >= least_s)
    return PairPlan(tuple(fewer), each_s(fewer))


def _ever_fewer(machine: Machine, cpus: Sequence[int]) -> Iterator[list[int]]:
    yield list(cpus)
    wanted = set(cpus)
    cores = [core for core in machine.cores if wanted.intersection(core.pus)]
    firsts = [min(wanted.intersection(core.pus)) for core in cores]
    siblings: dict[int | None, set[int]] = {}
    for core in cores:
        siblings.setdefault(core.package, wanted.intersection(core.pus))
    told_apart = set().union(*siblings.values()) if siblings else set()
    step = 1.0
    while firsts and len(firsts) / step >= 2:
        chosen = [firsts[int(index * step)] for index in range(math.floor(len(firsts) / step))]
        yield sorted(told_apart.union(chosen))
        step *= 1.1
    yield list(cpus[:2])


def rounds(pus: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Every pair once, in rounds in which each PU occurs at most once (the circle method of
    tournaments). If time runs out, all PUs have been paired about equally often, and a drift over
    time does not look like a property of a place."""
    ring: list[int | None] = list(pus)
    if len(ring) % 2:
        ring.append(None)
    half = len(ring) // 2
    for _ in range(len(ring) - 1):
        for a, b in zip(ring[:half], reversed(ring[half:]), strict=True):
            if a is not None and b is not None:
                yield min(a, b), max(a, b)
        ring = [ring[0], ring[-1], *ring[1:-1]]
