"""Numbers as text, the same in every report. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

from atoll.schema.profile import Figure
from atoll.schema.summary import Interval

Unit = Literal["ns", "GB/s"]


def number(value: float) -> str:
    """Three digits: '9.8', '22.7', '108', '7297'."""
    return f"{value:.3g}" if value < 999.5 or value >= 1e6 else f"{value:.0f}"


def figure(value: float, unit: Unit, *, settled: bool = True) -> str:
    """With '~' if it did not settle."""
    return f"{mark(settled)}{number(value)} {unit}"


def number_range(low: float, high: float, *, settled: bool = True) -> str:
    return f"{mark(settled)}{number(low)} to {number(high)}"


def mark(settled: bool) -> str:
    """What stands before a figure, wherever a report repeats it."""
    return "" if settled else "~"


def marked(value: Figure) -> str:
    """The figure, with '~' if it did not settle."""
    return mark(value.settled) + number(value.value)


def described(value: Figure, unit: Unit) -> str:
    """'96 ns, interval 95 to 97', for tooltips."""
    unsettled = "" if value.settled else ", did not settle"
    return f"{figure(value.value, unit)}, interval {number_range(value.low, value.high)}{unsettled}"


def tick_label(value: float) -> str:
    return f"{value:.4g}" if value < 1e6 else f"{value:.0e}"


def duration(seconds: float) -> str:
    """Three significant digits in the unit that suits: '1.23 s', '45.3 ms'."""
    value, unit = (seconds, "s") if seconds >= 1 else (seconds * 1e3, "ms")
    if value >= 99.95:
        return f"{value:.0f} {unit}"
    return f"{value:.1f} {unit}" if value >= 9.995 else f"{value:.2f} {unit}"


def time_tick(seconds: float, longest: float) -> str:
    return f"{seconds * 1e3:g} ms" if longest < 1 else f"{seconds:g} s"


def millions(lines: float) -> str:
    """Without the word: '0', '<0.01', '0.36', '12.3', '495'."""
    value = lines / 1e6
    if 0 < value < 0.005:
        return "<0.01"
    digits = 0 if value >= 99.95 or not value else 1 if value >= 9.995 else 2
    return f"{value:.{digits}f}"


def ratio(value: float, *, settled: bool = True) -> str:
    return f"{mark(settled)}{value:.2f}×"


def ratio_interval(interval: Interval | None) -> str:
    return f"{interval.low:.2f} to {interval.high:.2f}" if interval else "–"


def share_interval(interval: Interval | None) -> str:
    return f"{100 * interval.low:.0f} to {100 * interval.high:.0f} %" if interval else "–"


def moment(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%d %H:%M UTC")


def cut(words: str, most: int) -> str:
    """At most `most` characters, the last of them '…' if something is missing."""
    return words if len(words) <= most else f"{words[: most - 1]}…"
