"""What of a claim could not be judged here, whatever the times will be. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from atoll.errors import UsageError
from atoll.experiments.claims import Outcome, Read, Reading, Term, judge, parse_claim, terms_of
from atoll.experiments.here import Possible
from atoll.experiments.readings import COUNTED, BenchReadings
from atoll.experiments.workload_readings import WorkloadReadings
from atoll.experiments.workload_settings import PAPER_ROWS, Settings
from atoll.schema.experiment import BenchRun, Experiment, Scale
from atoll.schema.kernel import FILLS, Concurrency, KernelFills, KernelResult
from atoll.schema.machine import Machine
from atoll.schema.workload import SettingRun, WorkloadAnswer, WorkloadResult, WorkloadRuns
from atoll.stats.paired import MIN_BLOCKS
from atoll.suites import registry as suites
from atoll.suites.selection import select_queries

_ALIKE = dict.fromkeys(range(MIN_BLOCKS), 1.0)
_ANY_KERNEL = KernelResult(
    workload="bfs",
    scheduler="atoll",
    approach=None,
    workers=1,
    arrays="partitioned",
    pages="transparent",
    seed=1,
    parameters={},
    make_s=0,
    runs_s=(1.0,),
    work=1,
    unit="edges",
    per_s=1,
    traffic_bytes=1e9,
    peak_bytes=1,
    figures={},
    fills=KernelFills(source="hardware", chiplets=1, runs=(dict.fromkeys(FILLS, 1),)),
    concurrency=Concurrency(every_s=1, running=(1,), threads_created=1),
)
_ANY = WorkloadResult(
    workload="w1",
    scheduler="plain",
    variant="paper",
    dataset="runs",
    records=1,
    groups=1,
    seed=1,
    threads=1,
    keep=False,
    generate_s=1,
    runs_s=(1.0,),
    records_per_s=1,
    input_bytes=16,
    peak_bytes=16,
    overhead=1,
    migrations=1,
    checked=False,
    answer=WorkloadAnswer(rows=1, sums=(1,)),
)


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
    queries = select_queries(scale.queries, suites.get(run.suite).query_names)
    times = {one.label: dict.fromkeys(queries, _ALIKE) for one in can.entrants}
    varied = [axis.name for axis in can.grid.varied]

    def reads(engine: str) -> Read:
        readings = BenchReadings(can.entrants, engine, machine, varied, times, queries)

        def read(term: Term) -> Reading | str:
            if term.name in uncounted:
                return uncounted[term.name]
            if term.name in COUNTED:
                return Reading.over(_ALIKE, str(term))
            return readings(term)

        return read

    engines = dict.fromkeys(one.engine for one in can.entrants)
    return _lost(experiment, {engine: reads(engine) for engine in engines})


def unjudged_workloads(experiment: Experiment, machine: Machine, settings: Settings) -> list[str]:
    """As `unjudged`, of workloads."""
    terms = terms_of(parse_claim(experiment.check.shape))
    printed = {term.values["of"]: 1.0 for term in terms if term.name == "figure"}
    local = 0.5 if len(machine.nodes) > 1 else None
    alike = [
        SettingRun(
            block=block,
            setting=dict(setting),
            result=_ANY.model_copy(update={"workload": name, "local_share_estimated": local})
            if name in PAPER_ROWS
            else _ANY_KERNEL.model_copy(update={"workload": name, "figures": printed}),
        )
        for name, setting in settings.pairs
        for block in _ALIKE
    ]
    found = WorkloadRuns(
        machine=machine, emulated=False, settings=tuple(map(dict, settings.all)), runs=tuple(alike)
    )
    return _lost(experiment, WorkloadReadings.by_workload(found))


def _lost(experiment: Experiment, reads: Mapping[str, Read]) -> list[str]:
    claim = parse_claim(experiment.check.shape)
    lost: dict[str, list[str]] = {}
    for engine, read in reads.items():
        for one in claim:
            verdict = judge([one], read)
            if verdict.outcome is Outcome.UNJUDGED:
                lost.setdefault(verdict.reasons[0], []).append(engine)
    lines = [f"{', '.join(whose)}: {why}" for why, whose in lost.items()]
    if sum(map(len, lost.values())) == len(claim) * len(reads):
        raise UsageError(f"{experiment.name} cannot be judged here: {'; '.join(lines)}")
    return lines
