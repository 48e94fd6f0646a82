"""A bench as one HTML file, fit for a wiki or a mail. Pure.

First what a reader asks: is it faster, by how much, how certain is that; then the figures, the
machine and the placement on it, and the environment that the figures hold for.
"""

from __future__ import annotations

from collections.abc import Sequence

from atoll.bench.estimates import judged
from atoll.bench.spreads import Course
from atoll.report.bench import charts, fills, tables, verdicts
from atoll.report.bench.axis_chart import axis_charts
from atoll.report.bench.spread_chart import spread_charts
from atoll.report.machine.svg import machine_drawing, plan_drawing, plan_label
from atoll.report.machine.traffic import traffic_drawings
from atoll.report.numbers import duration, millions, moment, ratio_interval
from atoll.report.pages import page
from atoll.report.profile.findings import headline
from atoll.report.profile.pictures import core_pictures
from atoll.schema.profile import Profile
from atoll.schema.results import RunHeader
from atoll.schema.summary import BenchSummary, EntrantSummary, FillsSummary
from atoll.schema.text import plural


def html(
    header: RunHeader,
    summary: BenchSummary,
    profile: Profile | None = None,
    courses: Sequence[Course] = (),
) -> str:
    """The whole page.

    A profile of the machine adds its core-to-core maps; the courses of Atoll's scheduler add the
    chart of the spread over time.
    """
    colours = charts.entrant_colours(summary)
    engines = dict.fromkeys(entrant.engine for entrant in header.entrants)
    courses_of = {
        one.label: [course for course in courses if course.label == one.label]
        for one in summary.entrants
    }
    return page(
        "report.html.j2",
        s=summary,
        header=header,
        emulated=fills.emulated(summary),
        fills=fills,
        traffic=traffic_drawings(
            [(one.label, found.counts) for one, found in fills.counted(summary)]
        ),
        verdicts=verdicts,
        tables=tables,
        plural=plural,
        started=moment(summary.started_unix_s),
        cards=[]
        if summary.basis == "emulated"
        else [
            _card(entrant, compared=any(one.baseline for one in summary.entrants))
            for entrant in summary.entrants
        ],
        fill_cards=[_fill_card(summary, one, found) for one, found in fills.counted(summary)],
        colours=colours,
        speedups=charts.speedup_charts(summary),
        axes=[(axis, axis_charts(axis)) for axis in verdicts.shown_axes(summary)],
        times=[(engine, charts.times_charts(summary, engine)) for engine in engines],
        spreads=[
            (label, spread_charts(label, colours[label], own))
            for label, own in courses_of.items()
            if own
        ],
        changes=tables.change_table(courses),
        machine=machine_drawing(header.machine),
        profile=profile,
        headline=headline(profile) if profile else (),
        core_maps=core_pictures(profile) if profile else (),
        plans=[
            (entrant.label, plan_label(entrant.plan), plan_drawing(header.machine, entrant.plan))
            for entrant in header.entrants
            if entrant.plan
        ],
        environment=tables.bench_environment(summary),
    )


def _card(entrant: EntrantSummary, *, compared: bool) -> dict[str, str]:
    """The large figure of an entrant: its speed-up, or its time if there is no other entrant."""
    speedup = judged(entrant.speedups)
    whole = verdicts.times_of(entrant, "pass")
    time = "no whole pass" if entrant.blocks_done else "no block finished"
    if whole:
        pass_time = f"{duration(whole.median_s)}{' ⚑' if whole.outlier_blocks else ''}"
        time = f"whole pass {pass_time}"
    if not compared and whole:
        figure, kind, verdict = pass_time, "base", "whole pass"
        more = f"median of {plural(whole.blocks, 'block')}"
    elif entrant.baseline is None:
        figure, kind, verdict, more = "1×", "base", "baseline", time
    elif speedup is None:
        figure, kind, verdict, more = "–", "none", "not measured", time
    else:
        figure, verdict = verdicts.speedup_ratio(speedup), speedup.verdict
        kind = {"faster": "up", "slower": "down"}.get(verdict, "even")
        interval = f"{ratio_interval(speedup.interval)}, " if speedup.interval else ""
        more = f"{interval}{plural(speedup.blocks, 'block')}; {time}"
    return {
        "label": entrant.label,
        "figure": figure,
        "kind": kind,
        "verdict": verdict,
        "more": more,
    }


def _fill_card(
    summary: BenchSummary, entrant: EntrantSummary, found: FillsSummary
) -> dict[str, str]:
    """The large figure of simulated fills: lines from caches of other chiplets."""
    return {
        "label": entrant.label,
        "figure": millions(fills.elsewhere(found)),
        "ratio": fills.elsewhere_ratio(summary, entrant),
        "time": duration(found.simulated_s),
    }
