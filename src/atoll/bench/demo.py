"""What `atoll demo` measures in its time, and what it concludes. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from atoll.bench.estimates import GEOMEAN
from atoll.bench.results import Results
from atoll.errors import AtollError
from atoll.schema.results import QueryTime
from atoll.schema.summary import BenchSummary, EntrantSummary, Speedup


class OutOfTime(AtollError):
    """The rest of a bench would take longer than the demo may."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Mean seconds of one deployment: those of each query in all its passes, and the rest."""

    queries: Mapping[str, float]
    rest_s: float  # mostly the start

    @property
    def cheapest(self) -> str:
        return min(self.queries, key=lambda query: self.queries[query])

    def of(self, queries: Iterable[str]) -> float:
        return self.rest_s + sum(self.queries[query] for query in queries)


def cost_of(results: Results, seconds: float, deployments: int) -> Cost:
    """The cost of the first `deployments` of a bench, which took `seconds` together.

    Streams run concurrently, so a query's time is divided by their number.
    """
    streams = {entrant.label: entrant.streams for entrant in results.header.entrants}
    queries = dict.fromkeys(results.header.queries, 0.0)
    for line in results.lines:
        if isinstance(line, QueryTime):
            queries[line.query] += line.seconds / streams[line.label] / deployments
    return Cost(queries, max(0.0, seconds / deployments - sum(queries.values())))


def queries_that_fit(cost: Cost, deployments: int, left_s: float) -> tuple[str, ...]:
    """As many queries as `deployments` can run in `left_s` seconds, the cheapest first."""
    chosen: list[str] = []
    for query in sorted(cost.queries, key=lambda query: cost.queries[query]):
        if deployments * cost.of([*chosen, query]) > left_s:
            break
        chosen.append(query)
    return tuple(chosen)


def conclusion(summaries: Sequence[BenchSummary]) -> tuple[str, str]:
    """A sentence on what the demo found, and one on what to try next."""
    compared = [
        (entrant, speedup)
        for summary in summaries
        for entrant in summary.entrants
        for speedup in entrant.speedups
        if speedup.query == GEOMEAN and speedup.interval is not None
    ]
    if not compared:
        return (
            "No engine finished enough blocks for an interval.",
            "Next: stop other work on this machine and run 'atoll demo' again.",
        )
    entrant, speedup = max(compared, key=lambda pair: (_is_faster(pair[1]), pair[1].value))
    found = f"{_subject(entrant)} {_compared(speedup)}"
    if _is_faster(speedup):
        return (
            found,
            f"Next: start it with 'atoll up {entrant.engine} --policy {_policy(entrant)}'.",
        )
    slower = speedup.verdict == "slower"
    return (
        f"{found}; on this machine the default is {'faster' if slower else 'as good'}.",
        f"Next: see what Atoll would do on a larger machine with 'atoll plan {entrant.engine} "
        "--machine FILE', or run 'atoll bench' there.",
    )


def _is_faster(speedup: Speedup) -> bool:
    return speedup.verdict == "faster"


def _policy(entrant: EntrantSummary) -> str:
    return entrant.policy.value if entrant.policy else ""


def _subject(entrant: EntrantSummary) -> str:
    return f"{entrant.engine} with {entrant.instances} instances ({_policy(entrant)})"


def _compared(speedup: Speedup) -> str:
    assert speedup.interval is not None
    interval = f"95 % interval {speedup.interval.low:.2f} to {speedup.interval.high:.2f}"
    return f"ran {speedup.value:.2f} times as fast as one instance ({interval}, {speedup.verdict})"
