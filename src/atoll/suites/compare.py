"""Compares a result with the right answer, by type, ties and rounding. Pure.

- Whole numbers, dates, truth values and text must be equal; the blanks that pad a CHAR are ignored.
- A decimal that the engine rounded may differ by half a unit in its last place from an answer with
  more digits (avg of a decimal is a double in one engine, decimal(19,6) in another). If the answer
  has no more digits, it must be equal, unless the result has more digits than a double can hold
  (H2's averages have 12 places). Then it may differ by the rounding of a double, except for a whole
  number. If the type has no scale (numeric), a quotient is recognised by its number of digits, and
  may differ by the same amount.
- A float may differ by FLOAT_TOLERANCE of its value: the engine chooses the order of a sum.
- Rows must be in the order that the ORDER BY defines. Rows that are equal in it may come in any
  order. If a LIMIT cuts through such rows, any of them may be missing.
"""

from __future__ import annotations

import datetime
import itertools
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from atoll.engines.api import Column, QueryResult
from atoll.engines.sql.types import Kind, kind_of, scale_of
from atoll.suites.base import Answer

# A sum of n doubles may be off by n x 2^-53: 6e-10 for the 6 million rows of a lineitem at SF 1.
FLOAT_TOLERANCE = 1e-9
# The error of a double that stands for the exact value of a decimal.
_DOUBLE_NOISE = Decimal("1e-12")
# An average that was computed as a double has at least this many digits, except by chance. An exact
# sum and one division are less than two roundings away.
_DOUBLE_DIGITS = 15
_DOUBLE_ROUNDING = Decimal(2) ** -51
# The fewest digits of a quotient whose type has no scale (a server's NUMERIC_MIN_SIG_DIGITS).
_COMPUTED_DIGITS = 16
_SHOWN_ROWS = 3

Row = Sequence[Any]


@dataclass(frozen=True, slots=True)
class _Type:
    kind: Kind
    scale: int | None

    @property
    def exact(self) -> bool:
        return self.kind not in (Kind.FLOAT, Kind.DECIMAL)

    def read(self, value: Any, as_text: bool) -> Any:
        """The value in the form that `same` takes; a text that does not fit the type stays text."""
        if value is None or (as_text and value == "" and self.kind is not Kind.TEXT):
            return None
        try:
            if self.kind is Kind.TEXT:
                return str(value).rstrip(" ")
            if self.kind is Kind.DATE:
                return (
                    value
                    if isinstance(value, datetime.date)
                    else datetime.date.fromisoformat(str(value))
                )
            if self.kind is Kind.FLOAT:
                return float(value)
            if self.kind is Kind.TRUTH:
                return {"true": True, "false": False}[str(value).lower()]
            return Decimal(str(value))
        except (ValueError, KeyError, InvalidOperation):
            return str(value)

    def same(self, got: Any, want: Any) -> bool:
        if got is None or want is None:
            return got is want
        if self.kind is Kind.FLOAT and isinstance(got, float) and isinstance(want, float):
            return (math.isnan(got) and math.isnan(want)) or math.isclose(
                got, want, rel_tol=FLOAT_TOLERANCE
            )
        if self.kind is Kind.DECIMAL and isinstance(got, Decimal) and isinstance(want, Decimal):
            if not (got.is_finite() and want.is_finite()):
                return str(got) == str(want)  # a numeric may be NaN or Infinity
            return bool(abs(got - want) <= self._rounding(got, want))
        return bool(got == want)

    def _rounding(self, got: Decimal, want: Decimal) -> Decimal:
        wanted, noise = _places(want), abs(want) * _DOUBLE_NOISE
        if self.scale is not None:
            places = self.scale
            if 0 < wanted <= places and _may_be_double(want):
                return abs(want) * _DOUBLE_ROUNDING
        elif len(got.as_tuple().digits) >= _COMPUTED_DIGITS:
            places = _places(got)
            if wanted <= places:
                return noise
        else:
            return Decimal(0)
        return Decimal(5).scaleb(-places - 1) + noise if wanted > places else Decimal(0)


def _may_be_double(value: Decimal) -> bool:
    """Whether the value is the shortest form of a double with that many digits."""
    digits = len(value.normalize().as_tuple().digits)
    return digits >= _DOUBLE_DIGITS and Decimal(repr(float(value))) == value


def _places(value: Decimal) -> int:
    """The digits after the point; 0 for NaN and Infinity."""
    exponent = value.as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def plain(value: Any, type_name: str) -> str | None:
    """The same text for values of an engine's type that are equal: 1.0 and 1.00, 'a' and 'a '."""
    read = _Type(kind_of(type_name), None).read(value, False)
    if isinstance(read, Decimal) and read.is_finite():
        # Not normalize(), which rounds to 28 digits.
        text = f"{read:f}"
        return (text.rstrip("0").rstrip(".") if "." in text else text) if read else "0"
    return None if read is None else str(read)


def compare(result: QueryResult, answer: Answer) -> str | None:
    """None if the result is right, else one line that shows the rows that differ."""
    types = [_Type(kind_of(column.type), scale_of(column.type)) for column in result.columns]
    widths = {len(row) for row in answer.rows}
    if widths - {len(types)}:
        return f"{len(types)} columns, expected {widths.pop()}"
    if odd := {len(row) for row in result.rows} - {len(types)}:
        return f"a row of {odd.pop()} values under {len(types)} columns: a fault of the client"
    got = [
        tuple(type_.read(value, False) for value, type_ in zip(row, types, strict=True))
        for row in result.rows
    ]
    want = [
        tuple(type_.read(value, answer.as_text) for value, type_ in zip(row, types, strict=True))
        for row in answer.rows
    ]
    numbered = list(enumerate(got))
    if len(got) != len(want):
        unexpected, missing = _unmatched(numbered, want, types, range(len(types)))
        count = f"{len(got)} rows, expected {len(want)}"
        return f"{count}: {_describe(unexpected, missing, result.columns)}"
    unexpected, missing = [], []
    for start, end in _ties(want, answer, types):
        # At an open end the engine chooses the rows, but not their keys.
        decided = answer.order if answer.open_end and end == len(want) else range(len(types))
        more_unexpected, more_missing = _unmatched(
            numbered[start:end], want[start:end], types, decided
        )
        unexpected += more_unexpected
        missing += more_missing
    if not unexpected:
        return None
    return (
        f"{len(unexpected)} of {len(got)} rows differ: "
        f"{_describe(unexpected, missing, result.columns)}"
    )


def _ties(rows: Sequence[Row], answer: Answer, types: Sequence[_Type]) -> list[tuple[int, int]]:
    """Runs of rows that are equal in the ORDER BY, as (start, end)."""
    edges = [0]
    for place, (before, after) in enumerate(itertools.pairwise(rows), start=1):
        if answer.ties:
            tied = answer.ties[place - 1] == answer.ties[place]
        else:
            tied = all(types[key].same(before[key], after[key]) for key in answer.order)
        if not tied:
            edges.append(place)
    return list(itertools.pairwise([*edges, len(rows)]))


def _unmatched(
    got: Sequence[tuple[int, Row]],
    want: Sequence[Row],
    types: Sequence[_Type],
    columns: Sequence[int],
) -> tuple[list[tuple[int, Row]], list[Row]]:
    """The rows of either side that have no equal on the other side, whatever the order."""
    exact = [column for column in columns if types[column].exact]
    rough = [column for column in columns if not types[column].exact]
    buckets: dict[tuple[Any, ...], tuple[list[tuple[int, Row]], list[Row]]] = defaultdict(
        lambda: ([], [])
    )
    for numbered in got:
        buckets[tuple(numbered[1][column] for column in exact)][0].append(numbered)
    for row in want:
        buckets[tuple(row[column] for column in exact)][1].append(row)
    unexpected: list[tuple[int, Row]] = []
    missing: list[Row] = []
    for some_got, some_want in buckets.values():
        left = sorted(some_want, key=lambda row: _rank(row, rough))
        for numbered in sorted(some_got, key=lambda numbered: _rank(numbered[1], rough)):
            for place, row in enumerate(left):
                if all(types[column].same(numbered[1][column], row[column]) for column in rough):
                    del left[place]
                    break
            else:
                unexpected.append(numbered)
        missing += left
    return sorted(unexpected, key=lambda numbered: numbered[0]), missing


def _rank(row: Row, columns: Sequence[int]) -> tuple[tuple[bool, float], ...]:
    values = [row[column] for column in columns]
    return tuple(
        (value is None, float(value) if isinstance(value, float | Decimal) else 0.0)
        for value in values
    )


def _describe(
    unexpected: Sequence[tuple[int, Row]], missing: Sequence[Row], columns: Sequence[Column]
) -> str:
    parts = [f"row {place + 1} is {_show(row)}" for place, row in unexpected[:_SHOWN_ROWS]]
    parts += [f"expected {_show(row)}" for row in missing[:_SHOWN_ROWS]]
    names = ", ".join(column.name for column in columns)
    return f"{'; '.join(parts)} ({names})"


def _show(row: Row) -> str:
    return "(" + ", ".join("NULL" if value is None else str(value) for value in row) + ")"
