"""What of a claim could not be judged here, whatever the times will be. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from atoll.errors import UsageError
from atoll.experiments.claims import Outcome, Reading, Term, judge, parse_claim
from atoll.experiments.here import Possible
from atoll.experiments.readings import COUNTED, BenchReadings
from atoll.schema.experiment import BenchRun, Experiment, Scale
from atoll.schema.machine import Machine
from atoll.stats.paired import MIN_BLOCKS
from atoll.suites import registry as suites
from atoll.suites.selection import select_queries

_ALIKE = dict.fromkeys(range(MIN_BLOCKS), 1.0)


def unjudged(
    experiment: Experiment,
    run: BenchRun,
    scale: Scale,
    machine: Machine,
    can: Possible,
    uncounted: Mapping[str, str],
) -> list[str]:
    """The engines, the comparison and why, a line each: judged as if all took the same time.

    `uncounted`: the terms that nothing counts here, with the reason.

    Raises UsageError if no comparison is left.
    """
    claim = parse_claim(experiment.check.shape)
    queries = select_queries(scale.queries, suites.get(run.suite).query_names)
    times = {one.label: dict.fromkeys(queries, _ALIKE) for one in can.entrants}
    engines = dict.fromkeys(one.engine for one in can.entrants)
    lost: dict[str, list[str]] = {}
    for engine in engines:
        varied = (axis.name for axis in can.grid.varied)
        readings = BenchReadings(can.entrants, engine, machine, varied, times, queries)

        def read(term: Term, readings: BenchReadings = readings) -> Reading | str:
            if term.name in uncounted:
                return uncounted[term.name]
            if term.name in COUNTED:
                return Reading.over(_ALIKE, str(term))
            return readings(term)

        for one in claim:
            verdict = judge([one], read)
            if verdict.outcome is Outcome.UNJUDGED:
                lost.setdefault(verdict.reasons[0], []).append(engine)
    lines = [f"{', '.join(whose)}: {why}" for why, whose in lost.items()]
    if sum(map(len, lost.values())) == len(claim) * len(engines):
        raise UsageError(f"{experiment.name} cannot be judged here: {'; '.join(lines)}")
    return lines
