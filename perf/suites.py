"""The data of suites beside their peers: JCC-H (`perf.suites_jcch`) and TPC-DS.

TPC-DS data at scale factor 1 by Atoll, beside the extension's dsdgen and COPY by hand.

Atoll also keeps the data under its name, syncs it and computes its checksums. The files are the
same but for the order of the tables. Both sides are processes with a database on the disk.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

from atoll.host.local import LocalHost
from atoll.store.files import sha256
from atoll.suites.tpcds_data import TABLES, ensure_data
from perf.engines_data import cache_in, empty_folder
from perf.harness import WrongAnswer, at_most, interleave, median, note, ratio, spawn, timed
from perf.suites_jcch import compare_jcch

SCALE_FACTOR = 1.0
ROUNDS = 3
TARGET = 1.1

# What a person would type: all settings but the memory limit are the library's own.
BY_HAND = """
import importlib.util, sys
import duckdb
folder, scale_factor = sys.argv[1:]
package = importlib.util.find_spec("duckdb_extension_tpcds").submodule_search_locations[0]
connection = duckdb.connect(f"{folder}/tpcds.duckdb", config={"memory_limit": "2GB"})
extension = f"{package}/extensions/v{duckdb.__version__}/tpcds.duckdb_extension"
connection.load_extension(extension)
connection.execute(f"call dsdgen(sf = {scale_factor})")
for (table,) in connection.execute("select table_name from duckdb_tables()").fetchall():
    connection.execute(f"copy {table} to '{folder}/{table}.parquet' (format parquet)")
"""


def compare() -> None:
    compare_jcch()
    _compare_tpcds()


def _compare_tpcds() -> None:
    checksums: dict[str, str] = {}

    def check(files: dict[str, Path]) -> None:
        found = {table: sha256(files[table]) for table in TABLES}
        if checksums.setdefault("all", repr(found)) != repr(found):
            raise WrongAnswer("atoll's data is not what dsdgen and COPY make by hand")

    def by_atoll() -> float:
        with empty_folder() as folder, cache_in(folder):
            ensure = partial(
                ensure_data, SCALE_FACTOR, host=LocalHost(), progress=lambda what, part: None
            )
            seconds = timed(ensure)
            check(dict(ensure().files))
        return seconds

    def by_hand() -> float:
        with empty_folder() as folder:
            seconds = spawn([sys.executable, "-c", BY_HAND, str(folder), f"{SCALE_FACTOR:g}"])
            check({table: folder / f"{table}.parquet" for table in TABLES})
        return seconds

    seconds = interleave({"atoll": by_atoll, "by hand": by_hand}, rounds=ROUNDS, warmup=0)
    for side, own in seconds.items():
        note(f"TPC-DS at scale factor {SCALE_FACTOR:g}, {side}: {median(own)} s, {ROUNDS} times")
    over = ratio(seconds["atoll"], seconds["by hand"])
    note(f"TPC-DS at scale factor {SCALE_FACTOR:g}, atoll over by hand: {over}")
    at_most("suites-tpcds-sf1-over-by-hand", over.value, TARGET)
