"""The terms of a claim over a comparison of placements of operators. Pure.

throughput(deployment=D)         works a second; D is os, per-core or packed
deviation(deployment=D)          their standard deviation over windows of 1 s
percentile(deployment=D, of=99)  of the latency, in ms; of is 50, 90 or 99
cores_used(deployment=D)         cores with over 1 % of the program's CPU time

Of the last round, whose headroom is the one that held, if any did.
"""

from __future__ import annotations

from statistics import fmean, pstdev

from atoll.experiments.claims import Reading, Term
from atoll.operators.judge import runs_of
from atoll.schema.operator_runs import OperatorRun, OperatorRuns

NAMES = frozenset({"throughput", "deviation", "percentile", "cores_used"})
PERCENTILES = ("50", "90", "99")


class OperatorReadings:
    def __init__(self, found: OperatorRuns) -> None:
        self._found = found

    def __call__(self, term: Term) -> Reading | str:
        deployment = term.values.get("deployment", "packed")
        for name, why in self._found.refused.items():
            if name == deployment:
                return why
        runs = [
            run
            for name in ("os", "per-core", "packed")
            if name == deployment
            for run in runs_of(self._found.rounds[-1], name)
        ]
        if not runs:
            return f"{deployment} was not run"
        if term.name not in NAMES:
            return f"operators have no {term.name}(...)"
        values = {run.block: _value(term, run) for run in runs}
        if not all(values.values()):
            return f"{term} is 0 in a block"
        return Reading.over(values, deployment)


def _value(term: Term, run: OperatorRun) -> float:
    match term.name:
        case "throughput":
            return fmean(run.per_window)
        case "deviation":
            return pstdev(run.per_window)
        case "cores_used":
            return float(run.cores_used)
        case _:
            return {"50": run.p50_ms, "90": run.p90_ms, "99": run.p99_ms}[term.values["of"]]
