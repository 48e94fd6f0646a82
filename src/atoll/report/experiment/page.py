"""An experiment as one HTML page: the claim, the paper's figure beside ours, who measured. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from atoll.experiments.ours import Ours
from atoll.report.bench import tables as bench_tables
from atoll.report.bench import verdicts
from atoll.report.experiment import tables
from atoll.report.experiment.chart import side_charts
from atoll.report.experiment.concurrency import concurrency_charts
from atoll.report.pages import page
from atoll.report.profile.findings import EMULATED
from atoll.schema.experiment import Experiment


def experiment_page(experiment: Experiment, found: Sequence[Ours]) -> str:
    ours = list(zip(tables.names(found), found, strict=True))
    marked = [name for name, one in ours if one.basis == "emulated"]
    return page(
        "experiment.html.j2",
        e=experiment,
        judged=tables.judged(experiment, found),
        pictures=[*side_charts(experiment, found), *concurrency_charts(found)],
        bases=["published", *sorted({one.basis for one in found})],
        emulated=f"{', '.join(marked)}: {EMULATED}" if marked else "",
        table=tables.without_repeats(tables.side_by_side(experiment, found)),
        tables=bench_tables,
        verdicts=verdicts,
        explained=[(name, one.bench) for name, one in ours if one.bench and one.bench.why],
        machines=tables.machines(experiment, found),
        notes=tables.notes(experiment),
    )
