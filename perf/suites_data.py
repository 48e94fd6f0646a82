"""The data of suites at scale factor 1, beside that of other generators.

TPC-DS: beside the extension's dsdgen and COPY by hand. Atoll also keeps the data under its name,
syncs it and computes its checksums. The files are the same but for the order of the tables. Both
sides are processes with a database on the disk.

JCC-H: rows a second to Parquet, beside TPC-H by tpchgen-cli. Both are processes that write eight
tables with snappy and use all CPUs.
"""

from __future__ import annotations

import sys

from atoll.suites import jcch_data, tpcds_data, tpch_data
from perf.datasets import compare_makers, ensured, tpchgen, written
from perf.harness import at_least, at_most, note, ratio

SCALE_FACTOR = 1.0
TPCDS_ROUNDS, TPCDS_TARGET = 3, 1.1
JCCH_ROUNDS, JCCH_TARGET = 5, 0.8

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


def compare_tpcds() -> None:
    seconds, _ = compare_makers(
        "TPC-DS at scale factor 1",
        {
            "atoll": ensured(tpcds_data.ensure_data, SCALE_FACTOR),
            "by hand": written(
                lambda folder: [sys.executable, "-c", BY_HAND, str(folder), f"{SCALE_FACTOR:g}"],
                tpcds_data.TABLES,
            ),
        },
        rounds=TPCDS_ROUNDS,
        warmup=0,
    )
    over = ratio(seconds["atoll"], seconds["by hand"])
    note(f"TPC-DS at scale factor 1, atoll over by hand: {over}")
    at_most("suites-tpcds-sf1-over-by-hand", over.value, TPCDS_TARGET)


def compare_jcch() -> None:
    program = tpchgen()
    seconds, rows = compare_makers(
        "JCC-H at scale factor 1",
        {
            "atoll": written(
                lambda folder: jcch_data.generator_argv(SCALE_FACTOR, folder), jcch_data.TABLES
            ),
            "tpchgen": written(
                lambda folder: [program, *tpch_data.generator_argv(SCALE_FACTOR, folder)],
                tpch_data.TABLES,
            ),
        },
        rounds=JCCH_ROUNDS,
        warmup=1,
        same=False,
    )
    rate = ratio(seconds["tpchgen"], seconds["atoll"]).scaled(rows["atoll"] / rows["tpchgen"])
    note(f"JCC-H at scale factor 1, rows a second over those of tpchgen: {rate}")
    at_least("suites-jcch-sf1-rows-per-s-over-tpchgen", rate.value, JCCH_TARGET)
