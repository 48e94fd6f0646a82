"""What was measured of an experiment on one machine, and whether the claim held. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from atoll.bench.analysis import machine_line, summarise
from atoll.bench.results import Results
from atoll.errors import UsageError
from atoll.experiments.claims import Outcome, Read, Verdict, judge, parse_claim
from atoll.experiments.profile_readings import ProfileReadings
from atoll.experiments.readings import BenchReadings
from atoll.schema.experiment import Experiment
from atoll.schema.profile import Profile
from atoll.schema.summary import BenchSummary
from atoll.schema.text import plural

_EMULATED = "was measured on an emulated CPU, so its figures mean nothing"


@dataclass(frozen=True, slots=True)
class Ours:
    machine: str  # in one line
    size: str  # of the data; empty: there is none
    source: str  # the name of the file
    readings: Mapping[str, Read]  # by engine; '' of a profile
    warnings: tuple[str, ...] = ()  # what a reader must know before trusting a figure
    bench: BenchSummary | None = None  # None: a profile

    @property
    def basis(self) -> str:
        return self.bench.basis if self.bench else "measured"


def of_results(experiment: Experiment, results: Results, source: str) -> Ours:
    """Raises UsageError if the results are of another suite."""
    header = results.header
    if experiment.bench is None or header.suite != experiment.bench.suite:
        raise UsageError(
            f"{source}: has results of the suite {header.suite}, not of {experiment.name}"
        )
    engines = dict.fromkeys(one.engine for one in header.entrants)
    scale = "" if header.scale_factor is None else f" SF {header.scale_factor:g}"
    bench = summarise(results)
    return Ours(
        machine=machine_line(header.machine),
        size=f"{header.suite}{scale}, {plural(len(results.queries), 'query')}",
        source=source,
        readings={engine: BenchReadings.of(results, engine) for engine in engines},
        warnings=tuple(one.message for one in bench.warnings),
        bench=bench,
    )


def of_profile(profile: Profile, source: str) -> Ours:
    """Raises UsageError if the profile is of an emulated CPU."""
    if profile.emulated:
        raise UsageError(f"{source}: {_EMULATED}")
    machine = f"{profile.machine_title}, {plural(len(profile.cpus), 'PU')}"
    warnings = tuple(one.message for one in profile.notices)
    return Ours(machine, "", source, {"": ProfileReadings(profile)}, warnings)


def verdicts(experiment: Experiment, ours: Ours) -> dict[str, Verdict]:
    """By engine: whether the paper's claim held. Times of an emulated CPU show nothing."""
    if ours.basis == "emulated":
        return dict.fromkeys(ours.readings, Verdict(Outcome.UNJUDGED, (_EMULATED,)))
    claim = parse_claim(experiment.check.shape)
    return {engine: judge(claim, read) for engine, read in ours.readings.items()}


def failed(found: Mapping[str, Verdict]) -> list[str]:
    """The engines for which the claim did not hold."""
    return [engine for engine, one in found.items() if one.outcome is Outcome.NOT]
