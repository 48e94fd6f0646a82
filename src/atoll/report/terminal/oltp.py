"""What transactional workloads measured, for a terminal. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from rich.table import Table

from atoll.oltp.analysis import Compared, cautions, commits, compared, runs_of
from atoll.report.terminal.grid import grid
from atoll.report.terminal.lines import wrapped
from atoll.schema.oltp import OltpRuns, OltpSeat
from atoll.schema.text import plural
from atoll.stats.equivalence import MARGIN, Equivalence
from atoll.stats.paired import Estimate, Interval

_NUMBERS = ("per second", "p50 ms", "p90 ms", "p99 ms")


def oltp_table(found: OltpRuns) -> Table:
    """For each workload and seat its rate, and that of each type of its transactions."""
    table = grid()
    table.add_column("workload, transactions", no_wrap=True)
    for name in _NUMBERS:
        table.add_column(name, justify="right", no_wrap=True)
    for workload in found.sizes:
        for seat in found.seats:
            for row in _rows(found, workload, seat):
                table.add_row(*row)
    return table


def _rows(found: OltpRuns, workload: str, seat: OltpSeat) -> Iterator[tuple[str, ...]]:
    runs = runs_of(found, workload, seat)
    yield f"{workload} {_name(seat)}", _rate(commits(found, workload, seat)), "", "", ""
    for place, one in enumerate(runs[0].latencies):
        each = [run.latencies[place] for run in runs]
        yield (
            f"  {one.type}",
            f"{median(latency.count for latency in each) / found.measured_s:,.1f}",
            *(
                _milliseconds([getattr(latency, name) for latency in each])
                for name in ("p50_ms", "p90_ms", "p99_ms")
            ),
        )


def oltp_text(found: OltpRuns, width: int) -> str:
    """The verdicts, the conditions, durability and cautions, after the table."""
    lines = [
        f"medians of {plural(len({run.block for run in found.runs}), 'block')} of "
        f"{found.measured_s} s each; latencies as the driver saw them"
    ]
    lines += [_verdict(one) for one in compared(found)]
    for workload in found.sizes:
        runs = [run for run in found.runs if run.workload == workload]
        names = [one.name for one in runs[0].conditions]
        lines.append(
            f"{workload}: {len(names)} conditions ({names[0]} to {names[-1]}) held after each of "
            f"{plural(len(runs), 'run')}"
        )
    lines.append("durability: " + ", ".join(f"{k} {v}" for k, v in found.durability.items()))
    lines += [f"caution: {one}" for one in cautions(found)]
    return "\n".join(wrapped(line, width) for line in lines)


def _verdict(one: Compared) -> str:
    where = f"{one.workload}, {plural(one.cores, 'core')}: spread over packed"
    if one.ratio is None:
        return f"{where}: {one.verdict}, because {one.why}"
    percent = f"±{100 * (MARGIN - 1):.0f} %"
    words = {
        Equivalence.EQUIVALENT: f"equivalent within {percent}",
        Equivalence.DIFFERS: "differs",
        Equivalence.NOT_SHOWN: f"an equivalence within {percent} is not shown",
    }
    return f"{where} {one.ratio.value:.3f}{_interval(one.ratio.interval, 3)}: {words[one.verdict]}"


def _name(seat: OltpSeat) -> str:
    also = "".join(f" = {name}" for name in seat.also)
    return f"{seat.label}{also}"


def _rate(found: Estimate | None) -> str:
    return "0" if found is None else f"{found.value:,.0f}{_interval(found.interval, 0)}"


def _interval(interval: Interval | None, digits: int) -> str:
    return f" [{interval.low:,.{digits}f}, {interval.high:,.{digits}f}]" if interval else ""


def _milliseconds(values: list[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{median(known):.2f}" if len(known) == len(values) else "–"
