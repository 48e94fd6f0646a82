"""A pass of TPC-H as `atoll bench` measures it, with all that it records, beside its queries alone.

Ours is what a results file has as the pass's seconds, on a deployment as `atoll.bench` brings it
up. Beside it DuckDB's own cursor runs the same queries in the same process; a pass of it is the sum
of their times. The bar is on the median of the differences. Both answers are checked afterwards.

The cursor is asked query by query, as the bench asks: after a pause of 1 ms a query takes 0.24 ms
longer than right after another one, by a bare cursor too (two CPUs, scale factor 0.02).

What Atoll adds to a query hardly depends on its length, and a pass at scale factor 1 varies by more
than that. So a small pass is compared too, which shows it in milliseconds.

Threads and pages are watched before and after a pass, so outside of its seconds; a note has how
long that takes.
"""

from __future__ import annotations

import time

import numpy as np

from atoll.bench.passes import run_pass
from atoll.engines.api import QueryResult
from atoll.host.local import LocalHost
from atoll.suites import compare as answers
from atoll.suites import registry as suites
from perf.datasets import quiet
from perf.deployed import hosted
from perf.engines_host import OwnClient
from perf.harness import Interval, WrongAnswer, at_most, interleave, median, note

ENGINE = "duckdb"
SCALE_FACTOR, ROUNDS = 1.0, 61
SMALL, SMALL_ROUNDS = 0.02, 101
TARGET = 0.5
_LIMIT_S = 300.0


def compare_pass() -> None:
    _compare(SMALL, SMALL_ROUNDS)
    at_most("suites-pass-own-cost-percent", _compare(SCALE_FACTOR, ROUNDS).value, TARGET)


def _compare(scale_factor: float, rounds: int) -> Interval:
    """Percent of the queries alone that a pass takes more."""
    host, suite = LocalHost(), suites.get("tpch")
    data = suite.ensure_data(scale_factor, host=host, progress=quiet)
    texts = suite.queries(ENGINE)
    right = {query: suite.expected(query, data) for query in texts}
    around_s: list[float] = []  # of each pass: what the watching and counting around it took

    def check(query: str, result: QueryResult) -> None:
        if fault := answers.compare(result, right[query]):
            raise WrongAnswer(f"{query}: {fault}")

    with hosted(ENGINE, data) as server:
        own = OwnClient(server.running.deployment.endpoints[0])
        columns = {}

        def by_bench() -> float:
            began = time.perf_counter()
            watched = server.watch()
            around = time.perf_counter() - began
            ran = run_pass(
                server.streams,
                [list(texts)],
                texts.__getitem__,
                limit_s=_LIMIT_S,
                host=host,
                reconnect=server.reconnect,
            )
            ended = time.perf_counter()
            places, counted = watched(), server.counted()
            around_s.append(around + time.perf_counter() - ended)
            answered = {one.result.ticket for one in ran.answers}
            if len(answered) < len(texts) or not answered <= counted.keys() or not places.threads:
                raise WrongAnswer(f"the pass was not recorded: {ran}, {counted}, {places}")
            for one in ran.answers:
                check(one.query, one.result)
                columns[one.query] = one.result.columns
            return ran.seconds

        def alone() -> float:
            called = [own(sql) for sql in texts.values()]
            for query, (seconds, rows) in zip(texts, called, strict=True):
                check(query, QueryResult(columns[query], rows, seconds))
            return sum(seconds for seconds, _ in called)

        seconds = interleave({"bench": by_bench, "alone": alone}, rounds=rounds, warmup=1)
    what = f"TPC-H at scale factor {scale_factor:g}, a pass of {ENGINE}"
    for side, each in seconds.items():
        note(f"{what}, {side}: {median(each)} s, {rounds} times")
    note(f"{what}, watched and counted: {median(np.array(around_s[-rounds:])).scaled(1e3)} ms")
    over = median(seconds["bench"] - seconds["alone"])
    note(f"{what}, bench over alone: {over.scaled(1e3 / len(texts))} ms a query")
    percent = over.scaled(100 / float(np.median(seconds["alone"])))
    note(f"{what}, bench over alone: {percent} %")
    return percent
