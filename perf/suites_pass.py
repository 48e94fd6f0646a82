"""A pass of TPC-H as `atoll bench` measures it, with all that it records, beside its queries alone.

Ours is what a results file has as the pass's seconds, on a deployment as `atoll.bench` brings it
up. Beside it DuckDB's own cursor runs the same queries in the same process; a pass of it is the sum
of their times. The bar is on the median of the differences. Both answers are checked afterwards.

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
from perf.harness import WrongAnswer, at_most, interleave, median, note

ENGINE = "duckdb"
SCALE_FACTOR = 1.0
ROUNDS = 31
TARGET = 0.5
_LIMIT_S = 300.0


def compare_pass() -> None:
    host, suite = LocalHost(), suites.get("tpch")
    data = suite.ensure_data(SCALE_FACTOR, host=host, progress=quiet)
    texts = suite.queries(ENGINE)
    right = {query: suite.expected(query, data) for query in texts}
    outside_s, around_s = [], []  # of each pass: in its seconds but not in the engine; around it

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
            engine_s = sum(one.result.engine_seconds for one in ran.answers)
            outside_s.append(ran.seconds - engine_s)
            return ran.seconds

        def alone() -> float:
            whole = 0.0
            for query, sql in texts.items():
                seconds, rows = own(sql)
                check(query, QueryResult(columns[query], rows, seconds))
                whole += seconds
            return whole

        seconds = interleave({"bench": by_bench, "alone": alone}, rounds=ROUNDS, warmup=1)
    what = f"TPC-H at scale factor {SCALE_FACTOR:g}, a pass of {ENGINE}"
    for side, each in seconds.items():
        note(f"{what}, {side}: {median(each)} s, {ROUNDS} times")
    note(f"{what}, outside of the engine: {median(np.array(outside_s[-ROUNDS:])).scaled(1e3)} ms")
    note(f"{what}, watched and counted: {median(np.array(around_s[-ROUNDS:])).scaled(1e3)} ms")
    over = median(seconds["bench"] - seconds["alone"]).scaled(
        100 / float(np.median(seconds["alone"]))
    )
    note(f"{what}, bench over alone: {over} %")
    at_most("suites-pass-own-cost-percent", over.value, TARGET)
