"""`atoll report`: turn bench results into HTML, Markdown, CSV or JSON."""

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
    help="Default: by the ending of -o, else html.",
)
@click.option(
    "--profile",
    "measured",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="In html, show from this profile of the same machine how its cores lie to each other.",
)
def command(results: Path, output: Path | None, kind: str | None, measured: Path | None) -> None:
    """Turn RESULTS, a file that 'atoll bench' wrote, into a report.

    html is one self-contained page with the machine, the plans, the figures and their
    intervals; md has the same in words and tables; csv has every single measurement; json the
    summary for programs. A bench that still runs, or was stopped, can be reported too.
    """
    kind = kind or _by_ending(output)
    if measured is not None and kind != "html":
        raise UsageError(f"--profile goes into html, and this is {kind}; leave one of them out")
    found = read_results(results)
    profile = _profile(measured, found.header) if measured is not None else None
    text = render(found, kind, profile)
    if output is None:
        sys.stdout.write(text)
        return
    write_atomic(output, text)
    print(output)


def _profile(path: Path, header: RunHeader) -> Profile:
    """The report says that all was measured on one machine, and shall be right."""
    profile = read(path)
    if profile.machine_id != header.machine_id:
        raise UsageError(
            f"{path}: is of another machine ({profile.machine_title}) than the results "
            f"({header.machine.title}); name one of that machine"
        )
    if profile.environment.hostname_hash != header.fingerprint.hostname_hash:
        raise UsageError(
            f"{path}: was measured on another host of the kind that the results are of; name one "
            "of that host"
        )
    if profile.emulated:
        raise UsageError(f"{path}: was measured on an emulated CPU, and its figures mean nothing")
    return profile


def _by_ending(output: Path | None) -> str:
    ending = output.suffix.lstrip(".") if output else ""
    return {"htm": "html", "markdown": "md"}.get(ending, ending if ending in FORMATS else "html")
