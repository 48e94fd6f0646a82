"""An experiment's file, and the list of them, at 80 columns. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from rich.console import RenderableType
from rich.text import Text

from atoll.experiments.ours import Ours
from atoll.experiments.outlook import Outlook
from atoll.report.bench.text import why_text
from atoll.report.experiment import tables
from atoll.report.experiment.tables import shape
from atoll.report.table import Row, Table
from atoll.report.terminal.grid import grid, titled
from atoll.schema.experiment import (
    Experiment,
    Needs,
    OperatorRun,
    TransactionRun,
    WorkloadRun,
)
from atoll.schema.span import span
from atoll.schema.text import plural

_WIDTH = 80
_WRAPPED = ("figure", "published", "COST")


def experiment_list(found: Sequence[tuple[Experiment, Outlook]]) -> Table:
    """Where this machine cannot, what it lacks takes the place of the cost."""
    rows: list[Row] = [(one.name, each.here, _cost(each), one.shows) for one, each in found]
    return Table("", ("NAME", "HERE", "COST", "SHOWS"), rows)


def _cost(outlook: Outlook) -> str:
    if outlook.cost_s is None:
        return "; ".join(one.split(",")[0].removeprefix("it ") for one in outlook.why)
    return ", ".join("–" if cost is None else span(cost) for cost in outlook.cost_s.values())


def experiment_text(experiment: Experiment, here: Sequence[str]) -> str:
    """All of the file; `here`: what this machine can and cannot, and what it costs."""
    title = f"{experiment.name}: {experiment.figure} of {experiment.paper}"
    lines = [title, *_wrap(experiment.shows)]
    lines += _section("Claim", [experiment.check.claim, f"as a check: {experiment.check.shape}"])
    lines += _section("This machine", here)
    lines += _section("Needs", [_needs(experiment.needs)])
    lines += _section("Run", _run(experiment))
    lines += _section("Statistic of the paper", [experiment.statistic])
    lines += _section(
        "Machines of the paper",
        [
            f"{key}: {one.title}; {shape(one)} ({one.where})"
            for key, one in experiment.machines.items()
        ],
    )
    lines += _section(
        "Numbers of the paper",
        [
            f"{one.engine + ', ' if one.engine else ''}{one.machine}: {one.term} = {one.value:g} "
            f"{one.unit} ({one.where}){f'. {one.note}' if one.note else ''}"
            for one in experiment.published
        ]
        or ["none that its text prints"],
    )
    lines += _section("The paper also says", experiment.also)
    lines += _section("The paper is silent, so we chose", experiment.silent)
    lines += _section(
        "The paper contradicts itself",
        [f"{one.says} Against it: {one.against}" for one in experiment.contradicts],
    )
    lines += _section(
        "What stands for what cannot be had",
        [f"{name}: {instead}" for name, instead in experiment.stands_for.items()],
    )
    return "\n".join(lines) + "\n"


def tables_by_machine(table: Table) -> list[Table]:
    """The table of `side_by_side` as one for each of ours, since a terminal has 80 columns."""
    first = len(table.columns[: table.columns.index("published") + 1])
    return [
        Table(
            table.title,
            (*table.columns[:first], table.columns[own]),
            [(*row[:first], row[own]) for row in table.rows],
        )
        for own in range(first, len(table.columns))
    ]


def whys(found: Sequence[Ours]) -> list[RenderableType]:
    """The operators and plans behind the figures of each machine whose engines told of them."""
    lines: list[RenderableType] = []
    for name, ours in zip(tables.names(found), found, strict=True):
        if ours.bench and ours.bench.why:
            lines += [Text(f"\n{name}, operator by operator", style="bold"), *why_text(ours.bench)]
    return lines


def comparison_text(experiment: Experiment, found: Sequence[Ours]) -> str:
    """What stands below the table: who measured, the claim, the verdicts."""
    lines = _section("Machines", tables.machines(experiment, found))
    lines += _section("Claim", [experiment.check.claim])
    for verdict, reasons in tables.judged(experiment, found):
        lines += _section(verdict, reasons)
    return "\n".join(lines)


def drawn(table: Table) -> RenderableType:
    """For a terminal: the last column takes the rest."""
    shown = grid()
    for index, name in enumerate(table.columns):
        last = index + 1 == len(table.columns)
        most = 22 if name == "COST" else None
        shown.add_column(name, no_wrap=not last and name not in _WRAPPED, max_width=most)
    for row in table.rows:
        shown.add_row(*row)
    return titled(table.title, shown) if table.title else shown


def _needs(needs: Needs) -> str:
    wants: Mapping[str, int] = needs.model_dump()
    found = [f"{name.replace('_', ' ')}: {least}" for name, least in wants.items() if least > 1]
    return ", ".join(found) or "any machine"


def _run(experiment: Experiment) -> list[str]:
    if experiment.measure is not None:
        return [f"atoll measure --only {','.join(experiment.measure.kinds)}"]
    if experiment.workload is not None:
        return _run_of_workloads(experiment.workload)
    if experiment.oltp is not None:
        return _run_of_transactions(experiment.oltp)
    if experiment.operators is not None:
        return _run_of_operators(experiment.operators)
    run = experiment.bench
    assert run is not None
    axes = [f"{name} = {', '.join(values)}" for name, values in run.axes.items()]
    how = "; ".join([*axes, "all combinations" if run.product else "one axis at a time"])
    if run.network is not None:
        machines = ", ".join(map(str, run.network.machines))
        how = (
            f"WIM with one NIC of 1 Gbit/s, and WIN with {', '.join(run.network.nics)}, each on "
            f"machines = {machines}; rates times {run.network.scaled:g}"
        )
    lines = [f"suite {run.suite}; engines {', '.join(run.engines)}", how]
    for name, scale in run.scales.items():
        engines = f", {', '.join(scale.engines)}" if scale.engines else ""
        queries = f", queries {scale.queries}" if scale.queries else ""
        lines.append(f"{name}: SF {scale.sf:g}, {scale.blocks} blocks{engines}{queries}")
    return lines


def _run_of_workloads(run: WorkloadRun) -> list[str]:
    axes = [f"{name} = {', '.join(values)}" for name, values in run.axes.items()]
    how = "all combinations" if run.product else "one axis at a time"
    kept = "; w3 keeps its rows" if run.keep else ""
    lines = [f"workloads {', '.join(run.workloads)}{kept}", f"{'; '.join(axes)}; {how}"]
    for axis, words in run.words.items():
        lines += [f"{axis} {value}: {flags}" for value, flags in words.items()]
    for name, scale in run.scales.items():
        size = ", ".join(f"{kernel} {flags}" for kernel, flags in scale.flags.items())
        if not run.words:
            size = f"{scale.part:g} of the paper's rows"
        varied = "; ".join(f"{axis} = {', '.join(own)}" for axis, own in scale.axes.items())
        lines.append(
            f"{name}: {'; '.join(filter(None, (size, varied)))}, {plural(scale.blocks, 'block')}"
        )
    return lines


def _run_of_operators(run: OperatorRun) -> list[str]:
    lines = [f"atoll operators compare {run.program}"]
    lines += [
        f"{name}: {plural(scale.blocks, 'block')} of {scale.measured_s} s"
        for name, scale in run.scales.items()
    ]
    return lines


def _run_of_transactions(run: TransactionRun) -> list[str]:
    lines = [f"{run.engine}; {', '.join(run.workloads)}; cores = {', '.join(run.cores)}"]
    lines += [
        f"{name}: {plural(scale.warehouses, 'warehouse')}, {scale.records:,} records, "
        f"{plural(scale.blocks, 'block')} of {scale.measured_s} s"
        for name, scale in run.scales.items()
    ]
    return lines


def _section(title: str, lines: Sequence[str]) -> list[str]:
    if not lines:
        return []
    return ["", title, *(piece for line in lines for piece in _wrap(line))]


def _wrap(line: str) -> list[str]:
    return textwrap.wrap(line, _WIDTH, initial_indent="  ", subsequent_indent="    ")
