"""TPC-H data at scale factor 1 by Atoll, beside the generator alone with the same arguments.

Atoll also keeps the data under its name, checks it, and lays it out; the files are the same.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from atoll.host.local import LocalHost
from atoll.host.programs import find_program
from atoll.store.files import sha256
from atoll.store.paths import cache_dir
from atoll.suites.tpch_data import TABLES, ensure_data, generator_argv
from perf.harness import (
    WrongAnswer,
    at_most,
    difference,
    interleave,
    median,
    note,
    spawn,
    timed,
)

SCALE_FACTOR = 1.0
ROUNDS = 7
TARGET_S = 5.0


def compare() -> None:
    program = find_program("tpchgen-cli")
    if program is None:
        raise WrongAnswer("tpchgen-cli is not installed, so there is nothing to compare with")
    checksums: dict[str, str] = {}

    def check(files: dict[str, Path]) -> None:
        found = {table: sha256(path) for table, path in files.items()}
        if checksums.setdefault("all", repr(found)) != repr(found):
            raise WrongAnswer("atoll's data is not what the generator makes")

    def by_atoll() -> float:
        with empty_folder() as folder, cache_in(folder):
            ensure = partial(
                ensure_data, SCALE_FACTOR, host=LocalHost(), progress=lambda what, part: None
            )
            seconds = timed(ensure)
            data = ensure()
            check(dict(data.files))
        return seconds

    def by_generator() -> float:
        with empty_folder() as folder:
            seconds = spawn([program, *generator_argv(SCALE_FACTOR, folder)])
            check({table: folder / f"{table}.parquet" for table in TABLES})
        return seconds

    seconds = interleave({"atoll": by_atoll, "generator": by_generator}, rounds=ROUNDS, warmup=1)
    for side, own in seconds.items():
        note(f"TPC-H at scale factor 1, {side}: {median(own)} s over {ROUNDS} times")
    over = difference(seconds["atoll"], seconds["generator"])
    note(f"TPC-H at scale factor 1, atoll over the generator: {over} s")
    at_most("engines-data-sf1-over-generator-s", over.value, TARGET_S)


@contextmanager
def empty_folder() -> Iterator[Path]:
    """On the disk that the cache is on."""
    folder = Path(tempfile.mkdtemp(prefix="perf-", dir=cache_dir("scratch")))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextmanager
def cache_in(folder: Path) -> Iterator[None]:
    before = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del os.environ["XDG_CACHE_HOME"]
        else:
            os.environ["XDG_CACHE_HOME"] = before
