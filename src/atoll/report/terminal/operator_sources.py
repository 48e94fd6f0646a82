"""What stands below the table of a graph: sums, notes, how its figures are known, and how few cores
they need. Pure."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator

from atoll.report.numbers import number
from atoll.schema.operator_graph import Known, OperatorGraph, Source
from atoll.schema.size import percent
from atoll.schema.text import plural, printable


def graph_text(graph: OperatorGraph, width: int) -> str:
    """What the whole graph is, what its figures leave out, and in which ways they are known."""
    at = f" at {number(graph.rate.value)} {graph.rate.unit}" if graph.rate else ""
    figures = sorted(_figures(graph), key=lambda figure: _ORDER.index(figure[0]))
    lines = [
        f"{plural(len(graph.operators), 'operator')}, {plural(len(graph.edges), 'edge')}; "
        f"{number(sum(_duties(graph)))} cores busy on average{at}",
        *(f"note: {note}" for note in graph.notes),
    ]
    if any(known.source is Source.ESTIMATED for _, known in figures):
        lines.append("~ estimated from other figures")
    lines += dict.fromkeys(
        f"{what}: {known.source.value}" + (f" ({known.how})" if known.how else "")
        for what, known in figures
    )
    return "\n".join(wrapped(line, width) for line in lines)


_ORDER = ("duty", "peak", "GB/s", "bytes on edges")


def _figures(graph: OperatorGraph) -> Iterator[tuple[str, Known]]:
    for one in graph.operators:
        if one.activity is not None:
            yield "duty", one.activity.duty
            for what, known in (("peak", one.activity.peak), ("GB/s", one.activity.memory_gbs)):
                if known is not None:
                    yield what, known
    for edge in graph.edges:
        if edge.bytes_per_s is not None:
            yield "bytes on edges", edge.bytes_per_s


def answer_text(graph: OperatorGraph, headroom: float, why_not: str, width: int) -> str:
    """With how few cores the operators do, and what to do with that.

    `why_not`: why an engine's operators cannot be placed; empty if they can.
    """
    duties = _duties(graph)
    cores = max(1, math.ceil(sum(duties) / (1 - headroom) - 1e-9))
    lines = [
        f"needs at least {plural(cores, 'core')}: {number(sum(duties))} cores are busy, and "
        f"{percent(headroom)} of each stays free"
    ]
    if unknown := len(graph.operators) - len(duties):
        lines.append(f"{plural(unknown, 'operator')} without a known duty: it may need more")
    if why_not:
        lines.append(
            f"Atoll cannot place the operators of {graph.engine}: {why_not}; "
            "'atoll operators plan', then 'apply -o' plan a deployment of that size"
        )
    return "\n".join(wrapped(line, width) for line in lines)


def _duties(graph: OperatorGraph) -> list[float]:
    return [one.activity.duty.value for one in graph.operators if one.activity]


def wrapped(line: str, width: int) -> str:
    """The line on several of at most that width, printable."""
    return textwrap.fill(printable(line), width, subsequent_indent="  ", break_on_hyphens=False)
