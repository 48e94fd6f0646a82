"""A table of text, which every format draws in its own way."""

from __future__ import annotations

from typing import NamedTuple

Row = tuple[str, ...]


class Table(NamedTuple):
    title: str
    columns: Row
    rows: list[Row]


def without_blank_columns(table: Table) -> Table:
    """Without the columns that have '–' in every row."""
    kept = [at for at in range(len(table.columns)) if any(row[at] != "–" for row in table.rows)]

    def cut(row: Row) -> Row:
        return tuple(row[at] for at in kept)

    return Table(table.title, cut(table.columns), [cut(row) for row in table.rows])
