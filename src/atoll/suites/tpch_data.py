"""TPC-H's tables, made by tpchgen-cli and kept in the cache (`atoll.suites.cached`).

The generator is killed when this process ends, also by kill -9. It writes the same bytes for the
same scale factor, whatever the number of threads.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from atoll.engines.api import Progress
from atoll.errors import DownloadFailed
from atoll.host.api import Host
from atoll.host.programs import find_program
from atoll.schema.size import MIB
from atoll.suites import reference
from atoll.suites.base import DataSet
from atoll.suites.cached import Source, check_scale_factor, ensure, exactly, package_version
from atoll.suites.generating import generate
from atoll.suites.tpch_schema import SCHEMAS

TABLES = tuple(SCHEMAS)

# Parquet with snappy, measured at 0.1 and 1; progress is measured against it.
_BYTES_PER_SCALE_FACTOR = 370 * MIB


def row_group_bytes(scale_factor: float) -> int:
    """Small row groups for small data, so that every worker gets a part of lineitem.

    Engines hand out row groups: of the generator's default size (7 MiB before
    compression, 100,000 rows) lineitem has 6 at SF 0.1; of this one, 20.
    """
    return (2 if scale_factor < 1 else 7) * MIB


def ensure_data(scale_factor: float, *, host: Host, progress: Progress) -> DataSet:
    """The verified data set, which is generated if it is missing or damaged.

    Raises UsageError (no such scale factor), DownloadFailed (no generator, or it failed), and as
    `atoll.store.once.make_once`.
    """
    check_scale_factor(scale_factor)
    source = Source(
        suite="tpch",
        title="TPC-H",
        scale_factor=scale_factor,
        schemas=SCHEMAS,
        needed_bytes=int(_BYTES_PER_SCALE_FACTOR * scale_factor),
        make=partial(_generate, scale_factor),
        generator=package_version("tpchgen-cli"),
        row_group_bytes=row_group_bytes(scale_factor),
    )
    return ensure(source, host=host, progress=progress)


def _generate(scale_factor: float, folder: Path, host: Host, progress: Progress) -> None:
    program = _generator()
    what = f"making TPC-H data at scale factor {scale_factor:g}"
    generate(
        [program, *generator_argv(scale_factor, folder)],
        folder,
        what=what,
        by="tpchgen-cli",
        expected_bytes=_BYTES_PER_SCALE_FACTOR * scale_factor,
        host=host,
        progress=progress,
    )


def generator_argv(scale_factor: float, folder: Path) -> tuple[str, ...]:
    """The arguments of tpchgen-cli, which writes `folder`/TABLE.parquet."""
    return (
        "parquet",
        f"--scale-factor={exactly(scale_factor)}",
        f"--output-dir={folder}",
        f"--row-group-bytes={row_group_bytes(scale_factor)}",
        "--quiet",
    )


def _generator() -> str:
    found = find_program("tpchgen-cli")
    if found is None:
        raise DownloadFailed(
            f"tpchgen-cli, which makes TPC-H data, is not installed; {reference.REMEDY}"
        )
    return found
