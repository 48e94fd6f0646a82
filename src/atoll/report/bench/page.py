"""The report as one HTML file: no script, no network, light and dark, fit for a wiki or a mail.

What a reader asks comes first: did it pay, by how much, how sure; then the figures, the
machine and who sat where on it, and the environment that the figures hold for. The template
escapes all text; only the SVG made by this package goes in as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

import jinja2
from markupsafe import Markup

from atoll.bench.spreads import Course
from atoll.report import words
from atoll.report.bench import charts, tables
from atoll.report.bench.spread_chart import spread_chart
from atoll.report.machine.svg import machine_svg, plan_svg
from atoll.schema.profile import Profile
from atoll.schema.results import RunHeader
from atoll.schema.summary import BenchSummary, EntrantSummary
from atoll.schema.text import printable


def html(
    header: RunHeader,
    summary: BenchSummary,
    profile: Profile | None = None,
    courses: Sequence[Course] = (),
) -> str:
    """The whole page.

    With the machine's profile, how its cores lie to each other, too; with the courses of Atoll's
    scheduler, how they went.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("atoll.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    engines = dict.fromkeys(entrant.engine for entrant in header.entrants)
    colours = charts.entrant_colours(summary)
    return environment.get_template("report.html.j2").render(
        s=summary,
        header=header,
        words=words,
        title=words.title(summary),
        cards=[_card(entrant) for entrant in summary.entrants],
        colours=colours,
        speedups=charts.speedup_chart(summary),
        spreads=[
            (one, spread_chart(one.label, colours[one.label], mine))
            for one in summary.entrants
            if (mine := [course for course in courses if course.label == one.label])
        ],
        changes=tables.change_rows(courses),
        change_columns=tables.CHANGE_COLUMNS,
        times=[(engine, charts.times_chart(summary, engine)) for engine in engines],
        machine=Markup(machine_svg(header.machine)),
        profile=profile,
        measured=_measured(profile) if profile else (),
        plans=[
            (entrant, Markup(plan_svg(header.machine, entrant.plan)))
            for entrant in header.entrants
            if entrant.plan
        ],
        speedup_columns=tables.SPEEDUP_COLUMNS,
        speedup_rows=tables.speedup_rows(summary),
        time_columns=tables.TIME_COLUMNS,
        time_rows=tables.time_rows(summary),
        entrant_columns=tables.ENTRANT_COLUMNS,
        entrant_rows=tables.entrant_rows(summary),
        environment=words.fingerprint_rows(summary),
    )


def _measured(profile: Profile) -> tuple[list[str], list[Markup]]:
    """What the machine is, in words, and the pictures of its cores."""
    from atoll.report.profile.pictures import chapters
    from atoll.report.profile.words import headline
    from atoll.report.svg.picture import document

    cores = [one for found in chapters(profile) if found.title == "Cores" for one in found.pictures]
    return [printable(one) for one in headline(profile)], [
        document([one], one.name) for one in cores
    ]


def _card(entrant: EntrantSummary) -> dict[str, str]:
    """What is shown large for an entrant: its speed-up, or as a baseline its time."""
    found = words.speedup_of(entrant, "geomean")
    whole = words.times_of(entrant, "pass")
    time = f"whole pass {words.duration(whole.median_s)}" if whole else "no block done"
    if entrant.baseline is None:
        return {"label": entrant.label, "figure": "1×", "kind": "base", "say": "baseline",
                "more": time}  # fmt: skip
    if found is None:
        return {"label": entrant.label, "figure": "–", "kind": "none", "say": "not measured",
                "more": time}  # fmt: skip
    kinds = {"faster": "up", "slower": "down"}
    sure = f"{words.interval(found.interval)}, " if found.interval else ""
    return {
        "label": entrant.label,
        "figure": words.ratio(found.value),
        "kind": kinds.get(found.verdict, "even"),
        "say": found.verdict,
        "more": f"{sure}{words.plural(found.blocks, 'block')}; {time}",
    }
