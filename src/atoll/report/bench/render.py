"""A results file in one of the formats of `atoll report`. Pure."""

from __future__ import annotations

from atoll.bench.analysis import summarise
from atoll.bench.results import Results
from atoll.bench.spreads import courses
from atoll.report.bench.markdown import markdown
from atoll.report.bench.measurements import csv_text
from atoll.report.bench.page import html
from atoll.schema.profile import Profile

FORMATS = ("html", "md", "csv", "json")


def render(results: Results, kind: str, profile: Profile | None = None) -> str:
    """`kind` is one of FORMATS; `profile` is of the same machine and goes into html only."""
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
