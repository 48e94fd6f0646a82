"""`atoll profile`: show the profile of a machine, or compare two profiles."""

from __future__ import annotations

from pathlib import Path

import click

from atoll.cli import terminal
from atoll.errors import UsageError
from atoll.probing.profiles import find, read
from atoll.schema.profile import Profile

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.group(
    epilog="Examples: atoll profile show; atoll profile show p.json --html p.html; "
    "atoll profile compare bios-a.json bios-b.json"
)
def command() -> None:
    """Show what 'atoll measure' measured on a machine, or compare two machines."""


@command.command("show", epilog="Example: atoll profile show milan.json --html milan.html")
@click.argument("file", type=_FILE, required=False)
@click.option("--json", "as_json", is_flag=True, help="Print the profile as JSON.")
@click.option("--svg", type=_FILE, metavar="FILE", help="Write all charts as one SVG.")
@click.option(
    "--html", type=_FILE, metavar="FILE", help="Write charts and figures as one HTML page."
)
def show(file: Path | None, as_json: bool, svg: Path | None, html: Path | None) -> None:
    """Describe and draw the machine a profile was measured on.

    FILE is a profile that 'atoll measure' wrote (default: the newest one saved for this
    machine). With --svg or --html, only the names of the files are printed.
    """
    profile = read(file) if file else _own()
    written: list[tuple[Path, str]] = []
    if svg is not None:
        from atoll.report.profile.pictures import profile_svg

        written.append((svg, profile_svg(profile)))
    if html is not None:
        from atoll.report.profile.page import profile_html

        written.append((html, profile_html(profile)))
    _write(written)
    if as_json:
        click.echo(profile.model_dump_json(indent=1))
    elif not written:
        from atoll.report.profile.text import profile_text

        terminal.show(
            profile_text(profile, colour=terminal.has_colour(), ascii_only=not terminal.can_draw())
        )


@command.command(
    "compare",
    short_help="Compare two profiles.",
    epilog="Example: atoll profile compare nps1.json nps4.json",
)
@click.argument("a", type=_FILE)
@click.argument("b", type=_FILE)
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON.")
@click.option("--svg", type=_FILE, metavar="FILE", help="Write the charts as one SVG.")
@click.option(
    "--html", type=_FILE, metavar="FILE", help="Write charts and figures as one HTML page."
)
def compare(a: Path, b: Path, as_json: bool, svg: Path | None, html: Path | None) -> None:
    """Compare the profiles A and B of two machines, or of one machine with two settings.

    Ratios are B over A. A difference counts only if it is larger than both intervals.
    """
    from atoll.infer.compare import compare_profiles

    first, second = read(a), read(b)
    if first.emulated is not second.emulated:
        raise UsageError(
            f"{a if first.emulated else b}: was measured on an emulated CPU and cannot be compared "
            "with a profile of a real one"
        )
    found = compare_profiles(first, second)
    written: list[tuple[Path, str]] = []
    if svg is not None:
        from atoll.report.profile.compare import compare_svg

        written.append((svg, compare_svg(found, first, second)))
    if html is not None:
        from atoll.report.profile.compare import compare_html

        written.append((html, compare_html(found, first, second)))
    _write(written)
    if as_json:
        click.echo(found.model_dump_json(indent=1))
    elif not written:
        from atoll.report.profile.compare import compare_text

        terminal.show(compare_text(found))


def _own() -> Profile:
    from atoll.host.topology import read_machine

    profile = find(read_machine(None, None))
    if profile is None:
        raise UsageError(
            "there is no saved profile of this machine; run 'atoll measure', or name a file"
        )
    return profile


def _write(written: list[tuple[Path, str]]) -> None:
    from atoll.store.files import write_atomic

    for path, content in written:
        write_atomic(path, content)
        click.echo(path, err=True)
