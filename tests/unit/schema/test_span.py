"""Spans of time, as people write them."""

from __future__ import annotations

import pytest

from atoll.schema.span import parse_span, span


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("2h", 7200), ("90m", 5400), ("1.5 h", 5400), ("45s", 45), ("20", 1200), ("0.5", 30)],
)
def test_what_a_span_means(text: str, seconds: float) -> None:
    assert parse_span(text) == seconds


@pytest.mark.parametrize("text", ["", "h", "0", "0h", "-1", "nan", "inf", "1e3", "2 d", "1h30"])
def test_what_is_no_span(text: str) -> None:
    with pytest.raises(ValueError, match="such as 2h"):
        parse_span(text)


def test_how_a_span_is_shown() -> None:
    shown = [span(seconds) for seconds in (45, 99, 130, 720, 5990, 12600)]
    assert shown == ["45 s", "99 s", "2.2 min", "12 min", "100 min", "3.5 h"]
