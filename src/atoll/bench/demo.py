"""What `atoll demo` measures in its time, and what it concludes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from atoll.bench.axes import Axis, Grid
from atoll.bench.estimates import GEOMEAN
from atoll.bench.job import BenchRequest, Job, Length
from atoll.bench.results import Results, read_results
from atoll.bench.runner import Tick
from atoll.engines import registry
from atoll.engines.facts import facts_of
from atoll.errors import AtollError
from atoll.schema.results import QueryTime
from atoll.schema.summary import BenchSummary, EntrantSummary, Speedup
from atoll.schema.text import plural
from atoll.stats.paired import MIN_BLOCKS


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


def demo_request(engine: str, scale_factor: float, queries: Sequence[str]) -> BenchRequest:
    """The bench of one engine: its policies for the demo, with enough blocks for an interval."""
    return BenchRequest(
        targets=(engine,),
        suite="tpch",
        scale_factor=scale_factor,
        grid=Grid((Axis("policy", facts_of(registry.get(engine)).demo),)),
        queries=",".join(query.removeprefix("q") for query in queries),
        length=Length(MIN_BLOCKS),
        query_limit_s=300.0,
        command="atoll demo",
    )


def measure_in_time(
    make: Callable[[Sequence[str]], Job],
    run: Callable[[Job, Path, Callable[[Tick], None]], None],
    path: Path,
    queries: Sequence[str],
    *,
    until_s: float,
    say: Callable[[str], None],
) -> Results | None:
    """Measure `queries` into `path`, or the cheapest of them, by `until_s` of the monotonic clock.

    `make` makes the job for some queries; `run` runs it and calls its last argument after each
    deployment. Returns None if no query fits. `say` receives what does not fit. Raises EngineFailed
    if an engine fails; then `path` has the finished blocks.
    """
    while queries:
        # A busy machine would use up the demo's time.
        job = replace(make(queries), longest_wait_s=0.0)
        deployments = len(job.header.entrants) * MIN_BLOCKS
        check = _TimeCheck(path, deployments, until_s)
        try:
            run(job, path, check)
        except OutOfTime:
            cost = check.cost
            assert cost is not None
        else:
            return read_results(path)
        path.unlink()
        left_s = max(0.0, until_s - time.monotonic())
        fitting = queries_that_fit(cost, deployments, left_s)
        tried = queries if fitting else (cost.cheapest,)
        say(
            f"{job.header.entrants[0].engine}: {MIN_BLOCKS} blocks of "
            f"{', '.join(tried)} would take {deployments * cost.of(tried):.0f} s and the demo has "
            f"{left_s:.0f} s left, so it "
            + (f"runs {', '.join(fitting)}" if fitting else "leaves this engine out")
        )
        queries = fitting
    return None


@dataclass(slots=True)
class _TimeCheck:
    """After each deployment of the first block, stops a bench that would take too long."""

    path: Path
    deployments: int
    until_s: float
    began_s: float = field(default_factory=time.monotonic)
    cost: Cost | None = None

    def __call__(self, tick: Tick) -> None:
        if tick.block == 0 and tick.doing == "done":
            now_s, done = time.monotonic(), tick.position + 1
            self.cost = cost_of(read_results(self.path), now_s - self.began_s, done)
            if (self.deployments - done) * self.cost.of(self.cost.queries) > self.until_s - now_s:
                raise OutOfTime("the rest would take too long for the demo")


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
    return (
        f"{entrant.engine} with {plural(entrant.instances or 0, 'instance')} ({_policy(entrant)})"
    )


def _compared(speedup: Speedup) -> str:
    assert speedup.interval is not None
    interval = f"95 % interval {speedup.interval.low:.2f} to {speedup.interval.high:.2f}"
    return f"ran {speedup.value:.2f} times as fast as one instance ({interval}, {speedup.verdict})"
