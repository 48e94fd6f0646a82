"""The terms of a claim over runs of a workload under settings. Pure.

    time(...)       seconds of a run
    build(...)      seconds until the index of w4 was there
    speedup(...)    over the baseline, which has the first value of each axis
    remaining(...)  the time in percent of the baseline's
    best(over=A)    the largest speed-up over the values of the axis A, all else as given
    overhead(...)   resident memory over what the workload must hold
    moves(...)      of its threads between CPUs, at least 1 so that it has ratios
    local(...)      the share of its pages near their readers, in percent, estimated from pages;
                    at least 0.01

The keys are the axes; one that is absent has the baseline's value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from atoll.experiments.claims import Reading, Term, without_knobs
from atoll.experiments.here import counts
from atoll.schema.machine import Machine
from atoll.schema.workload import SettingRun, WorkloadResult, WorkloadRuns

NAMES = frozenset({"time", "build", "speedup", "remaining", "best", "overhead", "moves", "local"})
_LEAST_SHARE = 0.01

Value = Callable[[WorkloadResult], float | None]
VALUES: Mapping[str, Value] = {  # those that are of one setting alone
    "time": lambda one: one.runs_s[0],
    "build": lambda one: one.build_s,
    "overhead": lambda one: one.overhead,
    "moves": lambda one: None if one.migrations is None else max(one.migrations, 1),
    "local": lambda one: (
        None
        if one.local_share_estimated is None
        else max(100 * one.local_share_estimated, _LEAST_SHARE)
    ),
}


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
        over = asked.pop("over", None)
        setting = {**self._settings[0], **asked}
        if term.name == "best":
            return self._best(over or "", setting)
        if setting not in self._settings:
            listed = ", ".join(f"{key}={value}" for key, value in asked.items())
            return f"nothing was run with {listed}"
        match term.name:
            case "speedup":
                return self._speedup(setting)
            case "remaining":
                return self._over_baseline(setting, lambda base, mine: 100 * mine / base)
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
        return self._over_baseline(setting, lambda base, mine: base / mine)

    def _over_baseline(
        self, setting: Mapping[str, str], ratio: Callable[[float, float], float]
    ) -> Reading | str:
        base = self._blocks(self._settings[0], VALUES["time"])
        mine = self._blocks(setting, VALUES["time"])
        both = base.keys() & mine.keys()
        if not both:
            return "no block has it"
        found = Reading.over({one: ratio(base[one], mine[one]) for one in both}, _of(setting))
        return replace(found, by_name=setting == self._settings[0])

    def _blocks(self, setting: Mapping[str, str], value: Value) -> dict[int, float]:
        found = {one.block: value(one.result) for one in self._runs if one.setting == setting}
        return {block: each for block, each in found.items() if each is not None}


def _of(setting: Mapping[str, str]) -> str:
    return " ".join(f"{key}={value}" for key, value in setting.items())
