"""One run of a workload for a terminal, at 80 columns, and the list of workloads. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from statistics import fmean, median

from rich.console import RenderableType

from atoll.report.terminal.grid import grid
from atoll.schema.cpulist import format_cpulist
from atoll.schema.kernel import Concurrency, KernelFills, KernelResult
from atoll.schema.size import gib
from atoll.schema.text import plural
from atoll.schema.workload import WorkloadResult

_WIDTH = 80
_BARS = "▁▂▃▄▅▆▇█"


def workload_list(found: Iterable[tuple[str, str, str]]) -> RenderableType:
    """Of name, what it does, unit of its rate."""
    shown = grid()
    for name in ("NAME", "UNIT", "WHAT"):
        shown.add_column(name, no_wrap=name != "WHAT")
    for name, what, unit in found:
        shown.add_row(name, unit, what)
    return shown


def workload_text(found: WorkloadResult) -> str:
    """What ran, how long each run took, memory, moves, and whether the answer is right."""
    rows = {
        "data": f"{found.dataset}, {found.records:,} records, {found.groups:,} groups",
        "made": f"in {found.generate_s:.2f} s",
        "threads": f"{found.threads}, scheduled by {found.scheduler}"
        + (f", bound to CPUs {format_cpulist(found.pin)} in turn" if found.pin else ""),
        "launch": " ".join(found.launch),
        "index": "" if found.build_s is None else f"{found.index}, built in {found.build_s:.3f} s",
        "runs": _runs(found.runs_s),
        "rate": _rate(found.records_per_s, "records"),
        "memory": f"{gib(found.peak_bytes)} at its peak, {gib(found.input_bytes)} of it input"
        + ("" if found.overhead is None else f"; overhead {found.overhead:.2f}"),
        "local": ""
        if found.local_share_estimated is None
        else f"{found.local_share_estimated:.0%} of the pages, estimated",
        "moves": ""
        if found.migrations is None
        else f"{plural(found.migrations, 'move')} of threads between CPUs",
        "answer": f"{found.answer.rows:,} {'row' if found.answer.rows == 1 else 'rows'}, "
        + ("right" if found.checked else "not checked"),
    }
    kept = ", rows kept" if found.keep else ""
    return _text(f"{found.workload}, {found.variant}{kept}", rows)


def kernel_text(found: KernelResult, *, draws: bool = True) -> str:
    """As `workload_text`. `draws`: the terminal has the characters of a small chart."""
    own = ", ".join(f"{name} {value}" for name, value in found.parameters.items() if value)
    traffic = (found.traffic_bytes or 0) / median(found.runs_s) / 1e9
    by = f"{found.scheduler}, {found.approach}" if found.approach else found.scheduler
    rows = {
        "input": f"{own}; made in {found.make_s:.2f} s",
        "workers": f"{found.workers}, scheduled by {by}",
        "arrays": f"{found.arrays}, {found.pages} pages",
        "launch": " ".join(found.launch),
        "runs": _runs(found.runs_s),
        "rate": _rate(found.per_s, found.unit),
        "traffic": f"{traffic:.1f} GB/s or more" if traffic else "",
        "memory": f"{gib(found.peak_bytes)} at its peak",
        "threads": _threads(found.concurrency, draws) if found.concurrency else "",
        "lines": _lines(found.fills) if found.fills else "",
        "answer": "; ".join(
            ["right", *(f"{name.replace('_', ' ')} {_of(v)}" for name, v in found.figures.items())]
        ),
    }
    return _text(found.workload, rows)


def _lines(found: KernelFills) -> str:
    """Of the last run: the approach had the others to settle in."""
    counted = {name: lines for name, lines in found.runs[-1].items() if lines is not None}
    every = sum(counted.values())
    words = [
        f"{name.replace('_', ' ')} {lines / max(every, 1):.1%}" for name, lines in counted.items()
    ]
    return (
        f"{every / 1e6:,.2f} million {'simulated ' if found.source == 'simulated' else ''}in the "
        f"last run, on {plural(found.chiplets, 'chiplet')}: {', '.join(words)}"
    )


def _threads(found: Concurrency, draws: bool) -> str:
    """`2.0 on average, 3 created`, and the course of the runs."""
    if not found.running:
        return f"{found.threads_created} created; the runs were too short to count"
    most = max(found.running) or 1
    course = [_BARS[round(value / most * (len(_BARS) - 1))] for value in found.course(40)]
    words = f"{fmean(found.running):.1f} on average, {found.threads_created} created"
    return f"{words} {''.join(course)}" if draws else words


def _runs(seconds: tuple[float, ...]) -> str:
    return f"{', '.join(f'{one:.3f}' for one in seconds)} s; median {median(seconds):.3f} s"


def _rate(per_s: float, unit: str) -> str:
    return f"{per_s / 1e6:,.1f} million {unit} a second"


def _of(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) and abs(value) < 1e15 else f"{value:.6g}"


def _text(title: str, rows: Mapping[str, str]) -> str:
    lines = [title]
    for name, text in rows.items():
        lines += textwrap.wrap(
            text, _WIDTH, initial_indent=f"  {name:<8}", subsequent_indent=10 * " "
        )
    return "\n".join(lines) + "\n"
