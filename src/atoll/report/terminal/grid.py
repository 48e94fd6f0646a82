"""Tables without frames, and renderables as text for standard output."""

from __future__ import annotations

import io

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text


def grid(*, header: str = "dim", gap: int = 2) -> Table:
    """A table without a frame; `header` is the style of its first line."""
    return Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style=header)


def titled(title: str, table: Table) -> Group:
    """The table below its title. A title of rich's own breaks at the table's width."""
    return Group(Text(title, style="bold"), table)


def printed(*parts: RenderableType, width: int, colour: bool) -> str:
    """Each part on lines of at most `width` columns, without trailing blanks."""
    out = io.StringIO()
    console = Console(
        file=out,
        width=width,
        force_terminal=colour,
        color_system="standard" if colour else None,
        highlight=False,
        markup=False,
        emoji=False,
    )
    for part in parts:
        console.print(part)
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())
