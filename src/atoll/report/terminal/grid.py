"""Tables without frames, and renderables as text for standard output."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from atoll.report.numbers import cut
from atoll.report.table import Table as TextTable

_GAP = 2
_LEAST = 8  # characters of a word that is cut


def grid(*, header: str = "dim", gap: int = _GAP) -> Table:
    """A table without a frame; `header` is the style of its first line."""
    return Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style=header)


class Fitted(NamedTuple):
    """A table that fits the width: first headers break, then words are cut, never a number."""

    table: TextTable
    words: Sequence[str]  # columns of words; all others are numbers
    labels: Sequence[str]  # those of them that are cut at the beginning
    styles: Mapping[str, str]  # of cells
    breaking: Sequence[str] = ()  # columns of words that take several lines instead of being cut

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        widths = self._widths(options.max_width)
        shown = grid()
        for name, width in zip(self.table.columns, widths, strict=True):
            side: Literal["left", "right"] = "left" if name in self.words else "right"
            shown.add_column(name, width=width, justify=side, overflow="fold")
        for row in self.table.rows:
            shown.add_row(*map(self._cell, self.table.columns, row, widths))
        yield shown

    def _cell(self, column: str, cell: str, width: int) -> Text:
        style = self.styles.get(cell.removesuffix(" ⚑"), "")
        if column in self.labels and len(cell) > width:
            return Text(f"…{cell[1 - width :]}", style)
        if column in self.breaking:
            return Text(cell, style)
        return Text(cut(cell, width), style)

    def _widths(self, room: int) -> list[int]:
        columns = list(zip(self.table.columns, *self.table.rows, strict=True))
        widths = [max(map(len, column)) for column in columns]
        room -= _GAP * (len(widths) - 1)
        if sum(widths) <= room:
            return widths
        widths = [max(map(len, [*name.split(), *cells, ""])) for name, *cells in columns]
        words = [at for at, name in enumerate(self.table.columns) if name in self.words and name]
        while words and sum(widths) > room:
            longest = max(words, key=widths.__getitem__)
            if widths[longest] <= _LEAST:
                break
            widths[longest] -= 1
        return widths


def titled(title: str, table: RenderableType) -> Group:
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
