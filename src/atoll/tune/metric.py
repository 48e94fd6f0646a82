"""What is to become better, and how it is read from one run. Pure.

A run's cost is a positive number, the smaller the better; a metric of which more is better is
inverted. So gains are ratios of costs, whatever the metric is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from atoll.errors import UsageError
from atoll.schema.text import plural
from atoll.stats.tails import percentile

_MORE = {"throughput": True, "p99": False, "time": False, "rss": False}
_TAIL = 99


@dataclass(frozen=True, slots=True)
class Ran:
    """A run that ended well: of a command, or a pass of queries on an engine."""

    seconds: float
    cpu_s: float | None = None  # None, as the others: not known of an engine
    rss_bytes: int | None = None
    digest: str = "checked"  # of a command's stdout; of queries the answers were checked
    output: str = ""  # the end of its stdout, then of its stderr
    latencies_s: Sequence[float] = ()  # of the queries
    idle_share: float | None = None  # of the machine just before a pass


@dataclass(frozen=True, slots=True)
class Metric:
    name: str  # 'time', 'rss', 'throughput', 'p99', or as the user gave it
    words: str  # for people
    pattern: re.Pattern[str] | None = None
    more_is_better: bool = False

    def cost(self, ran: Ran) -> float:
        """Raises ValueError if the run has no such number."""
        if self.pattern is not None:
            return self._read(ran.output, self.pattern)
        if self.name == "rss":
            assert ran.rss_bytes is not None
            return float(ran.rss_bytes)
        if self.name == "throughput":
            return ran.seconds / len(ran.latencies_s)
        if self.name == "p99":
            found = percentile(ran.latencies_s, _TAIL)
            assert found is not None  # as `require_queries` has found
            return found
        return ran.seconds

    def require_queries(self, count: int) -> None:
        """Raises UsageError if a pass of `count` queries does not have it."""
        if self.name == "p99" and percentile(range(count), _TAIL) is None:
            raise UsageError(
                f"--metric p99: a pass has {plural(count, 'query')}, and the 99th percentile needs "
                "100; give more --streams"
            )

    def _read(self, output: str, pattern: re.Pattern[str]) -> float:
        found = list(pattern.finditer(output))
        if not found:
            raise ValueError(f"its output has nothing that matches {pattern.pattern!r}")
        text = found[-1][1] or ""
        try:
            value = float(text.replace(",", ""))
        except ValueError:
            raise ValueError(f"{text!r} in its output is not a number") from None
        if not math.isfinite(value) or value <= 0:
            raise ValueError(f"{text!r} in its output is not a positive number")
        return 1 / value if self.more_is_better else value


def parse_metric(text: str) -> Metric:
    """A command's: 'time', 'rss', 'REGEX' (more is better), or 'NAME=REGEX' with NAME throughput,
    p99, time or rss, which says whether more is better. Raises UsageError."""
    if text in ("time", "rss"):
        return Metric(text, {"time": "time", "rss": "peak memory"}[text])
    name, sign, pattern = text.partition("=")
    if text in _MORE:
        raise UsageError(
            f"--metric {text}: only the command's output says what it is; give a regular "
            f"expression with the number in its first group: --metric '{text}=NAME: ([0-9.]+)'"
        )
    if name not in _MORE or not sign:
        name, pattern = "throughput", text
    better = "more" if _MORE[name] else "less"
    return Metric(text, f"{text} ({better} is better)", _compiled(pattern, text), _MORE[name])


def parse_pass_metric(text: str) -> Metric:
    """A pass's: 'time', 'throughput' or 'p99'. Raises UsageError."""
    words = {
        "time": "time of a pass",
        "throughput": "queries per second",
        "p99": "99th percentile of the queries' times",
    }
    if text in words:
        return Metric(text, words[text])
    why = "is no metric of a suite"
    if text == "rss":
        why = "the processes of an engine share memory, so their peaks cannot be added"
    raise UsageError(f"--metric {text}: {why}; choose from {', '.join(words)}")


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
