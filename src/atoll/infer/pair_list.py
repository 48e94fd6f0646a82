"""Recognises a list of pairs (`a,b,ns`, one pair per line), the long form of a matrix.

Three columns may also be a 3 x 3 matrix. A list names two PUs as whole numbers in each line, and
in a short list these are all pairs of its PUs; the rows of a matrix are not. More than four lines
of three cells are no matrix of any kind.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

_COLUMNS = 3
_SURELY_A_LIST = 5  # lines: a head and three rows are a matrix


class Listed(NamedTuple):
    line: int  # index into the rows
    one: int
    other: int
    cell: str


def listed_pairs(rows: Sequence[Sequence[str]]) -> list[Listed] | None:
    """The pairs, if these cells are such a list, with or without a line of names above."""
    start = 1 if len(rows) > 1 and not any(map(_is_pu, rows[0])) else 0
    body = rows[start:]
    if not body or any(len(cells) != _COLUMNS or not all(map(_is_pu, cells[:2])) for cells in body):
        return None
    pairs = [
        Listed(line, int(cells[0]), int(cells[1]), cells[2])
        for line, cells in enumerate(body, start=start)
    ]
    if len(body) >= _SURELY_A_LIST:
        return pairs
    pus = {pu for pair in pairs for pu in (pair.one, pair.other)}
    different = {frozenset((pair.one, pair.other)) for pair in pairs if pair.one != pair.other}
    return pairs if different and 2 * len(different) == len(pus) * (len(pus) - 1) else None


def _is_pu(cell: str) -> bool:
    return re.fullmatch(r"\d{1,6}", cell, re.ASCII) is not None
