"""A program under several placements of its operators, for a terminal. Pure."""

from __future__ import annotations

from rich.table import Table

from atoll.operators.judge import Judgement, cautions, judge, shown, verdict
from atoll.report.numbers import number
from atoll.report.terminal.grid import grid
from atoll.report.terminal.lines import wrapped
from atoll.schema.operator_runs import OperatorRuns
from atoll.schema.text import plural
from atoll.stats.paired import Estimate

_NUMBERS = ("rate", "±", "p50 ms", "p90 ms", "p99 ms", "cores used")


def runs_table(found: OperatorRuns) -> Table:
    """A row for each deployment of each round."""
    table = grid()
    table.add_column("deployment", no_wrap=True)
    for name in _NUMBERS:
        table.add_column(name, justify="right", no_wrap=True)
    for one in found.rounds:
        for placement in one.placements:
            row = shown(one, placement.deployment)
            if row is None:
                continue
            name = placement.deployment
            if name == "packed":
                name += f", headroom {one.headroom:.1f}"
            figures = (row.throughput, row.deviation, row.p50_ms, row.p90_ms, row.p99_ms)
            table.add_row(name, *map(number, figures), f"{row.cores_used:g}")
    return table


def runs_text(found: OperatorRuns, width: int) -> str:
    """The verdict and cautions, after the table."""
    runs = found.rounds[-1].runs
    blocks = len({run.block for run in runs})
    lines = [
        f"{found.program}: medians of {plural(blocks, 'block')} of {found.measured_s:g} s each; "
        f"rates in {found.unit}, ± their standard deviation over windows of 1 s"
    ]
    lines += [
        f"headroom {one.headroom:.1f}: {_ratios(result)}"
        for one in found.rounds
        if (result := judge(one)) is not None
    ]
    lines.append(verdict(found))
    lines += [f"caution: {caution}" for caution in cautions(found)]
    return "\n".join(wrapped(line, width) for line in lines)


def _ratios(result: Judgement) -> str:
    return (
        f"packed over per-core: throughput {_ratio(result.throughput)}, "
        f"99th percentile {_ratio(result.p99)}"
    )


def _ratio(found: Estimate) -> str:
    interval = found.interval
    between = f" [{interval.low:.3f}, {interval.high:.3f}]" if interval else ""
    return f"{found.value:.3f}{between}"
