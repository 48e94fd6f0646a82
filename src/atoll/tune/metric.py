"""What is to become better, and how it is read from one run. Pure.

A run's cost is a positive number, the smaller the better; a metric of which more is better is
inverted. So gains are ratios of costs, whatever the metric is.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from atoll.errors import UsageError

_MORE = {"throughput": True, "p99": False, "time": False, "rss": False}


@dataclass(frozen=True, slots=True)
class Metric:
    name: str  # 'time', 'rss', or as the user gave it
    pattern: re.Pattern[str] | None = None
    more_is_better: bool = False

    @property
    def words(self) -> str:
        """For people."""
        if self.pattern is None:
            return {"time": "time", "rss": "peak memory"}[self.name]
        better = "more" if self.more_is_better else "less"
        return f"{self.name} ({better} is better)"

    def cost(self, *, seconds: float, rss_bytes: int, output: str) -> float:
        """Raises ValueError if the output has no such number."""
        if self.pattern is None:
            return seconds if self.name == "time" else float(rss_bytes)
        found = list(self.pattern.finditer(output))
        if not found:
            raise ValueError(f"its output has nothing that matches {self.pattern.pattern!r}")
        text = found[-1][1] or ""
        try:
            value = float(text.replace(",", ""))
        except ValueError:
            raise ValueError(f"{text!r} in its output is not a number") from None
        if not math.isfinite(value) or value <= 0:
            raise ValueError(f"{text!r} in its output is not a positive number")
        return 1 / value if self.more_is_better else value


def parse_metric(text: str) -> Metric:
    """'time', 'rss', 'REGEX' (more is better), or 'NAME=REGEX' with NAME throughput, p99, time or
    rss, which says whether more is better. Raises UsageError."""
    if text in ("time", "rss"):
        return Metric(text)
    name, sign, pattern = text.partition("=")
    if name in _MORE and sign:
        return Metric(text, _compiled(pattern, text), _MORE[name])
    if text in _MORE:
        raise UsageError(
            f"--metric {text}: only the command's output says what it is; give a regular "
            f"expression with the number in its first group: --metric '{text}=NAME: ([0-9.]+)'"
        )
    return Metric(text, _compiled(text, text), more_is_better=True)


def _compiled(pattern: str, text: str) -> re.Pattern[str]:
    try:
        made = re.compile(pattern)
    except re.error as fault:
        raise UsageError(f"--metric {text}: not a regular expression: {fault}") from None
    if made.groups < 1:
        raise UsageError(
            f"--metric {text}: needs a group around the number, such as 'tps = ([0-9.]+)'"
        )
    return made
