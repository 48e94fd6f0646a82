"""TPC-H data at scale factor 1 by Atoll, beside the generator alone with the same arguments.

Atoll also keeps the data under its name, checks it, and lays it out; the files are the same.
"""

from __future__ import annotations

from atoll.suites import tpch_data
from perf.datasets import compare_makers, ensured, tpchgen, written
from perf.harness import at_most, difference, note

SCALE_FACTOR = 1.0
ROUNDS = 7
TARGET_S = 5.0


def compare() -> None:
    program = tpchgen()
    seconds, _ = compare_makers(
        "TPC-H at scale factor 1",
        {
            "atoll": ensured(tpch_data.ensure_data, SCALE_FACTOR),
            "generator": written(
                lambda folder: [program, *tpch_data.generator_argv(SCALE_FACTOR, folder)],
                tpch_data.TABLES,
            ),
        },
        rounds=ROUNDS,
        warmup=1,
    )
    over = difference(seconds["atoll"], seconds["generator"])
    note(f"TPC-H at scale factor 1, atoll over the generator: {over} s")
    at_most("engines-data-sf1-over-generator-s", over.value, TARGET_S)
