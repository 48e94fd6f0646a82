"""How many threads ran at each moment of a run, a line for each setting. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from atoll.experiments.ours import Ours
from atoll.report.experiment.tables import names
from atoll.report.svg.axes import linear_axis
from atoll.report.svg.elements import Picture
from atoll.report.svg.plot import Point, Series, plot
from atoll.schema.kernel import Concurrency
from atoll.schema.text import plural

_POINTS = 200  # of a line


def concurrency_charts(found: Sequence[Ours]) -> list[Picture]:
    """One for each of ours that counted threads, of its last block."""
    return [
        _chart(name, ours)
        for name, ours in zip(names(found), found, strict=True)
        if any(one.running for one in ours.threads.values())
    ]


def _chart(name: str, ours: Ours) -> Picture:
    counted = {label: one for label, one in ours.threads.items() if one.running}
    longest = max(len(one.running) * one.every_s for one in counted.values())
    most = max(1, *(max(one.running) for one in counted.values()))
    return plot(
        f"Threads that ran at a time, {name}",
        "of one run of each; means over equal parts of it",
        linear_axis("seconds", longest),
        linear_axis("threads", most),
        [_line(label, one) for label, one in counted.items()],
    )


def _line(label: str, one: Concurrency) -> Series:
    running = one.course(_POINTS)
    part_s = len(one.running) * one.every_s / len(running)
    created = plural(one.threads_created, "thread")
    tip = f"{fmean(one.running):.3g} on average, {created} created"
    return Series(
        f"{label} ({created})",
        [Point(at * part_s, value, value, value, True, tip) for at, value in enumerate(running)],
        dots=False,
        step=True,
    )
