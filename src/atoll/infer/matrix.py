"""Parses a matrix of core-to-core figures from text, and merges both homes into one figure.

Reads the output of common tools: cells separated by comma, semicolon, tab or blanks, with or
without a row and a column of labels, the whole square or one triangle, a byte-order mark, CRLF; or
a list of pairs (atoll.infer.pair_list). A cell that is blank, `nan` or `-` is missing. The result
is an array of positive numbers and NaN, or a UsageError of one line that names the row and the
column as an editor counts them.
"""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from atoll.errors import UsageError
from atoll.infer.pair_list import Listed, listed_pairs

if TYPE_CHECKING:
    from atoll.infer.hierarchy import Floats

_MISSING = frozenset({"", "-", "--", ".", "nan", "na", "n/a", "none", "null", "x"})
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE | re.ASCII)
_WITH_UNIT = re.compile(_NUMBER.pattern + r"\s*[a-zµ%][\w/]*", re.IGNORECASE)
_LARGEST = 4096  # PUs; more is a mistake, and would take minutes
_SHARE_NEEDED = 0.5  # of all pairs; with fewer, often only one pair supports a group of three
# Homes that differ by more were not measured alike: one was disturbed, or the line's home matters.
_HOMES_DIFFER = math.log(1.5)


@dataclass(frozen=True)
class _Row:
    line: int  # as an editor counts
    cells: list[str]


def parse_matrix(text: str, *, where: str) -> Floats:
    """The square matrix in `text`, with NaN for missing cells; `where` names it in errors.

    Raises UsageError if it contains no numbers, is not square, has a cell that is not a positive
    number, has only one PU, or has too few figures.
    """
    rows = _rows(text)
    if not any(_is_number(cell) for row in rows for cell in row.cells):
        for row in rows:
            for column, cell in enumerate(row.cells, start=1):
                if _WITH_UNIT.fullmatch(cell):
                    _value(cell, f"{where}: line {row.line}, column {column}")
        raise UsageError(
            f"{where}: contains no numbers; expected a square matrix, one row per line"
        )
    if pairs := listed_pairs([row.cells for row in rows]):
        return _of_pairs(pairs, [row.line for row in rows], where)
    rows, first_column = _without_labels(rows)
    size = _size(rows, where)
    matrix = np.full((size, size), np.nan)
    for i, row in enumerate(rows):
        for j, cell in enumerate(row.cells):
            matrix[i, j] = _value(cell, f"{where}: line {row.line}, column {j + 1 + first_column}")
    np.fill_diagonal(matrix, np.nan)  # a PU with itself means nothing; some tools write 0 there
    _blank_empty_triangle(matrix)
    bad = np.argwhere(~(np.isnan(matrix) | ((matrix > 0) & np.isfinite(matrix))))
    if len(bad):
        i, j = (int(k) for k in bad[0])
        raise UsageError(
            f"{where}: line {rows[i].line}, column {j + 1 + first_column}: "
            f"{matrix[i, j]:g} is not a positive number"
        )
    _check_enough(matrix, where)
    return matrix


def _of_pairs(pairs: list[Listed], lines: list[int], where: str) -> Floats:
    pus = sorted({pu for pair in pairs for pu in (pair.one, pair.other)})
    if len(pus) > _LARGEST:
        raise UsageError(f"{where}: {len(pus)} PUs; the limit is {_LARGEST}")
    index = {pu: at for at, pu in enumerate(pus)}
    matrix = np.full((len(pus), len(pus)), np.nan)
    seen = set()
    for line, one, other, cell in pairs:
        place = f"{where}: line {lines[line]}"
        if (one, other) in seen:
            raise UsageError(f"{place}: the pair {one},{other} is listed twice")
        seen.add((one, other))
        value = _value(cell, f"{place}, column 3")
        if one == other:
            continue  # a PU with itself means nothing
        if value <= 0 or math.isinf(value):
            raise UsageError(f"{place}, column 3: {value:g} is not a positive number")
        matrix[index[one], index[other]] = value
    if len(pus) < 2:
        raise UsageError(f"{where}: one PU only; the list needs at least two")
    _check_enough(matrix, where)
    return matrix


def log_cost(matrix: Floats) -> Floats:
    """Both homes of each pair merged, as logarithms; symmetric, NaN on the diagonal.

    Uses the geometric mean, so that the noise of the two homes averages out. If they differ by more
    than half, it uses the lower one, because a disturbance only slows a pair down. For bandwidths
    pass 1/bandwidth, so that small means near.
    """
    logs = np.log(matrix)
    there, back = logs, logs.T
    both = (there + back) / 2
    both = np.where(np.abs(there - back) > _HOMES_DIFFER, np.fmin(there, back), both)
    both = np.where(np.isnan(both), np.fmin(there, back), both)
    np.fill_diagonal(both, np.nan)
    return both


def count_unequal_homes(matrix: Floats) -> int:
    """The pairs whose homes differ by so much that only the nearer one counts."""
    logs = np.log(matrix)
    return int((np.abs(logs - logs.T) > _HOMES_DIFFER).sum()) // 2


def _rows(text: str) -> list[_Row]:
    lines = text.lstrip("\ufeff").splitlines()
    kept = [
        (number, line)
        for number, line in enumerate(lines, start=1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    body = "\n".join(line for _, line in kept)
    delimiter = next((mark for mark in ";\t," if mark in body), None)
    decimal_comma = delimiter in (";", "\t") and "," in body and "." not in body
    rows = []
    for number, line in kept:
        cells = [cell.strip().strip("\"'").strip() for cell in line.split(delimiter)]
        if decimal_comma:
            cells = [cell.replace(",", ".") for cell in cells]
        rows.append(_Row(number, cells))
    return _without_trailing_mark(rows)


def _without_trailing_mark(rows: list[_Row]) -> list[_Row]:
    """Removes the blank last column of writers that end every line with the delimiter."""
    wide = max((len(row.cells) for row in rows), default=0)
    full = [row for row in rows if len(row.cells) == wide]
    if len(full) == len(rows) == wide - 1 and all(row.cells[-1] == "" for row in rows):
        return [_Row(row.line, row.cells[:-1]) for row in rows]
    return rows


def _without_labels(rows: list[_Row]) -> tuple[list[_Row], int]:
    """The rows without a header line and a label column, and the number of columns removed."""
    head, body = rows[0], rows[1:]
    if body and _numbered_both_ways(rows):
        return [_Row(row.line, row.cells[1:]) for row in body], 1
    if body and all(not _is_number(cell) for cell in head.cells) and not _all_missing(head):
        rows = body  # only words
    elif body and len(head.cells) > 1 and _is_word(head.cells[0]) and _consecutive(head.cells[1:]):
        rows = body  # cpu,0,1,2
    elif len(body) == len(head.cells) and _consecutive(head.cells) and _is_head(head, body):
        rows = body  # 0,1,2 over a square, with or without a label before each line
    headless = rows is body
    wide = max(len(row.cells) for row in rows)
    firsts = [row.cells[0] for row in rows]
    words = sum(_is_word(cell) for cell in firsts)
    labelled = (words and words == len(firsts)) or (headless and wide == len(rows) + 1)
    if labelled:
        return [_Row(row.line, row.cells[1:]) for row in rows], 1
    return rows, 0


def _numbered_both_ways(rows: list[_Row]) -> bool:
    """Whether the corner is blank or a word, and top and side have the same rising whole
    numbers."""
    top = rows[0].cells[1:]
    side = [row.cells[0] for row in rows[1:]]
    return not _is_number(rows[0].cells[0]) and top == side and _consecutive(top)


def _consecutive(cells: list[str]) -> bool:
    """Whether these are PU numbers: whole and rising, starting at 0 or without a gap."""
    if not cells or not all(re.fullmatch(r"\d{1,6}", cell, re.ASCII) for cell in cells):
        return False
    numbers = [int(cell) for cell in cells]
    steps = {b - a for a, b in itertools.pairwise(numbers)}
    return all(step > 0 for step in steps) and (numbers[0] == 0 or steps == {1})


def _is_head(head: _Row, body: list[_Row]) -> bool:
    """Whether numbers head a square, rather than being the first of too many lines of figures: a
    figure is not 0, labelled lines are longer, and a PU with itself has no figure."""
    return (
        head.cells[0] == "0"
        or any(len(row.cells) > len(head.cells) for row in body)
        or not any(
            _is_positive(cell) for i, row in enumerate(body) for cell in row.cells[i : i + 1]
        )
    )


def _is_number(cell: str) -> bool:
    return _NUMBER.fullmatch(cell) is not None


def _is_positive(cell: str) -> bool:
    return _is_number(cell) and float(cell) > 0


def _is_word(cell: str) -> bool:
    return not _is_number(cell) and cell.lower() not in _MISSING


def _all_missing(row: _Row) -> bool:
    return all(cell.lower() in _MISSING for cell in row.cells)


def _size(rows: list[_Row], where: str) -> int:
    size = len(rows)
    if size > _LARGEST:
        raise UsageError(f"{where}: {size} rows; the limit is {_LARGEST} PUs")
    widths = [len(row.cells) for row in rows]
    lower = all(w <= i + 1 for i, w in enumerate(widths)) and widths[-1] >= size - 1
    if size == 1 and widths[0] == 1:
        raise UsageError(f"{where}: one figure only; the matrix needs at least two PUs")
    if widths == list(range(1, size + 1)) and all(_is_positive(row.cells[-1]) for row in rows):
        # A lower triangle without the diagonal, whose empty first line was dropped.
        rows.insert(0, _Row(rows[0].line, []))
        return size + 1
    if lower:
        return size
    for row, width in zip(rows, widths, strict=True):
        if width != size:
            raise UsageError(
                f"{where}: not square: {size} rows, but {width} columns in line {row.line}"
            )
    return size


def _value(cell: str, place: str) -> float:
    if cell.lower() in _MISSING:
        return math.nan
    if not _is_number(cell):
        shown = cell if len(cell) <= 20 else cell[:17] + "..."
        if _WITH_UNIT.fullmatch(cell):
            raise UsageError(f"{place}: {shown!r} is not a number; leave units out")
        raise UsageError(f"{place}: {shown!r} is not a positive number")
    return float(cell)


def _blank_empty_triangle(matrix: Floats) -> None:
    """Blanks a triangle of zeros: it was not measured."""
    upper = np.triu(np.ones(matrix.shape, dtype=bool), 1)
    for half, other in ((upper, upper.T), (upper.T, upper)):
        if len(matrix) > 1 and np.all(matrix[half] == 0) and np.any(matrix[other] > 0):
            matrix[half] = np.nan


def _check_enough(matrix: Floats, where: str) -> None:
    size = len(matrix)
    known = ~np.isnan(np.fmin(matrix, matrix.T))
    lonely = np.flatnonzero(~known.any(axis=1))
    if len(lonely):
        raise UsageError(f"{where}: no figure between row {int(lonely[0]) + 1} and any other")
    share = float(known.sum()) / (size * (size - 1))
    if share < _SHARE_NEEDED:
        raise UsageError(
            f"{where}: only {share:.0%} of the pairs have figures; {_SHARE_NEEDED:.0%} are needed"
        )
