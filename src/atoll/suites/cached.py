"""Data sets of suites in the cache, checked by checksums.

A data set is made once, and is there whole or not at all (`atoll.store.once`). A file that has
changed since is noticed before use, and the data set is made again.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from atoll.engines.api import Progress, Table
from atoll.errors import AtollError, UsageError
from atoll.host.api import Host
from atoll.schema.base import Record, parse
from atoll.schema.size import MIB
from atoll.store.files import sha256, write_atomic
from atoll.store.once import make_once
from atoll.store.paths import cache_dir
from atoll.suites.base import DataSet, TableSchema

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
    # The size of a row group: in bytes before compression, or in rows. A generator has one of them.
    row_group_bytes: int = 0
    row_group_rows: int = 0
    files: dict[str, File]

    @property
    def checksum(self) -> str:
        """One checksum over all tables; times do not enter."""
        lines = "".join(f"{table} {self.files[table].sha256}\n" for table in sorted(self.files))
        return hashlib.sha256(lines.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Source:
    """How the tables of a suite are made at a scale factor."""

    suite: str  # the folder in the cache
    title: str  # for messages: 'TPC-H'
    scale_factor: float
    schemas: Mapping[str, TableSchema]
    needed_bytes: int  # while the tables are made
    # Makes TABLE.parquet of every table in an empty folder. Raises DownloadFailed, and DiskFull
    # on a full disk.
    make: Callable[[Path, Host, Progress], None]
    # Its name and version, which decide the data; empty: it is not installed, and whatever made the
    # data that is there was right.
    generator: str
    row_group_bytes: int = 0
    row_group_rows: int = 0


def check_scale_factor(scale_factor: float, *, least: float = 0.001, most: float = 100_000) -> None:
    """Raises UsageError if it is none."""
    if not (math.isfinite(scale_factor) and least <= scale_factor <= most):
        raise UsageError(f"scale factor {scale_factor:g} is not between {least:g} and {most:.0f}")


def exactly(scale_factor: float) -> str:
    """'0.1', '100': close scale factors get different names."""
    return f"{scale_factor:.15g}"


def package_version(name: str) -> str:
    """'tpchgen-cli 2.0.1'; empty if the package is not installed."""
    try:
        return f"{name} {importlib.metadata.version(name)}"
    except importlib.metadata.PackageNotFoundError:
        return ""


def ensure(source: Source, *, host: Host, progress: Progress) -> DataSet:
    """The verified data set, which is made if it is missing or damaged.

    Raises what `source.make` raises, and as `atoll.store.once.make_once`.
    """
    root = cache_dir(source.suite) / f"sf{exactly(source.scale_factor)}"
    manifests: list[Manifest] = []

    def is_usable(folder: Path) -> bool:
        manifest = _usable(folder, source, progress)
        manifests.extend([manifest] if manifest else [])
        return manifest is not None

    def make(folder: Path) -> None:
        folder.mkdir()
        source.make(folder, host, progress)
        manifest = Manifest(
            generator=source.generator,
            row_group_bytes=source.row_group_bytes,
            row_group_rows=source.row_group_rows,
            files={table: _describe(_put_away(folder, table)) for table in source.schemas},
        )
        write_atomic(folder / _MANIFEST, manifest.model_dump_json(indent=1))
        manifests.append(manifest)

    make_once(
        root,
        make,
        what=f"{source.title} at scale factor {source.scale_factor:g}",
        needed_bytes=source.needed_bytes + MIB,
        is_whole=is_usable,
        waiting=lambda: progress(
            f"waiting for another process that makes {source.title} {root.name}", None
        ),
    )
    tables = (Table(name, str(_file(root, name)), *source.schemas[name]) for name in source.schemas)
    return DataSet(source.suite, source.scale_factor, root, tuple(tables), manifests[0].checksum)


def _file(root: Path, table: str) -> Path:
    """The table's file. It has a folder of its own, because Hive's tables are folders."""
    return root / table / f"{table}.parquet"


def _usable(root: Path, source: Source, progress: Progress) -> Manifest | None:
    """The manifest, if its files are as they were made; else None, after reporting why."""
    if not root.exists():
        return None
    try:
        text = (root / _MANIFEST).read_bytes()
        manifest = parse(Manifest, text, where=str(root / _MANIFEST))
        if set(manifest.files) != set(source.schemas):
            raise UsageError(f"{root / _MANIFEST}: does not list the tables of {source.title}")
        laid_out = (manifest.row_group_bytes, manifest.row_group_rows)
        if laid_out != (source.row_group_bytes, source.row_group_rows):
            raise UsageError(f"{root}: was laid out by another version of atoll")
        if source.generator and manifest.generator != source.generator:
            raise UsageError(f"{root}: was made by {manifest.generator}, not {source.generator}")
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


def _put_away(root: Path, table: str) -> Path:
    """Move a file of the generator into the folder of its table."""
    path = _file(root, table)
    path.parent.mkdir()
    (root / path.name).rename(path)
    return path


def _describe(path: Path) -> File:
    status = path.stat()
    return File(bytes=status.st_size, mtime_ns=status.st_mtime_ns, sha256=sha256(path))
