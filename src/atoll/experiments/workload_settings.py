"""The settings of an experiment with workloads: axes, what this machine can, and flags. Pure.

threads    numbers, or `all`: one for each CPU
dataset    of `atoll workload run`
placement  none, sparse, dense
memory     first-touch, interleave, local, preferred
index      of w4: art, masstree, btree, skiplist
malloc     system, jemalloc, tcmalloc, mimalloc, tbbmalloc
knob:NAME  a switch of the whole system; turned through the journal, and restored
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import product

from atoll.bench.axes import KNOB
from atoll.errors import UsageError
from atoll.experiments.here import Can, counts, not_here
from atoll.plan.cores import usable_places
from atoll.plan.threads import thread_order
from atoll.probing.workload import MEMORY, launch_flags, thread_places
from atoll.schema.experiment import WorkloadRun, WorkloadScale
from atoll.schema.machine import Machine
from atoll.schema.plan import Malloc, Placement
from atoll.schema.workload import WorkloadName

DATASETS = ("moving-cluster", "sequential", "runs", "zipf", "heavy-hitter")
INDEXES = ("art", "masstree", "btree", "skiplist")
ALL = "all"
PAPER_ROWS = {"w1": 100_000_000, "w2": 100_000_000, "w3": 256_000_000, "w4": 256_000_000}  # IV-B

Setting = Mapping[str, str]  # axis -> value


@dataclass(frozen=True, slots=True)
class Settings:
    all: tuple[Setting, ...]  # the baseline first
    cannot: tuple[str, ...]  # what is not varied, and why


def make_settings(run: WorkloadRun, machine: Machine, can: Can) -> Settings:
    """Without the values that this machine cannot have; an axis without values is left out.

    Raises UsageError for an axis or a value that does not exist.
    """
    have = counts(machine)
    axes: dict[str, list[str]] = {}
    cannot: list[str] = []
    for name, words in run.axes.items():
        for value in have.numbers(words) if name == "threads" else words:
            _check(name, value)
            if why := _refused(name, value, machine, can):
                cannot.append(f"{name}={value}: {why}")
            else:
                axes.setdefault(name, []).append(value)
    if run.product:
        made = [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
    else:
        base = {name: values[0] for name, values in axes.items()}
        others = [(name, value) for name, values in axes.items() for value in values[1:]]
        made = [base, *({**base, name: value} for name, value in others)]
    return Settings(tuple(made), tuple(cannot))


def runs_of(run: WorkloadRun, scale: WorkloadScale, settings: Settings) -> int:
    return scale.blocks * len(run.workloads) * len(settings.all)


def records(workload: WorkloadName, part: float) -> int:
    return max(1, round(part * PAPER_ROWS[workload]))


def flags(
    run: WorkloadRun,
    workload: WorkloadName,
    setting: Setting,
    *,
    part: float,
    check: bool,
    machine: Machine,
) -> tuple[list[str], tuple[str, ...]]:
    """Of atoll-workload, and of the atoll-exec that starts it."""
    threads = None if setting.get("threads", ALL) == ALL else int(setting["threads"])
    places, _ = thread_places(
        machine, setting.get("placement", Placement.NONE), threads=threads, scheduler="plain"
    )
    own = [workload, "--runs", "1", "--records", str(records(workload, part))]
    own += ["--threads", str(threads)] if threads else []
    for name in ("dataset", "index"):
        own += [f"--{name}", setting[name]] if name in setting else []
    own += ["--keep"] if run.keep and workload == "w3" else []
    own += [] if check else ["--no-check"]
    launch = launch_flags(
        cpus=None,
        memory=setting.get("memory", "first-touch"),
        malloc=setting.get("malloc"),
        no_thp=False,
    )
    return [*own, *places], launch


def knobs(setting: Setting) -> dict[str, str]:
    """Knob -> value."""
    return {
        name.removeprefix(KNOB): value for name, value in setting.items() if name.startswith(KNOB)
    }


def _check(name: str, value: str) -> None:
    known: Mapping[str, Collection[str]] = {
        "dataset": DATASETS,
        "index": INDEXES,
        "placement": tuple(Placement),
        "memory": MEMORY,
        "malloc": tuple(Malloc),
    }
    number = value == ALL or (value.isdecimal() and int(value) > 0)
    right = number if name == "threads" else name.startswith(KNOB) or value in known.get(name, ())
    if not right:
        raise UsageError(f"{name}={value}: no such axis or value of a workload")


def _refused(name: str, value: str, machine: Machine, can: Can) -> str:
    """Why this machine cannot have the value, or why it means nothing; empty if neither."""
    if why := not_here(name, value, machine, can):
        return why
    if name == "memory" and value != "first-touch" and len(machine.nodes) < 2:
        return "it means nothing with one memory node"
    if name == "placement" and value == Placement.DENSE:
        places = usable_places(machine, smt=True)
        if thread_order(places, Placement.DENSE) == thread_order(places, Placement.SPARSE):
            return "it is the same as sparse"
    return ""
