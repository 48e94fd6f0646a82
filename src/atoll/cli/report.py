"""`atoll report`: turn results into HTML, Markdown, CSV or JSON."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from atoll.bench.results import read_results
from atoll.errors import UsageError
from atoll.probing.profiles import read
from atoll.report.bench.render import FORMATS, render
from atoll.schema.profile import Profile
from atoll.schema.results import RunHeader
from atoll.store.files import write_atomic


@click.command(
    epilog="Examples: atoll report results.jsonl -o report.html; "
    "atoll report results.jsonl --profile profile.json -o report.html"
)
@click.argument("results", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write to this file (default: standard output).",
)
@click.option(
    "--format",
    "kind",
    type=click.Choice(FORMATS),
    help="Format of the report (default: by the suffix of -o; on standard output html).",
)
@click.option(
    "--profile",
    "measured",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Also show the core-to-core maps of this profile of the same machine (html only).",
)
def command(results: Path, output: Path | None, kind: str | None, measured: Path | None) -> None:
    """Turn the file RESULTS of bench, decompose or replay into a report.

    html is one self-contained page with the machine, the plans, the figures and their intervals.
    md has the same as text and tables. csv has every measurement. json is the summary for
    programs. RESULTS may be the file of a run that was stopped or is still running.
    """
    kind = kind or _by_suffix(output)
    if measured is not None and kind != "html":
        raise UsageError(f"--profile needs the format html, not {kind}; leave out one of them")
    found = read_results(results)
    profile = _profile(measured, found.header) if measured is not None else None
    text = render(found, kind, profile)
    if output is None:
        sys.stdout.write(text)
        return
    write_atomic(output, text)
    print(output)


def _profile(path: Path, header: RunHeader) -> Profile:
    """The profile for a report. Raises UsageError if it is not of the machine of the results."""
    profile = read(path)
    if profile.machine_id != header.machine_id:
        raise UsageError(
            f"{path}: is the profile of another machine ({profile.machine_title}) than the results "
            f"({header.machine.title}); name a profile of that machine"
        )
    if profile.environment.hostname_hash != header.fingerprint.hostname_hash:
        raise UsageError(
            f"{path}: was measured on another host of the same kind; name a profile of the host of "
            "the results"
        )
    if profile.emulated:
        raise UsageError(f"{path}: was measured on an emulated CPU, so its figures mean nothing")
    return profile


def _by_suffix(output: Path | None) -> str:
    """Raises UsageError if the suffix is not that of a format."""
    if output is None:
        return "html"
    suffix = output.suffix.lstrip(".").lower()
    kind = {"htm": "html", "markdown": "md"}.get(suffix, suffix)
    if kind not in FORMATS:
        raise UsageError(
            f"{output}: its suffix names no format; use {', '.join(f'.{one}' for one in FORMATS)}, "
            "or choose the format with --format"
        )
    return kind
