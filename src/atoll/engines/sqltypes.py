"""What an engine's column types mean, and how their values travel as JSON. Pure.

Engines name types differently ('int', 'integer', 'bigint', 'hugeint'); six kinds are enough
to carry values without loss and to compare answers: whole, decimal, float, date, text and
truth. A decimal travels as a string, so that no digit is lost; a float as a number, or as a
string where JSON has no number for it (nan, inf).
"""

from __future__ import annotations

import datetime
import math
import re
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
_DECIMAL = re.compile(r"(?:decimal|numeric)\(\s*\d+\s*,\s*(\d+)\s*\)")


def kind_of(type_name: str) -> Kind:
    """The kind of an engine's type; what is none of the others is text."""
    name = type_name.lower()
    if _WHOLE.fullmatch(name):
        return Kind.WHOLE
    if name.startswith(("decimal", "numeric")):
        return Kind.DECIMAL
    if name in _FLOAT:
        return Kind.FLOAT
    if name == "date":
        return Kind.DATE
    return Kind.TRUTH if name == "boolean" else Kind.TEXT


def scale_of(type_name: str) -> int | None:
    """Digits after the point of a decimal type; None for other types."""
    found = _DECIMAL.fullmatch(type_name.lower())
    return int(found[1]) if found else None


def to_json(value: Any, kind: Kind) -> Any:
    """`value` as JSON can hold it."""
    if value is None or kind in (Kind.WHOLE, Kind.TRUTH):
        return value
    if kind is Kind.FLOAT:
        return value if math.isfinite(value) else str(value)
    return value.isoformat() if isinstance(value, datetime.date) else str(value)


def from_json(value: Any, kind: Kind) -> Any:
    """The value that `to_json` was given. Raises ValueError, TypeError or ArithmeticError."""
    if value is None:
        return None
    if kind is Kind.DECIMAL:
        return Decimal(value)
    if kind is Kind.FLOAT:
        return float(value)
    if kind is Kind.DATE:
        return datetime.date.fromisoformat(value)
    return value
