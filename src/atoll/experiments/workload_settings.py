"""The settings of an experiment with workloads: axes, what this machine can, and flags. Pure.

threads    numbers, or `all`: one for each CPU
dataset    of `atoll workload run`
placement  none, sparse, dense
memory     first-touch, interleave, local, preferred
index      of w4: art, masstree, btree, skiplist
malloc     system, jemalloc, tcmalloc, mimalloc, tbbmalloc
knob:NAME  a switch of the whole system; turned through the journal, and restored

Of kernels all axes but memory, malloc and knob:NAME are flags of atoll-kernels, or words that the
experiment explains as such flags.
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
from atoll.schema.text import plural

DATASETS = ("moving-cluster", "sequential", "runs", "zipf", "heavy-hitter")
INDEXES = ("art", "masstree", "btree", "skiplist")
ALL = "all"
_NUMBERS = ("threads", "workers")
_LAUNCHED = ("memory", "malloc")  # of atoll-exec
PAPER_ROWS: Mapping[str, int] = {  # of W1 to W4
    "w1": 100_000_000,
    "w2": 100_000_000,
    "w3": 256_000_000,
    "w4": 256_000_000,
}  # IV-B

Setting = Mapping[str, str]  # axis -> value


@dataclass(frozen=True, slots=True)
class Settings:
    all: tuple[Setting, ...]  # the baseline first
    cannot: tuple[str, ...]  # what is not varied, and why
    pairs: tuple[tuple[str, Setting], ...]  # the runs of a block: workload, setting

    @property
    def workloads(self) -> tuple[str, ...]:
        """Those that this build has."""
        return tuple(dict.fromkeys(name for name, _ in self.pairs))


def at_scale(run: WorkloadRun, scale: WorkloadScale) -> WorkloadRun:
    return run.model_copy(update={"axes": {**run.axes, **scale.axes}})


def make_settings(run: WorkloadRun, machine: Machine, can: Can) -> Settings:
    """Without the values that this machine cannot have; an axis without values is left out.

    Raises UsageError for an axis or a value that does not exist.
    """
    have = counts(machine)
    axes: dict[str, list[str]] = {}
    cannot: list[str] = []
    for name, words in run.axes.items():
        for value in have.numbers(words) if name in _NUMBERS else words:
            _check(run, name, value)
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
    pairs: list[tuple[str, Setting]] = []
    for workload in run.workloads:
        lacks = [(one, _lacks(run, workload, one, can)) for one in made]
        cannot += dict.fromkeys(f"{workload}: {why}" for _, why in lacks if why)
        pairs += [(workload, one) for one, why in lacks if not why]
    if not pairs:
        raise UsageError(f"nothing of it can run here: {'; '.join(cannot)}")
    return Settings(tuple(made), tuple(cannot), tuple(pairs))


def runs_of(scale: WorkloadScale, settings: Settings) -> int:
    return scale.blocks * len(settings.pairs)


def records(workload: str, part: float) -> int:
    return max(1, round(part * PAPER_ROWS[workload]))


def flags(
    run: WorkloadRun,
    workload: str,
    setting: Setting,
    *,
    scale: WorkloadScale,
    check: bool,
    machine: Machine,
) -> tuple[list[str], tuple[str, ...]]:
    """Of atoll-workload or atoll-kernels, and of the atoll-exec that starts it."""
    launch = launch_flags(
        cpus=None,
        memory=setting.get("memory", "first-touch"),
        malloc=setting.get("malloc"),
        no_thp=False,
    )
    if workload not in PAPER_ROWS:
        size = scale.flags.get(workload, "").split()
        return [workload, "--runs", "1", *size, *_of_kernel(run, workload, setting)], launch
    threads = None if setting.get("threads", ALL) == ALL else int(setting["threads"])
    places, _ = thread_places(
        machine, setting.get("placement", Placement.NONE), threads=threads, scheduler="plain"
    )
    own = [workload, "--runs", "1", "--records", str(records(workload, scale.part))]
    own += ["--threads", str(threads)] if threads else []
    for name in ("dataset", "index"):
        own += [f"--{name}", setting[name]] if name in setting else []
    own += ["--keep"] if run.keep and workload == "w3" else []
    own += [] if check else ["--no-check"]
    return [*own, *places], launch


def knobs(setting: Setting) -> dict[str, str]:
    """Knob -> value."""
    return {
        name.removeprefix(KNOB): value for name, value in setting.items() if name.startswith(KNOB)
    }


def _of_kernel(run: WorkloadRun, workload: str, setting: Setting) -> list[str]:
    """The flags of a kernel under a setting."""
    own: list[str] = []
    for name, value in setting.items():
        if words := run.words.get(name):
            own += words.get(f"{workload}:{value}", words[value]).split()
        elif not name.startswith(KNOB) and name not in _LAUNCHED:
            own += [f"--{name}", value]
    return own


def _lacks(run: WorkloadRun, workload: str, setting: Setting, can: Can) -> str:
    """Why this build's atoll-kernels cannot run the workload so; empty if it can."""
    if workload in PAPER_ROWS:
        return ""
    known = {one.name: one for one in can.kernels.workloads} if can.kernels else {}
    if can.kernels is None or workload not in known:
        return "this build of atoll-kernels has none"
    here = {one.name: one for one in (*can.kernels.parameters, *known[workload].parameters)}
    own = _of_kernel(run, workload, setting)
    for flag, value in zip(own[::2], own[1::2], strict=True):
        parameter = here.get(flag.removeprefix("--"))
        if parameter is None:
            return f"it has no {flag}"
        if parameter.choices and value not in parameter.choices:
            return f"it has no {flag} {value}"
        if flag == "--scheduler" and value not in can.kernels.schedulers.split(", "):
            return f"this build has no {value}"
    return ""


def _check(run: WorkloadRun, name: str, value: str) -> None:
    if run.workloads[0] not in PAPER_ROWS and name not in _LAUNCHED:
        if name in run.words and value not in run.words[name]:
            raise UsageError(f"{name}={value}: the experiment does not say what it is")
        return
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
    if name == "workers" and int(value) > len(machine.allowed_cores):
        return f"this machine has {plural(len(machine.allowed_cores), 'core')}"
    if name == "memory" and value != "first-touch" and len(machine.nodes) < 2:
        return "it means nothing with one memory node"
    if name == "placement" and value == Placement.DENSE:
        places = usable_places(machine, smt=True)
        if thread_order(places, Placement.DENSE) == thread_order(places, Placement.SPARSE):
            return "it is the same as sparse"
    return ""
