"""What a machine can repeat of an experiment, and what it cannot vary. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

from atoll.bench.axes import KNOB, Axis, Grid, chosen, in_bench_words, is_run_axis, make_axis
from atoll.bench.cells import policy_of
from atoll.bench.entrants import make_entrants
from atoll.errors import UsageError
from atoll.experiments.network import entrants_over
from atoll.plan.planner import make_plan
from atoll.schema.experiment import (
    BenchRun,
    Experiment,
    Needs,
    Network,
    OperatorScale,
    Scale,
    Size,
    TransactionScale,
    WorkloadScale,
)
from atoll.schema.kernel import Kernels
from atoll.schema.machine import Chiplet, Machine
from atoll.schema.plan import EngineTraits, Malloc
from atoll.schema.results import Entrant
from atoll.schema.size import gib
from atoll.schema.text import plural

_GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Counts:
    """The numbers of a machine that the words of terms and axes stand for."""

    nodes: int
    chiplets: int  # 1: none are known
    cores: int

    def number(self, word: str) -> str:
        """The number that a word stands for; another word stays."""
        known = {"nodes": self.nodes, "chiplets": self.chiplets, "cores": self.cores}
        return str(known.get(word, word))

    def numbers(self, words: Sequence[str]) -> list[str]:
        """`doubling`: 1, 2, 4 and so on, and the cores. Numbers come in their order."""
        found: list[str] = []
        for word in words:
            if word == "doubling":
                found += [str(1 << power) for power in range(self.cores.bit_length())]
                found.append(str(self.cores))
            else:
                found.append(self.number(word))
        once = list(dict.fromkeys(found))
        return sorted(once, key=int) if all(one.isdecimal() for one in once) else once


@dataclass(frozen=True, slots=True)
class Can:
    """What a machine can have beside its topology."""

    mallocs: Collection[str] = tuple(Malloc)  # that can be preloaded
    knobs_fault: str = ""  # why no knob can be turned; empty if they can
    kernels: Kernels | None = None  # None: atoll-kernels is not installed
    network_fault: str = ""  # why there can be no virtual machines; empty if there can be


@dataclass(frozen=True, slots=True)
class Possible:
    """The part of a bench that this machine can run."""

    grid: Grid
    cannot: tuple[str, ...]  # what is not varied, and why
    same: tuple[str, ...]  # which deployments coincide, of the first engine
    entrants: tuple[Entrant, ...]  # the deployments of a block


def counts(machine: Machine) -> Counts:
    """The counts of what this process may use."""
    allowed = frozenset(machine.allowed.pus)
    nodes = sum(not allowed.isdisjoint(node.pus) for node in machine.nodes)
    return Counts(max(1, nodes), max(1, len(_chiplets(machine))), len(machine.allowed_cores))


def unmet(needs: Needs, machine: Machine) -> list[str]:
    """Why the figure means nothing on this machine; empty if it means something."""
    have = counts(machine)
    most = max(Counter(one.node for one in _chiplets(machine)).values(), default=1)
    none = "" if machine.chiplets else "none are known here ('atoll measure' finds hidden ones)"
    threads = max((len(core.pus) for core in machine.allowed_cores), default=1)
    wants = (
        (needs.nodes, have.nodes, "NUMA node", "", f"this machine has {have.nodes}"),
        (needs.chiplets, have.chiplets, "chiplet", "", none or f"this machine has {have.chiplets}"),
        (
            needs.chiplets_per_node,
            most,
            "chiplet",
            " a NUMA node",
            none or f"a node has {most} here",
        ),
        (needs.cores, have.cores, "core", "", f"this machine has {have.cores}"),
        (needs.threads_per_core, threads, "thread", " a core", f"a core has {threads} here"),
    )
    return [
        f"it needs {plural(want, what)}{each}, and {why}"
        for want, has, what, each, why in wants
        if has < want
    ]


def too_large(
    scale: Scale | WorkloadScale | TransactionScale | OperatorScale, machine: Machine
) -> str:
    """Why the machine cannot hold this scale; empty if it can."""
    if machine.memory_bytes >= scale.memory_gib * _GIB:
        return ""
    return f"it needs {scale.memory_gib:g} GiB of memory, and this machine has " + gib(
        machine.memory_bytes
    )


S = TypeVar("S", Scale, WorkloadScale, TransactionScale, OperatorScale)


def choose_scale(
    experiment: Experiment, scales: Mapping[Size, S], size: str, machine: Machine
) -> S:
    """Raises UsageError for a name that no scale has, and for one that is too large."""
    scale = {str(name): one for name, one in scales.items()}.get(size)
    if scale is None:
        raise UsageError(f"{experiment.name} has no scale {size!r}; it has {', '.join(scales)}")
    if why := too_large(scale, machine):
        raise UsageError(f"{experiment.name}, scale {size}: {why}; choose a smaller --scale")
    return scale


def not_here(axis: str, value: str, machine: Machine, can: Can) -> str:
    """Why a knob or a malloc cannot be had or means nothing here; empty for all else."""
    if axis == f"{KNOB}numa-balancing" and len(machine.nodes) < 2:
        return "it means nothing with one memory node"
    if axis.startswith(KNOB):
        return can.knobs_fault
    if axis == "malloc" and value != Malloc.SYSTEM and value not in can.mallocs:
        return f"it cannot be loaded; 'atoll-exec --malloc {value} true' names its package"
    return ""


def possible(
    run: BenchRun, machine: Machine, engines: Sequence[EngineTraits], can: Can | None = None
) -> Possible:
    """The grid without the values that the planner refuses for one of the engines, and without
    knobs and mallocs that cannot be had. Raises UsageError if there can be no network."""
    can = can or Can()
    if run.network is not None:
        return _over(run.network, machine, engines, can)
    have = counts(machine)
    policies = have.numbers(run.axes.get("policy", ()))
    axes: list[Axis] = []
    cannot: list[str] = []
    for name, words in run.axes.items():
        kept: list[str] = []
        for value in have.numbers(words):
            why = not_here(name, value, machine, can)
            why = why or _refused(name, value, policies, machine, engines)
            if why:
                cannot.append(f"{name}={value}: {why}")
            else:
                kept.append(value)
        if kept:
            axes.append(make_axis(name, kept, option=f"--axis {name}"))
    grid = Grid(tuple(axes), run.product)
    knobs = {axis.name.removeprefix(KNOB): "" for axis in axes if axis.name.startswith(KNOB)}
    entrants, _ = make_entrants(machine, engines, (), grid, knobs=knobs)
    same = [_same(one) for one in entrants if one.engine == engines[0].name and one.cells[1:]]
    return Possible(grid, tuple(cannot), tuple(same), entrants)


def _over(
    network: Network, machine: Machine, engines: Sequence[EngineTraits], can: Can
) -> Possible:
    if can.network_fault:
        raise UsageError(can.network_fault)
    values = {"machines": tuple(map(str, network.machines)), "nic": network.nics}
    grid = Grid(tuple(Axis(name, each) for name, each in values.items()))
    entrants = [entrants_over(network, machine, traits) for traits in engines]
    return Possible(grid, (), (), tuple(chain.from_iterable(entrants)))


def require_meaning(experiment: Experiment, machine: Machine) -> None:
    """Raises UsageError if the figure means nothing on this machine."""
    if missing := unmet(experiment.needs, machine):
        name = experiment.name
        raise UsageError(
            f"{name} means nothing on this machine: {'; '.join(missing)}; run it where that is, "
            f"and 'atoll experiment report {name} FILE' here; 'atoll experiment show {name}' has "
            "the paper's numbers"
        )


def _refused(
    name: str,
    value: str,
    policies: Sequence[str],
    machine: Machine,
    engines: Sequence[EngineTraits],
) -> str:
    """The planner's reason if an engine can have the value in no deployment."""
    if is_run_axis(name):
        return ""
    tries: list[Mapping[str, str]] = [{name: value}]
    if name != "policy":
        tries += [{name: value, "policy": policy} for policy in policies]
    for engine in engines:
        why = ""
        for values in tries:
            try:
                make_plan(machine, engine, policy_of(values), **chosen(values))
            except UsageError as fault:
                why = why or f"{engine.name}: {in_bench_words(str(fault))}"
            else:
                break
        else:
            return why
    return ""


def _same(entrant: Entrant) -> str:
    own, *others = (cell.label.partition("/")[2] for cell in entrant.cells)
    return f"{', '.join(others)}: the same as {own}"


def _chiplets(machine: Machine) -> list[Chiplet]:
    """Those that this process may use."""
    allowed = frozenset(machine.allowed.pus)
    return [one for one in machine.chiplets if not allowed.isdisjoint(one.pus)]
