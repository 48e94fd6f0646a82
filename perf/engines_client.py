"""A query as `atoll bench` asks it, beside the engine's own client on the same server.

Ours is the client of `Engine.connect`, on a deployment that `atoll.bench` brought up, its tables in
place. Beside it the client that the engine comes with: for PostgreSQL and MariaDB on the very
connection that ours has opened (one connection of a server is faster than another, by up to 6 %,
for as long as it lives, whoever opened it: that is not the client's doing), for Trino on one opened
once; for DuckDB and Spark, whose client is a call in the process that holds the session, a call in
there: of both, the way to that process is not timed. Both ask the same text, one right after the
other, who goes first alternates, and both answers are checked after their clock has stopped. The
bar is on the median of the differences.

A server's own time may vary by more than the bar from one answer to the next. So for clients that
work in this process their CPU time is printed too, which does not; what they wait,
for the server or by themselves, is not in it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from atoll.bench.passes import ask
from atoll.engines.api import Client, Column, QueryResult
from atoll.engines.mariadb.client import MariaDBClient
from atoll.engines.postgresql.client import PostgreSQLClient
from atoll.host.local import LocalHost
from atoll.suites import compare as answers
from atoll.suites import reference
from atoll.suites import registry as suites
from atoll.suites.base import Answer, DataSet
from perf.datasets import quiet
from perf.deployed import hosted
from perf.engines_host import BACKENDS, OwnClient
from perf.harness import Interval, WrongAnswer, at_most, interleave, median, note

SCALE_FACTOR = 0.1
TARGET_MS = 2.0
TARGET_SHARE = 0.005
MANY_ROWS = """\
select l_orderkey, l_extendedprice, l_shipdate, l_comment from lineitem
order by l_orderkey, l_linenumber limit 10000"""
# As many pairs of a query as make this long, within these bounds.
SECONDS = 40.0
FEWEST, MOST = 21, 301
_LIMIT_S = 300.0

Own = Callable[[str], tuple[float, list[tuple[Any, ...]]]]  # seconds and rows


@dataclass(frozen=True, slots=True)
class Query:
    name: str
    sql: str
    answer: Answer


def compare(name: str) -> None:
    """Raises EngineFailed where the engine cannot be had."""
    if name not in OWN:
        note(f"{name}: no client of its own in Python to compare with")
        return
    data = suites.get("tpch").ensure_data(SCALE_FACTOR, host=LocalHost(), progress=quiet)
    with hosted(name, data) as server:
        own = OWN[name](server.running.deployment.endpoints[0], server.streams[0])
        for query in queries(name, data):
            pair = Pair(name, query, server.streams[0], own)
            seconds = interleave(
                {"ours": pair.by_ours, "own": pair.by_own}, rounds=pair.rounds(), warmup=3
            )
            ours, peer = seconds["ours"], seconds["own"]
            theirs = median(peer).scaled(1e3)
            over = median(ours - peer).scaled(1e3)
            note(f"{name} {query.name}: own client {theirs} ms, ours over it {over} ms")
            if name not in BACKENDS:
                note(f"{name} {query.name}: of CPU ours over it {pair.cpu_over()} ms")
            at_most(
                f"engines-client-{name}-{query.name}-over-own-ms",
                over.value,
                target_ms(theirs.value),
            )


def target_ms(own_ms: float) -> float:
    return round(TARGET_MS + TARGET_SHARE * own_ms, 3)


def queries(engine: str, data: DataSet) -> list[Query]:
    suite = suites.get("tpch")
    texts = suite.queries(engine)
    _, rows = reference.run(MANY_ROWS, data.files)
    return [
        Query("select-1", "select 1", Answer([(1,)], ())),
        *(Query(name, texts[name], suite.expected(name, data)) for name in ("q6", "q1")),
        Query("10000-rows", MANY_ROWS, Answer(rows, ())),
    ]


class Pair:
    """One query, asked by both."""

    def __init__(self, engine: str, query: Query, ours: Client, own: Own) -> None:
        self._engine, self._query, self._own = engine, query, own
        self._ours, self._host = ours, LocalHost()
        self._columns: tuple[Column, ...] = ()
        self._cpu: dict[str, list[float]] = {"ours": [], "own": []}  # seconds of this process

    def rounds(self) -> int:
        both = self.by_ours() + self.by_own()
        return min(max(round(SECONDS / both), FEWEST), MOST)

    def cpu_over(self) -> Interval:
        """Milliseconds of CPU that ours takes more than its own client, over all pairs."""
        ours, own = (np.array(self._cpu[who]) for who in ("ours", "own"))
        return median(ours - own).scaled(1e3)

    def by_ours(self) -> float:
        cpu = time.process_time()
        result, (began_s, ended_s) = ask(
            self._ours, self._query.sql, limit_s=_LIMIT_S, host=self._host
        )
        self._cpu["ours"].append(time.process_time() - cpu)
        self._columns = result.columns
        self._check("ours", result)
        return ended_s - began_s

    def by_own(self) -> float:
        cpu = time.process_time()
        seconds, rows = self._own(self._query.sql)
        self._cpu["own"].append(time.process_time() - cpu)
        self._check("its own client", QueryResult(self._columns, rows, seconds))
        return seconds

    def _check(self, who: str, result: QueryResult) -> None:
        fault = answers.compare(result, self._query.answer)
        if fault is not None:
            raise WrongAnswer(f"{self._engine} {self._query.name}, {who}: {fault}")


# ---- the engines' own clients --------------------------------------------------------------------


def _psycopg(endpoint: str, ours: Client) -> Own:
    del endpoint
    connection = cast(PostgreSQLClient, ours)._connection
    assert connection is not None
    # No constant in the program, which is what psycopg wants a str to be.
    return lambda sql: _timed(lambda: connection.execute(sql.encode()).fetchall())


def _pymysql(endpoint: str, ours: Client) -> Own:
    del endpoint
    connection = cast(MariaDBClient, ours)._connection
    assert connection is not None

    def ask(sql: str) -> list[tuple[Any, ...]]:
        with connection.cursor() as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall())

    return lambda sql: _timed(lambda: ask(sql))


def _hosted(endpoint: str, ours: Client) -> Own:
    del ours
    return OwnClient(endpoint)


def _trino(endpoint: str, ours: Client) -> Own:
    del ours
    import trino.dbapi

    from atoll.engines.trino.client import parse_endpoint

    address = parse_endpoint(endpoint)
    connection = trino.dbapi.Connection(
        host=address.host,
        port=address.port,
        user=address.user,
        catalog=address.catalog,
        schema=address.schema,
    )
    cursor = connection.cursor()
    return lambda sql: _timed(lambda: [tuple(row) for row in cursor.execute(sql).fetchall()])


OWN: Mapping[str, Callable[[str, Client], Own]] = {
    "duckdb": _hosted,
    "spark": _hosted,
    "postgresql": _psycopg,
    "mariadb": _pymysql,
    "trino": _trino,
}


def _timed(
    ask: Callable[[], list[tuple[Any, ...]]],
) -> tuple[float, list[tuple[Any, ...]]]:
    start = time.perf_counter()
    rows = ask()
    return time.perf_counter() - start, rows
