"""Makers of a suite's data, in turns: each fills an empty folder and is checked by its bytes."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Protocol

from atoll.engines.api import Progress
from atoll.host.api import Host
from atoll.host.local import LocalHost
from atoll.host.programs import find_program
from atoll.store.files import sha256
from atoll.store.paths import cache_dir
from atoll.suites import reference
from atoll.suites.base import DataSet
from perf.harness import Seconds, WrongAnswer, interleave, median, note, spawn, timed

Files = Mapping[str, Path]  # by table
Maker = Callable[[Path], tuple[float, Files]]  # fills a folder: seconds, and what it made


class Ensure(Protocol):
    def __call__(self, scale_factor: float, /, *, host: Host, progress: Progress) -> DataSet: ...


def ensured(ensure_data: Ensure, scale_factor: float) -> Maker:
    """As `atoll bench` does it, in an empty cache."""

    def make(folder: Path) -> tuple[float, Files]:
        made: list[DataSet] = []

        def ensure() -> None:
            made.append(ensure_data(scale_factor, host=LocalHost(), progress=quiet))

        with _cache_in(folder):
            return timed(ensure), made[0].files

    return make


def written(argv: Callable[[Path], Sequence[str]], tables: Iterable[str]) -> Maker:
    """By a program that writes TABLE.parquet into the folder."""

    def make(folder: Path) -> tuple[float, Files]:
        return spawn(argv(folder)), {table: folder / f"{table}.parquet" for table in tables}

    return make


def tpchgen() -> str:
    program = find_program("tpchgen-cli")
    if program is None:
        raise WrongAnswer("tpchgen-cli is not installed, so there is nothing to compare with")
    return program


def quiet(what: str, part: float | None) -> None:
    """See `Progress`."""
    del what, part


def compare_makers(
    what: str, makers: Mapping[str, Maker], *, rounds: int, warmup: int, same: bool = True
) -> tuple[dict[str, Seconds], dict[str, int]]:
    """Seconds and rows of each. Raises WrongAnswer if one makes other bytes than before, or, with
    `same`, than the others."""
    digests: dict[str, str] = {}
    rows: dict[str, int] = {}

    def once(side: str) -> float:
        with _empty_folder() as folder:
            seconds, files = makers[side](folder)
            found = repr({table: sha256(path) for table, path in sorted(files.items())})
            if digests.setdefault("all" if same else side, found) != found:
                raise WrongAnswer(f"{what}, {side}: other data than before")
            if side not in rows:
                counts = (f"(select count(*) from {table})" for table in files)
                rows[side] = reference.run(f"select {' + '.join(counts)}", files)[1][0][0]
        return seconds

    seconds = interleave(
        {side: partial(once, side) for side in makers},
        rounds=rounds,
        warmup=warmup,
    )
    for side, own in seconds.items():
        note(f"{what}, {side}: {rows[side]} rows, {median(own)} s, {rounds} times")
    return seconds, rows


@contextmanager
def _empty_folder() -> Iterator[Path]:
    """On the disk that the cache is on."""
    folder = Path(tempfile.mkdtemp(prefix="perf-", dir=cache_dir("scratch")))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextmanager
def _cache_in(folder: Path) -> Iterator[None]:
    before = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del os.environ["XDG_CACHE_HOME"]
        else:
            os.environ["XDG_CACHE_HOME"] = before
