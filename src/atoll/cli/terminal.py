"""Output to the terminal: its colours, characters and width; tables; warnings. Not a command.

Kept light for `atoll topo`, which does not import rich.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from atoll.host.caller import variable
from atoll.report.machine.text import Line, Style

if TYPE_CHECKING:
    from rich.console import RenderableType

    from atoll.schema.plan import Plan

_STYLES: dict[Style, dict[str, Any]] = {
    Style.PLAIN: {},
    Style.TITLE: {"bold": True},
    Style.LABEL: {"fg": "bright_black"},
    Style.ISLAND: {"fg": "yellow"},
    Style.LOOSE: {"fg": "bright_black"},
    Style.CORE: {"fg": "cyan"},
    Style.DIM: {"dim": True},
    Style.BUSY: {"fg": "bright_cyan", "bold": True},
    Style.DRIFT: {"fg": "red", "bold": True},
    Style.SELECTED: {"reverse": True},
}
_PICTURE = "╭■▣╌▀░█"


def has_colour() -> bool:
    plain = variable("NO_COLOR") or variable("TERM") in ("", "dumb")
    return sys.stdout.isatty() and not plain


def can_draw() -> bool:
    """Whether stdout's encoding has the characters of the pictures."""
    try:
        _PICTURE.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def coloured(line: Line) -> str:
    """A line of a picture, without trailing blanks."""
    return "".join(
        click.style(span.text, **_STYLES[span.style]) if _STYLES[span.style] else span.text
        for span in line
    ).rstrip()


def width(least: int = 40) -> int:
    """Columns to fill, at most 120, since longer lines are hard to read."""
    return max(least, min(shutil.get_terminal_size((80, 50)).columns, 120))


def show(content: RenderableType) -> None:
    from rich.console import Console

    console = Console(highlight=False, width=width(60))
    if has_colour():
        console.print(content)
        return
    with console.capture() as drawn:  # to remove trailing blanks
        console.print(content)
    print("\n".join(line.rstrip() for line in drawn.get().splitlines()))


def print_warnings(plan: Plan) -> None:
    for warning in plan.warnings:
        print(f"atoll: warning: {warning}", file=sys.stderr)


def print_changes(lines: Sequence[str], engine: str, base: str | None) -> None:
    """What Atoll changes in the user's configuration, in short, on stderr."""
    if not lines:
        return
    whole = shlex.join(["atoll", "render", engine, "--base", base or "", "--diff"])
    print("atoll: changes in your configuration, for placement:", file=sys.stderr)
    for line in lines:
        print(f"  {line}", file=sys.stderr)
    print(f"atoll: to list all of them, and what is added: {whole}", file=sys.stderr)


@contextmanager
def progress(doing: str) -> Iterator[Callable[[str], None]]:
    """Takes what is being done: one changing line on a terminal, one line each in a file."""
    from rich.console import Console
    from rich.markup import escape

    console = Console(file=sys.stderr, highlight=False)
    if not console.is_terminal:
        yield lambda line: print(line, file=sys.stderr, flush=True)
        return
    with console.status(doing) as status:
        yield lambda line: status.update(escape(line))
