"""TPC-H's tables as Parquet files in the cache, made by tpchgen-cli and checked by checksums.

A data set is made once, and is there whole or not at all (`atoll.store.once`). A file that has
changed since is noticed before use, and the data set is made again. The generator is killed when
this process ends, also by kill -9. It writes the same bytes for the same scale factor, whatever
the number of threads.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import math
from pathlib import Path
from typing import Literal

from atoll.engines.api import Progress, Table
from atoll.errors import AtollError, DiskFull, DownloadFailed, UsageError
from atoll.host.api import Host
from atoll.host.programs import find_program
from atoll.schema.base import Record, parse
from atoll.schema.size import MIB
from atoll.store.files import DISK_FULL, sha256, write_atomic
from atoll.store.once import make_once
from atoll.store.paths import cache_dir
from atoll.suites import reference
from atoll.suites.base import DataSet
from atoll.suites.tpch_schema import SCHEMAS

TABLES = tuple(SCHEMAS)

# Parquet with snappy, measured at 0.1 and 1; progress is measured against it.
_BYTES_PER_SCALE_FACTOR = 370 * MIB
_MANIFEST = "manifest.json"


class File(Record):
    bytes: int
    mtime_ns: int
    sha256: str


class Manifest(Record):
    """The files of a data set in the cache; written last."""

    format: Literal["atoll/dataset"] = "atoll/dataset"
    version: Literal[1] = 1
    generator: str
    row_group_bytes: int
    files: dict[str, File]

    @property
    def checksum(self) -> str:
        """One checksum over all tables; times do not enter."""
        lines = "".join(f"{table} {self.files[table].sha256}\n" for table in sorted(self.files))
        return hashlib.sha256(lines.encode()).hexdigest()


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
    if not (math.isfinite(scale_factor) and 0.001 <= scale_factor <= 100_000):
        raise UsageError(f"scale factor {scale_factor:g} is not between 0.001 and 100000")
    root = cache_dir("tpch") / f"sf{_exactly(scale_factor)}"
    manifests: list[Manifest] = []

    def is_usable(folder: Path) -> bool:
        manifest = _usable(folder, scale_factor, progress)
        manifests.extend([manifest] if manifest else [])
        return manifest is not None

    make_once(
        root,
        lambda folder: manifests.append(_make(folder, scale_factor, host, progress)),
        what=f"TPC-H at scale factor {scale_factor:g}",
        needed_bytes=int(_BYTES_PER_SCALE_FACTOR * scale_factor) + MIB,
        is_whole=is_usable,
        waiting=lambda: progress(f"waiting for another process that makes TPC-H {root.name}", None),
    )
    tables = (Table(name, str(_file(root, name)), *SCHEMAS[name]) for name in TABLES)
    return DataSet("tpch", scale_factor, root, tuple(tables), manifests[0].checksum)


def _file(root: Path, table: str) -> Path:
    """The table's file. It has a folder of its own, because Hive's tables are folders."""
    return root / table / f"{table}.parquet"


def _exactly(scale_factor: float) -> str:
    """'0.1', '100': close scale factors get different names."""
    return f"{scale_factor:.15g}"


def _usable(root: Path, scale_factor: float, progress: Progress) -> Manifest | None:
    """The manifest, if its files are as they were made; else None, after reporting why."""
    if not root.exists():
        return None
    try:
        text = (root / _MANIFEST).read_bytes()
        manifest = parse(Manifest, text, where=str(root / _MANIFEST))
        if set(manifest.files) != set(TABLES):
            raise UsageError(f"{root / _MANIFEST}: does not list the tables of TPC-H")
        if manifest.row_group_bytes != row_group_bytes(scale_factor):
            raise UsageError(f"{root}: was laid out by another version of atoll")
        return _verified(root, manifest, progress)
    except (OSError, AtollError) as fault:
        progress(f"{' '.join(str(fault).split())}; making the data again", None)
        return None


def _verified(root: Path, manifest: Manifest, progress: Progress) -> Manifest:
    """Compare sizes and times; where they differ, compare the content."""
    found: dict[str, File] = {}
    for table, file in manifest.files.items():
        path = _file(root, table)
        status = path.stat()
        if (status.st_size, status.st_mtime_ns) != (file.bytes, file.mtime_ns):
            progress(f"{path} was touched; comparing its checksum", None)
            if sha256(path) != file.sha256:
                raise UsageError(f"{path}: damaged (its checksum has changed)")
        found[table] = file.model_copy(update={"mtime_ns": status.st_mtime_ns})
    if found != manifest.files:
        manifest = manifest.model_copy(update={"files": found})
        write_atomic(root / _MANIFEST, manifest.model_dump_json(indent=1))
    return manifest


def _make(folder: Path, scale_factor: float, host: Host, progress: Progress) -> Manifest:
    program = _generator()
    folder.mkdir()
    _generate(program, folder, scale_factor, host, progress)
    manifest = Manifest(
        generator=f"tpchgen-cli {importlib.metadata.version('tpchgen-cli')}",
        row_group_bytes=row_group_bytes(scale_factor),
        files={table: _describe(_put_away(folder, table)) for table in TABLES},
    )
    write_atomic(folder / _MANIFEST, manifest.model_dump_json(indent=1))
    return manifest


def _generate(
    program: str, folder: Path, scale_factor: float, host: Host, progress: Progress
) -> None:
    what = f"making TPC-H data at scale factor {scale_factor:g}"
    expected_bytes = _BYTES_PER_SCALE_FACTOR * scale_factor
    done = host.run(
        [program, *generator_argv(scale_factor, folder)],
        timeout_s=None,
        tied=True,
        tick=lambda: progress(what, min(_bytes_in(folder) / expected_bytes, 0.99)),
    )
    if done.returncode != 0:
        lines = (done.stdout + done.stderr).strip().splitlines()
        reason = (lines or [f"status {done.returncode}"])[-1]
        # The generator has no other way to say it.
        kind = DiskFull if any(word in reason for word in DISK_FULL) else DownloadFailed
        raise kind(f"{what}: tpchgen-cli failed ({reason}); nothing was kept")
    progress(what, 1.0)


def generator_argv(scale_factor: float, folder: Path) -> tuple[str, ...]:
    """The arguments of tpchgen-cli, which writes `folder`/TABLE.parquet."""
    return (
        "parquet",
        f"--scale-factor={_exactly(scale_factor)}",
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


def _put_away(root: Path, table: str) -> Path:
    """Move a file of the generator into the folder of its table."""
    path = _file(root, table)
    path.parent.mkdir()
    (root / path.name).rename(path)
    return path


def _describe(path: Path) -> File:
    status = path.stat()
    return File(bytes=status.st_size, mtime_ns=status.st_mtime_ns, sha256=sha256(path))


def _bytes_in(folder: Path) -> int:
    total = 0
    for path in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):  # renamed while we look
            total += path.stat().st_size
    return total
