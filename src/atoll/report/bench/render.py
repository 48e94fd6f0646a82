"""A results file in the format that is asked for; the one way into this package for reports."""

from __future__ import annotations

from atoll.bench.analysis import summarise
from atoll.bench.results import Results
from atoll.bench.spreads import courses
from atoll.report.bench.page import html
from atoll.report.bench.tables import csv_text, markdown
from atoll.schema.profile import Profile

FORMATS = ("html", "md", "csv", "json")


def render(results: Results, kind: str, profile: Profile | None = None) -> str:
    """`kind` is one of FORMATS; `profile` is of the same machine, and for html."""
    summary = summarise(results)
    match kind:
        case "html":
            return html(results.header, summary, profile, courses(results.lines))
        case "md":
            return markdown(summary)
        case "csv":
            return csv_text(results.header, results.lines, summary)
        case _:
            return summary.model_dump_json(indent=2) + "\n"
