"""The kinds of an engine's column types, and their values as JSON. Pure.

Engines name types differently ('int', 'integer', 'bigint', 'hugeint'). Six kinds are enough to
send values without loss and to compare answers: whole, decimal, float, date, text and truth. A
decimal is sent as a string, so that no digit is lost. A float is sent as a number, or as a string
if JSON has no number for it (nan, inf).
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Sequence
from decimal import Decimal
from enum import StrEnum
from typing import Any


class Kind(StrEnum):
    WHOLE = "whole"
    DECIMAL = "decimal"
    FLOAT = "float"
    DATE = "date"
    TRUTH = "truth"
    TEXT = "text"


_WHOLE = re.compile(r"u?(tiny|small|big|huge)?int(eger)?|byte|short|long")
_FLOAT = frozenset({"double", "float", "real", "double precision"})
_EXACT = re.compile(r"(?:decimal|numeric)(?:\(.*\))?")
_DECIMAL = re.compile(r"(?:decimal|numeric)\(\s*\d+\s*,\s*(\d+)\s*\)")


def kind_of(type_name: str) -> Kind:
    """The kind of an engine's type. Any other type is text."""
    name = type_name.lower()
    if _WHOLE.fullmatch(name):
        return Kind.WHOLE
    if _EXACT.fullmatch(name):
        return Kind.DECIMAL
    if name in _FLOAT:
        return Kind.FLOAT
    if name == "date":
        return Kind.DATE
    return Kind.TRUTH if name == "boolean" else Kind.TEXT


def scale_of(type_name: str) -> int | None:
    """The digits after the point of a decimal type, None for other types."""
    found = _DECIMAL.fullmatch(type_name.lower())
    return int(found[1]) if found else None


def column_to_json(values: Sequence[Any], kind: Kind) -> Sequence[Any]:
    """The values of a column for JSON: dates as ordinals, or as text in a column with nulls.

    One call converts a whole column if all its values have one type. For 10,000 rows of 4 columns
    that takes a tenth of the time of value by value.
    """
    types = set(map(type, values))
    if kind in (Kind.WHOLE, Kind.TRUTH) or types <= {str}:
        return values
    if types == {Decimal}:
        return list(map(str, values))
    if types == {datetime.date}:
        return list(map(datetime.date.toordinal, values))  # text takes seven times as long
    return [None if value is None else _to_json(value, kind) for value in values]


def _to_json(value: Any, kind: Kind) -> Any:
    if kind is Kind.FLOAT:
        return value if math.isfinite(value) else str(value)
    return value.isoformat() if isinstance(value, datetime.date) else str(value)


def column_from_json(values: Sequence[Any], kind: Kind) -> Sequence[Any]:
    """The values that `column_to_json` received. Raises what `from_json` raises."""
    if kind in (Kind.WHOLE, Kind.TRUTH, Kind.TEXT):
        return values
    types = set(map(type, values))
    if kind is Kind.DECIMAL and types == {str}:
        return list(map(Decimal, values))
    if kind is Kind.DATE and types == {int}:
        return list(map(datetime.date.fromordinal, values))
    return [from_json(value, kind) for value in values]


def from_json(value: Any, kind: Kind) -> Any:
    """The value that was sent. Raises ValueError, TypeError or ArithmeticError."""
    if value is None:
        return None
    if kind is Kind.DECIMAL:
        return Decimal(value)
    if kind is Kind.FLOAT:
        return float(value)
    if kind is Kind.DATE:
        return datetime.date.fromisoformat(value)
    return value
