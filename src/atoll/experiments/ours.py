"""What was measured of an experiment on one machine, and whether the claim held. Pure."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field

from atoll.bench.analysis import machine_line, summarise
from atoll.bench.results import Results
from atoll.errors import UsageError
from atoll.experiments.claims import (
    Outcome,
    Read,
    Reading,
    Term,
    Verdict,
    judge,
    knobs_of,
    parse_claim,
    parse_term,
    terms_of,
)
from atoll.experiments.here import unmet
from atoll.experiments.oltp_readings import OltpReadings
from atoll.experiments.operator_readings import OperatorReadings
from atoll.experiments.profile_readings import ProfileReadings
from atoll.experiments.readings import BenchReadings
from atoll.experiments.workload_readings import VALUES, WorkloadReadings
from atoll.experiments.workload_settings import PAPER_ROWS
from atoll.oltp.analysis import cautions
from atoll.operators.judge import cautions as operator_cautions
from atoll.schema.experiment import Experiment
from atoll.schema.kernel import Concurrency, KernelResult
from atoll.schema.oltp import OltpRuns
from atoll.schema.operator_runs import OperatorRuns
from atoll.schema.profile import Profile
from atoll.schema.summary import BenchSummary
from atoll.schema.text import plural
from atoll.schema.workload import WorkloadResult, WorkloadRuns

_EMULATED = "was measured on an emulated CPU, so its figures mean nothing"
_OLD_CLOCK = (
    "timed by the bench of an earlier Atoll: if the engine's client is a call in another process, "
    "some 0.4 ms of each time are the bench's own"
)


@dataclass(frozen=True, slots=True)
class Ours:
    machine: str  # in one line
    size: str  # of the data; empty: there is none
    source: str  # the name of the file
    readings: Mapping[str, Read]  # by engine or workload; '' of a profile
    warnings: tuple[str, ...] = ()  # what a reader must know before trusting a figure
    bench: BenchSummary | None = None  # None: no engine was measured
    # Or emulated, or simulated: fills in an emulated machine, or emulated network: measured over
    # virtual machines.
    basis: str = "measured"
    meaningless: tuple[str, ...] = ()  # why the figure means nothing on that machine
    threads: Mapping[str, Concurrency] = field(default_factory=dict)  # by setting, in its last run
    more: tuple[Term, ...] = ()  # measured, but neither published nor of the claim


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
        warnings=(
            *_not_turned(experiment, {axis.name for axis in header.axes}),
            *([_OLD_CLOCK] if header.fingerprint.clock == "bench" else ()),
            *(one.message for one in bench.warnings),
        ),
        bench=bench,
        basis=bench.basis,
    )


def of_workloads(experiment: Experiment, found: WorkloadRuns, source: str) -> Ours:
    sizes = {one.result.workload: _size(one.result) for one in found.runs}
    readings = WorkloadReadings.by_workload(found)
    return Ours(
        machine=machine_line(found.machine),
        size=", ".join(f"{name} with {size}" for name, size in sizes.items()),
        source=source,
        readings=readings,
        warnings=(*_not_turned(experiment, found.settings[0]), *found.warnings),
        basis=_basis(experiment, found),
        meaningless=tuple(unmet(experiment.needs, found.machine)),
        threads=_threads(found),
        more=tuple(_more(experiment, found, next(iter(readings.values())))),
    )


def _size(result: WorkloadResult | KernelResult) -> str:
    if isinstance(result, KernelResult):
        return " ".join(f"{name}={value}" for name, value in result.parameters.items() if value)
    share = result.records / PAPER_ROWS[result.workload]
    return f"{result.records:,} records ({share:.2g} of the paper's)"


def _basis(experiment: Experiment, found: WorkloadRuns) -> str:
    """Simulated caches count fills, though an emulated CPU's times mean nothing."""
    terms = terms_of(parse_claim(experiment.check.shape))
    if found.emulated and all(one.name == "fills" for one in terms):
        return "simulated"
    return "emulated" if found.emulated else "measured"


def _threads(found: WorkloadRuns) -> dict[str, Concurrency]:
    varied = _varied(found)
    return {
        " ".join(one.setting[axis] for axis in varied): counted
        for one in found.runs
        if isinstance(one.result, KernelResult) and (counted := one.result.concurrency)
    }


def _varied(found: WorkloadRuns) -> list[str]:
    """The axes with several values."""
    return [name for name in found.settings[0] if len({one[name] for one in found.settings}) > 1]


def _more(experiment: Experiment, found: WorkloadRuns, read: Read) -> Iterator[Term]:
    """What the claim compares, for the settings that it leaves out."""
    of_claim = terms_of(parse_claim(experiment.check.shape))
    terms = (*of_claim, *(parse_term(one.term) for one in experiment.published))
    named = {(term.name, of.of) for term in terms if isinstance(of := read(term), Reading)}
    varied = _varied(found)
    of_one = dict.fromkeys(term.name for term in of_claim if term.name in VALUES)
    for name in of_one or ("time",):
        for setting in found.settings:
            term = Term(name, {axis: setting[axis] for axis in varied})
            if isinstance(of := read(term), Reading) and (name, of.of) not in named:
                yield term


def of_oltp(found: OltpRuns, source: str) -> Ours:
    commits = (
        Term("commits", {"placement": seat.placement, "cores": str(seat.cores)})
        for seat in found.seats
    )
    return Ours(
        machine=machine_line(found.machine),
        size=", ".join(f"{name} of size {size:,}" for name, size in found.sizes.items()),
        source=source,
        readings={name: OltpReadings(found, name) for name in found.sizes},
        warnings=tuple(cautions(found)),
        basis="emulated" if found.emulated else "measured",
        more=tuple(commits),
    )


def of_operators(found: OperatorRuns, source: str) -> Ours:
    return Ours(
        machine=machine_line(found.machine),
        size=plural(len(found.graph.operators), "operator"),
        source=source,
        readings={"": OperatorReadings(found)},
        warnings=tuple(operator_cautions(found)),
        basis="emulated" if found.emulated else "measured",
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
    if ours.meaningless:
        why = tuple(f"the figure means nothing on this machine: {one}" for one in ours.meaningless)
        return dict.fromkeys(ours.readings, Verdict(Outcome.UNJUDGED, why))
    claim = parse_claim(experiment.check.shape)
    return {
        engine: judge(claim, read, experiment.check.margin)
        for engine, read in ours.readings.items()
    }


def _not_turned(experiment: Experiment, axes: Container[str]) -> list[str]:
    knobs = knobs_of(terms_of(parse_claim(experiment.check.shape)), axes)
    return [f"{name} was not turned: both sides have the machine's value" for name in knobs]


def failed(found: Mapping[str, Verdict]) -> list[str]:
    """The engines for which the claim did not hold."""
    return [engine for engine, one in found.items() if one.outcome is Outcome.NOT]
