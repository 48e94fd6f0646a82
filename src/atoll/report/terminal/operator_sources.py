"""What stands below the table of a graph: sums, notes, how its figures are known, and how few cores
they need. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator

from atoll.operators.reasons import bottleneck
from atoll.report.numbers import number
from atoll.report.terminal.lines import wrapped
from atoll.schema.operator_graph import Known, OperatorGraph, Source
from atoll.schema.size import percent
from atoll.schema.text import plural


def graph_text(graph: OperatorGraph, width: int) -> str:
    """What the whole graph is, what its figures leave out, and in which ways they are known."""
    at = f" at {number(graph.rate.value)} {graph.rate.unit}" if graph.rate else ""
    busy = number(sum(one.activity.duty.value for one in graph.operators if one.activity))
    figures = sorted(_figures(graph), key=lambda figure: _ORDER.index(figure[0]))
    lines = [
        f"{plural(len(graph.operators), 'operator')}, {plural(len(graph.edges), 'edge')}; "
        f"{busy} {'core' if busy == '1' else 'cores'} busy on average{at}",
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
    known = [(one, one.activity.duty.value) for one in graph.operators if one.activity]
    # What cannot be divided is alone on its core if it needs more than the core's share.
    shares = [duty if one.parallel else min(duty, 1 - headroom) for one, duty in known]
    cores = max(1, math.ceil(sum(shares) / (1 - headroom) - 1e-9))
    busy = sum(duty if one.parallel else min(duty, 1) for one, duty in known)
    words = "1 core is" if number(busy) == "1" else f"{number(busy)} cores are"
    lines = [
        f"needs at least {plural(cores, 'core')}: {words} busy, and {percent(headroom)} of each "
        "stays free",
        *(bottleneck(one.id, duty) for one, duty in known if duty > 1 and not one.parallel),
    ]
    if unknown := len(graph.operators) - len(known):
        lines.append(f"{plural(unknown, 'operator')} without a known duty: it may need more")
    if why_not:
        lines.append(
            f"Atoll cannot place the operators of {graph.engine}: {why_not}; "
            "'atoll operators plan', then 'apply -o' plan a deployment of that size"
        )
    return "\n".join(wrapped(line, width) for line in lines)
