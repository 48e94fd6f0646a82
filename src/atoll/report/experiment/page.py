"""An experiment as one HTML page: the claim, the paper's figure beside ours, who measured. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from atoll.experiments.ours import Ours
from atoll.report.experiment import tables
from atoll.report.experiment.chart import side_charts
from atoll.report.pages import page
from atoll.schema.experiment import Experiment


def experiment_page(experiment: Experiment, found: Sequence[Ours]) -> str:
    return page(
        "experiment.html.j2",
        e=experiment,
        verdicts=tables.judged(experiment, found),
        pictures=side_charts(experiment, found),
        table=tables.side_by_side(experiment, found),
        machines=tables.machines(experiment, found),
        notes=tables.notes(experiment),
    )
