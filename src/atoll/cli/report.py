"""`atoll report`: turn bench results into HTML, Markdown, CSV or JSON."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from atoll.bench.results import read_results
from atoll.report.render import FORMATS, render
from atoll.store.files import write_atomic


@click.command(epilog="Example: atoll report results.jsonl -o report.html")
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
def command(results: Path, output: Path | None, kind: str | None) -> None:
    """Turn RESULTS, a file that 'atoll bench' wrote, into a report.

    html is one self-contained page with the machine, the plans, the figures and their
    intervals; md has the same in words and tables; csv has every single measurement; json the
    summary for programs. A bench that still runs, or was stopped, can be reported too.
    """
    text = render(read_results(results), kind or _by_ending(output))
    if output is None:
        sys.stdout.write(text)
        return
    write_atomic(output, text)
    print(output)


def _by_ending(output: Path | None) -> str:
    ending = output.suffix.lstrip(".") if output else ""
    return {"htm": "html", "markdown": "md"}.get(ending, ending if ending in FORMATS else "html")
