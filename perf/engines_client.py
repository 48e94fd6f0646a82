"""A query as `atoll bench` asks it, beside the engine's own client on the same server.

Ours is the client of `Engine.connect`, on a deployment that `atoll.bench` brought up, its tables in
place. Beside it a connection of the client that the engine comes with, opened once; for DuckDB and
Spark, whose client is a call in the process that holds the session, a call in there. Both ask the
same text, one right after the other, who goes first alternates, and both answers are checked after
their clock has stopped. The bar is on the median of the differences.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from atoll.bench.deploy import Deployer
from atoll.bench.passes import asking
from atoll.engines import registry
from atoll.engines.base import Client, Column, LoadingEngine, QueryResult
from atoll.host.local import LocalHost
from atoll.host.topology import read_machine
from atoll.plan import make_plan
from atoll.schema.results import Entrant
from atoll.suites import compare as answers
from atoll.suites import reference
from atoll.suites import registry as suites
from atoll.suites.base import Answer, DataSet
from perf.engines_host import BACKENDS, Hosted, OwnClient
from perf.harness import WrongAnswer, at_most, interleave, median, note

SCALE_FACTOR = 0.1
TARGET_MS = 2.0
TARGET_SHARE = 0.005
HEAP_BYTES = 2 << 30
MANY_ROWS = """\
select l_orderkey, l_extendedprice, l_shipdate, l_comment from lineitem
order by l_orderkey, l_linenumber limit 10000"""
# As many pairs of a query as make this long, within these bounds.
SECONDS = 12.0
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
    # The SQL host with both ways in is in this package.
    os.environ["PYTHONPATH"] = str(Path(__file__).resolve().parents[1])
    host, machine = LocalHost(), read_machine()
    engine = registry.get(name)
    installation = engine.locate(host)
    data = suites.get("tpch").ensure_data(SCALE_FACTOR, progress=_quiet)
    if isinstance(engine, LoadingEngine):
        engine.load(data.data, installation, host=host, progress=_quiet)
    plan = make_plan(machine, engine.traits, "wim", heap_limit_bytes=HEAP_BYTES)
    deploy = Deployer(
        engines={name: Hosted(engine) if name in BACKENDS else engine},
        machine=machine,
        host=host,
        data=data.data,
        name=f"perf-{os.getpid()}",
        progress=lambda line: None,
    )
    with deploy(Entrant(label=name, engine=name, plan=plan)) as server:
        own = OWN[name](server.running.deployment.endpoints[0])
        for query in queries(name, data):
            pair = Pair(name, query, server.streams[0], own)
            seconds = interleave(
                {"ours": pair.by_ours, "own": pair.by_own}, rounds=pair.rounds(), warmup=3
            )
            ours, peer = seconds["ours"], seconds["own"]
            theirs = median(peer).scaled(1e3)
            over = median(ours - peer).scaled(1e3)
            note(f"{name} {query.name}: own client {theirs} ms, ours over it {over} ms")
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
        self._ask = asking(ours)
        self._columns: tuple[Column, ...] = ()

    def rounds(self) -> int:
        both = self.by_ours() + self.by_own()
        return min(max(round(SECONDS / both), FEWEST), MOST)

    def by_ours(self) -> float:
        start = time.perf_counter()
        fetch = self._ask(self._query.sql, _LIMIT_S)
        seconds = time.perf_counter() - start
        result = fetch()
        self._columns = result.columns
        self._check("ours", result)
        return seconds

    def by_own(self) -> float:
        seconds, rows = self._own(self._query.sql)
        self._check("its own client", QueryResult(self._columns, rows, seconds))
        return seconds

    def _check(self, who: str, result: QueryResult) -> None:
        fault = answers.compare(result, self._query.answer)
        if fault is not None:
            raise WrongAnswer(f"{self._engine} {self._query.name}, {who}: {fault}")


# ---- the engines' own clients --------------------------------------------------------------------


def _psycopg(endpoint: str) -> Own:
    import psycopg

    folder, name = os.path.split(endpoint)
    connection = psycopg.connect(
        host=folder, port=name.rpartition(".")[2], user="atoll", dbname="postgres", autocommit=True
    )
    # No constant in the program, which is what psycopg wants a str to be.
    return lambda sql: _timed(lambda: connection.execute(sql.encode()).fetchall())


def _pymysql(endpoint: str) -> Own:
    import pymysql

    from atoll.engines.mariadb_settings import DATABASE, USER

    cursor = pymysql.connect(unix_socket=endpoint, user=USER, database=DATABASE).cursor()

    def ask(sql: str) -> list[tuple[Any, ...]]:
        cursor.execute(sql)
        return list(cursor.fetchall())

    return lambda sql: _timed(lambda: ask(sql))


def _trino(endpoint: str) -> Own:
    import trino.dbapi

    from atoll.engines.trino_address import parse_endpoint

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


OWN: Mapping[str, Callable[[str], Own]] = {
    "duckdb": OwnClient,
    "spark": OwnClient,
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


def _quiet(what: str, part: float | None) -> None:
    del what, part
