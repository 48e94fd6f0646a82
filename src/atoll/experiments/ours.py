"""What was measured of an experiment on one machine, and whether the claim held. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from atoll.bench.analysis import machine_line
from atoll.bench.results import Results
from atoll.experiments.claims import Outcome, Read, Verdict, judge, parse_claim
from atoll.experiments.readings import BenchReadings
from atoll.schema.experiment import Experiment


@dataclass(frozen=True, slots=True)
class Ours:
    machine: str  # in one line
    size: str  # of the data; empty: there is none
    source: str  # the name of the file
    readings: Mapping[str, Read]  # by engine; '' of a profile


def of_results(results: Results, source: str) -> Ours:
    header = results.header
    engines = dict.fromkeys(one.engine for one in header.entrants)
    scale = "" if header.scale_factor is None else f" SF {header.scale_factor:g}"
    return Ours(
        machine=machine_line(header.machine),
        size=f"{header.suite}{scale}, {len(results.queries)} queries",
        source=source,
        readings={engine: BenchReadings(results, engine) for engine in engines},
    )


def verdicts(experiment: Experiment, ours: Ours) -> dict[str, Verdict]:
    """By engine: whether the paper's claim held."""
    claim = parse_claim(experiment.check.shape)
    return {engine: judge(claim, read) for engine, read in ours.readings.items()}


def failed(found: Mapping[str, Verdict]) -> list[str]:
    """The engines for which the claim did not hold."""
    return [engine for engine, one in found.items() if one.outcome is Outcome.NOT]
