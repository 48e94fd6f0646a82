"""A peer of perf.tuning: answers one query over the rows of a folder, as often as it is asked.

Run by the Python of a virtual environment that has the peers (perf/tuning_peers.py), not by ours.
Arguments: the peer, the workload, the folder with `records.bin` and, for w3, `keys.bin`, and the
number of threads. For each line of its standard input it runs the query and prints a JSON array:
the seconds, then the answer's rows and sums.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

Query = Callable[[], list[int]]
Columns = dict[str, npt.NDArray[np.int64]]

_SQL = {
    "w1": "select count(*), sum(a) from "
    "(select cast(2 * median(cast(value as double)) as bigint) a from records group by key)",
    "w2": "select count(*), sum(a) from (select count(value) a from records group by key)",
    "w3": "select count(*), sum(k.value), sum(r.value) from keys k join records r on k.key = r.key",
}


def _columns(file: Path) -> Columns:
    pairs = np.fromfile(file, dtype="<i8").reshape(-1, 2)
    return {column: pairs[:, at].copy() for at, column in enumerate(("key", "value"))}


def _polars(workload: str, tables: dict[str, Columns], threads: int) -> Query:
    os.environ["POLARS_MAX_THREADS"] = str(threads)
    import polars as pl

    frames = {name: pl.DataFrame(columns).lazy() for name, columns in tables.items()}
    records, value = frames["records"], pl.col("value")
    if workload == "w3":
        joined = records.join(frames["keys"], on="key", suffix="_k")
        query = joined.select(pl.len(), pl.col("value_k").sum(), value.sum().alias("r"))
    else:
        aggregate = (2 * value.median()).cast(pl.Int64) if workload == "w1" else value.count()
        query = records.group_by("key").agg(a=aggregate).select(pl.len(), pl.col("a").sum())
    # As fast as in memory for a median, and faster for the others.
    return lambda: list(query.collect(engine="streaming").row(0))


def _datafusion(workload: str, tables: dict[str, Columns], threads: int) -> Query:
    import pyarrow as pa
    from datafusion import SessionConfig, SessionContext

    context = SessionContext(SessionConfig().with_target_partitions(threads))
    for name, columns in tables.items():
        batches = pa.table(columns).to_batches(max_chunksize=8192)
        share = -(-len(batches) // threads)
        parts = [batches[at : at + share] for at in range(0, len(batches), share)]
        context.register_record_batches(name, parts)

    def run() -> list[int]:
        (row,) = pa.Table.from_batches(context.sql(_SQL[workload]).collect()).to_pylist()
        return list(row.values())

    return run


def main(peer: str, workload: str, folder: Path, threads: int) -> None:
    tables = {file.stem: _columns(file) for file in folder.glob("*.bin") if file.stem != "answer"}
    query = {"polars": _polars, "datafusion": _datafusion}[peer](workload, tables, threads)
    for _ in sys.stdin:
        begin = time.perf_counter()
        answer = query()
        print(json.dumps([time.perf_counter() - begin, *answer]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))
