"""A table of text, which every format draws in its own way."""

from __future__ import annotations

from typing import NamedTuple

Row = tuple[str, ...]


class Table(NamedTuple):
    title: str
    columns: Row
    rows: list[Row]
