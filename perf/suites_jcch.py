"""JCC-H data at scale factor 1, beside TPC-H data by tpchgen-cli: rows a second to Parquet.

Both are processes that write eight tables with snappy and use all CPUs.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from atoll.host.programs import find_program
from atoll.store.files import sha256
from atoll.suites import jcch_data, reference, tpch_data
from perf.engines_data import empty_folder
from perf.harness import WrongAnswer, at_least, interleave, median, note, ratio, spawn

SCALE_FACTOR = 1.0
ROUNDS = 5
TARGET = 0.8


def compare_jcch() -> None:
    program = find_program("tpchgen-cli")
    if program is None:
        raise WrongAnswer("tpchgen-cli is not installed, so there is nothing to compare with")
    rows: dict[str, int] = {}
    checksums: dict[str, str] = {}

    def by(side: str, argv: Sequence[str], folder: Path) -> float:
        seconds = spawn(argv)
        files = {table: folder / f"{table}.parquet" for table in jcch_data.TABLES}
        found = repr({table: sha256(path) for table, path in files.items()})
        if checksums.setdefault(side, found) != found:
            raise WrongAnswer(f"{side} has made other data than before")
        if side not in rows:
            counts = (f"(select count(*) from {table})" for table in files)
            rows[side] = reference.run(f"select {' + '.join(counts)}", files)[1][0][0]
        return seconds

    def atoll() -> float:
        with empty_folder() as folder:
            return by("atoll", jcch_data.generator_argv(SCALE_FACTOR, folder), folder)

    def tpchgen() -> float:
        with empty_folder() as folder:
            argv = [program, *tpch_data.generator_argv(SCALE_FACTOR, folder)]
            return by("tpchgen", argv, folder)

    seconds = interleave({"atoll": atoll, "tpchgen": tpchgen}, rounds=ROUNDS, warmup=1)
    for side, own in seconds.items():
        note(f"JCC-H at scale factor 1, {side}: {rows[side]} rows, {median(own)} s, {ROUNDS} times")
    rate = ratio(seconds["tpchgen"], seconds["atoll"]).scaled(rows["atoll"] / rows["tpchgen"])
    note(f"JCC-H at scale factor 1, rows a second over those of tpchgen: {rate}")
    at_least("suites-jcch-sf1-rows-per-s-over-tpchgen", rate.value, TARGET)
