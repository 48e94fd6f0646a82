"""Spans of time for people: parsed and formatted."""

from __future__ import annotations

import re

_UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600}
_SPAN = re.compile(r"(\d{1,9}(?:\.\d{1,9})?) ?(s|min|m|h)?", re.ASCII)


def parse_span(text: str) -> float:
    """Seconds of '2h', '90m', '1.5 h', '45s'; a number without a unit is in minutes.

    Raises ValueError.
    """
    match = _SPAN.fullmatch(text.strip())
    if match is None or float(match[1]) == 0:
        raise ValueError(f"{text!r} is not a time such as 2h, 90m or 45s")
    return float(match[1]) * _UNITS[match[2] or "min"]


def span(seconds: float) -> str:
    """'45 s', '2.2 min', '12 min', '3.5 h'."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    if minutes < 100:
        return f"{minutes:.{0 if minutes >= 10 else 1}f} min"
    return f"{seconds / 3600:.1f} h"
