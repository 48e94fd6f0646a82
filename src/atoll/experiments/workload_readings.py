"""The terms of a claim over runs of a workload or kernel under settings. Pure.

    time(...)       seconds of a run
    build(...)      seconds until the index of w4 was there
    speedup(...)    over the baseline, which has the first value of each axis
    remaining(...)  the time in percent of the baseline's
    best(over=A)    the largest speed-up over the values of the axis A, all else as given
    gain(..., over=A:V)  the speed-up over the setting with V in the axis A, all else as given
    scaling(...)    the speed-up over the fewest workers, all else as given
    overhead(...)   resident memory over what the workload must hold
    moves(...)      of its threads between CPUs, at least 1 so that it has ratios
    local(...)      the share of its pages near their readers, in percent, estimated from pages;
                    at least 0.01
    figure(of=F, ...)  of a kernel: a figure that it prints and that is not 0
    running(...)    of a kernel: the mean number of threads that ran or could
    threads(...)    of a kernel: those that it created
    fills(of=P, ...)  of a kernel: lines that its workers' cores got, where the CPU or a simulation
                    counts them: from the chiplet's L3 (local), another chiplet of the node (near),
                    caches of another node (far), or memory; at least 1, so that it has ratios

The keys are the axes; one that is absent has the baseline's value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import truediv
from statistics import fmean

from atoll.experiments.claims import Reading, Term, without_knobs
from atoll.experiments.here import counts
from atoll.schema.kernel import KernelResult
from atoll.schema.machine import Machine
from atoll.schema.workload import SettingRun, WorkloadResult, WorkloadRuns

_LEAST = 0.01

Value = Callable[[WorkloadResult | KernelResult], float | None]


def _query(value: Callable[[WorkloadResult], float | None]) -> Value:
    return lambda one: value(one) if isinstance(one, WorkloadResult) else None


def _kernel(value: Callable[[KernelResult], float | None]) -> Value:
    return lambda one: value(one) if isinstance(one, KernelResult) else None


VALUES: Mapping[str, Value] = {  # those that are of one setting alone
    "time": lambda one: one.runs_s[0],
    "build": _query(lambda one: one.build_s),
    "overhead": _query(lambda one: one.overhead),
    "moves": _query(lambda one: None if one.migrations is None else max(one.migrations, 1)),
    "local": _query(
        lambda one: (
            None
            if one.local_share_estimated is None
            else max(100 * one.local_share_estimated, _LEAST)
        )
    ),
    "running": _kernel(
        lambda one: (
            max(fmean(one.concurrency.running), _LEAST)
            if one.concurrency and one.concurrency.running
            else None
        )
    ),
    "threads": _kernel(
        lambda one: max(one.concurrency.threads_created, 1) if one.concurrency else None
    ),
}
_FILLS: Mapping[str, Sequence[str]] = {
    "local": ("local_chiplet",),
    "near": ("remote_chiplet",),
    "far": ("remote_node",),
    "memory": ("memory_local", "memory_remote"),
}


def _fills(part: str) -> Value:
    def lines(one: KernelResult) -> float | None:
        found = [one.fills.runs[-1].get(name) for name in _FILLS.get(part, ())] if one.fills else []
        counted = [lines for lines in found if lines is not None]
        return max(sum(counted), 1) if counted else None

    return _kernel(lines)


NAMES = frozenset({*VALUES, "speedup", "remaining", "best", "gain", "scaling", "figure", "fills"})


class WorkloadReadings:
    """The terms of one workload."""

    def __init__(
        self, machine: Machine, settings: Sequence[Mapping[str, str]], runs: Sequence[SettingRun]
    ) -> None:
        self._counts = counts(machine)
        self._settings = settings
        self._runs = runs

    @classmethod
    def by_workload(cls, found: WorkloadRuns) -> dict[str, WorkloadReadings]:
        names = dict.fromkeys(one.result.workload for one in found.runs)
        return {
            name: cls(
                found.machine,
                found.settings,
                [one for one in found.runs if one.result.workload == name],
            )
            for name in names
        }

    def __call__(self, term: Term) -> Reading | str:
        if term.name not in NAMES:
            return f"a workload has no {term.name}(...)"
        values = without_knobs(term, self._settings[0])
        asked = {key: self._counts.number(value) for key, value in values.items()}
        over, part = asked.pop("over", ""), asked.pop("of", "")
        setting = {**self._settings[0], **asked}
        if term.name == "best":
            return self._best(over, setting)
        if setting not in self._settings:
            listed = ", ".join(f"{key}={value}" for key, value in asked.items())
            return f"nothing was run with {listed}"
        match term.name:
            case "speedup":
                return self._speedup(setting)
            case "remaining":
                return self._over(self._settings[0], setting, lambda base, mine: 100 * mine / base)
            case "gain":
                axis, _, value = over.partition(":")
                return self._over({**setting, axis: value}, setting)
            case "scaling":
                every = [int(one["workers"]) for one in self._settings if "workers" in one]
                fewest = {"workers": str(min(every))} if every else {}
                return self._over({**setting, **fewest}, setting)
            case "fills":
                blocks = self._blocks(setting, _fills(part))
            case "figure":
                blocks = self._blocks(setting, _kernel(lambda one: one.figures.get(part) or None))
            case _:
                blocks = self._blocks(setting, VALUES[term.name])
        if not blocks:
            return f"{term.name} was not measured"
        return replace(Reading.over(blocks, _of(setting)), mean=fmean(blocks.values()))

    def _best(self, axis: str, setting: Mapping[str, str]) -> Reading | str:
        values = dict.fromkeys(one[axis] for one in self._settings if axis in one)
        like = [one for value in values if (one := {**setting, axis: value}) in self._settings]
        found = [each for one in like if isinstance(each := self._speedup(one), Reading)]
        if not found:
            return f"the axis {axis} was not varied"
        return max(found, key=lambda one: one.estimate.value)

    def _speedup(self, setting: Mapping[str, str]) -> Reading | str:
        return self._over(self._settings[0], setting)

    def _over(
        self,
        baseline: Mapping[str, str],
        setting: Mapping[str, str],
        ratio: Callable[[float, float], float] = truediv,
    ) -> Reading | str:
        base = self._blocks(baseline, VALUES["time"])
        mine = self._blocks(setting, VALUES["time"])
        both = base.keys() & mine.keys()
        if not both:
            return "no block has it"
        found = Reading.over({one: ratio(base[one], mine[one]) for one in both}, _of(setting))
        return replace(found, by_name=setting == baseline)

    def _blocks(self, setting: Mapping[str, str], value: Value) -> dict[int, float]:
        found = {one.block: value(one.result) for one in self._runs if one.setting == setting}
        return {block: each for block, each in found.items() if each is not None}


def _of(setting: Mapping[str, str]) -> str:
    return " ".join(f"{key}={value}" for key, value in setting.items())
