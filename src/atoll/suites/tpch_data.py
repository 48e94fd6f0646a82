"""TPC-H's tables as Parquet files in the cache, made by tpchgen-cli, known by their checksums.

Promises: a data set appears under its name whole or not at all (made beside it, renamed); two
processes at once make it once (a file lock); a file that has changed since is noticed before
use and the set made anew; a full disk or an interruption leaves nothing behind, and the
generator dies with us, also by kill -9. It gives the same bytes for the same scale factor,
whatever the number of threads.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.metadata
import math
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, Literal

from atoll.engines.api import Progress, Table
from atoll.errors import AtollError, DownloadFailed, UsageError
from atoll.host.programs import find_program
from atoll.host.tied import tied_argv
from atoll.schema.base import Record, parse
from atoll.store.files import sha256, write_atomic
from atoll.store.paths import cache_dir
from atoll.suites import reference
from atoll.suites.base import DataSet
from atoll.suites.tpch_schema import SCHEMAS

TABLES = tuple(SCHEMAS)

_MIB = 1 << 20
# Parquet with snappy, measured at 0.1 and 1; what is made is counted against it for progress.
_BYTES_PER_SCALE_FACTOR = 370 * _MIB
_MANIFEST = "manifest.json"


class File(Record):
    bytes: int
    mtime_ns: int
    sha256: str


class Manifest(Record):
    """What a data set in the cache consists of; written last."""

    FORMAT: ClassVar[str] = "atoll/dataset"
    VERSION: ClassVar[int] = 1

    format: Literal["atoll/dataset"] = "atoll/dataset"
    version: Literal[1] = 1
    generator: str
    row_group_bytes: int
    files: dict[str, File]

    @property
    def checksum(self) -> str:
        """One checksum over all tables; says nothing of times."""
        lines = "".join(f"{table} {self.files[table].sha256}\n" for table in sorted(self.files))
        return hashlib.sha256(lines.encode()).hexdigest()


def row_group_bytes(scale_factor: float) -> int:
    """Small row groups for small data, so that there is a part of lineitem for every worker.

    Engines hand out row groups: of the generator's default size (7 MiB before
    compression, 100,000 rows) lineitem has 6 at SF 0.1; of this one, 20.
    """
    return (2 if scale_factor < 1 else 7) * _MIB


def ensure_data(scale_factor: float, *, progress: Progress) -> DataSet:
    """The verified data set, made now if need be.

    Raises UsageError (no such scale factor), DownloadFailed (no generator, it failed, disk full).
    """
    if not (math.isfinite(scale_factor) and 0.001 <= scale_factor <= 100_000):
        raise UsageError(f"scale factor {scale_factor:g} is not between 0.001 and 100000")
    base = cache_dir("tpch")
    name = f"sf{_exactly(scale_factor)}"
    root = base / name
    try:
        with _locked(base / f".{name}.lock", name, progress):
            manifest = _usable(root, scale_factor, progress)
            if manifest is None:
                _sweep(base, name)
                manifest = _make(base, root, scale_factor, progress)
    except OSError as fault:
        raise DownloadFailed(
            f"{fault.filename or base}: {fault.strerror or fault}; make room or mend it there, "
            "or set XDG_CACHE_HOME to another disk"
        ) from None
    tables = (Table(name, str(_file(root, name)), *SCHEMAS[name]) for name in TABLES)
    return DataSet("tpch", scale_factor, root, tuple(tables), manifest.checksum)


def _file(root: Path, table: str) -> Path:
    """In a folder of its own, since Hive's tables are folders."""
    return root / table / f"{table}.parquet"


def _exactly(scale_factor: float) -> str:
    """'0.1', '100': two scale factors never share a folder for being close."""
    return f"{scale_factor:.15g}"


def _usable(root: Path, scale_factor: float, progress: Progress) -> Manifest | None:
    """The manifest, if all that it names is there as it was made; else None, and why is told."""
    if not root.exists():
        return None
    try:
        text = (root / _MANIFEST).read_bytes()
        manifest = parse(Manifest, text, where=str(root / _MANIFEST))
        if set(manifest.files) != set(TABLES):
            raise UsageError(f"{root / _MANIFEST}: does not name the tables of TPC-H")
        if manifest.row_group_bytes != row_group_bytes(scale_factor):
            raise UsageError(f"{root}: was laid out by another version of atoll")
        return _verified(root, manifest, progress)
    except (OSError, AtollError) as fault:
        progress(f"{' '.join(str(fault).split())}; making the data anew", None)
        return None


def _verified(root: Path, manifest: Manifest, progress: Progress) -> Manifest:
    """Size and time of change suffice; where those differ, the content decides."""
    found: dict[str, File] = {}
    for table, file in manifest.files.items():
        path = _file(root, table)
        status = path.stat()
        if (status.st_size, status.st_mtime_ns) != (file.bytes, file.mtime_ns):
            progress(f"{path} was touched; comparing its checksum", None)
            if sha256(path) != file.sha256:
                raise UsageError(f"{path}: damaged (its checksum is not the one it was made with)")
        found[table] = file.model_copy(update={"mtime_ns": status.st_mtime_ns})
    if found != manifest.files:
        manifest = manifest.model_copy(update={"files": found})
        write_atomic(root / _MANIFEST, manifest.model_dump_json(indent=1))
    return manifest


def _make(base: Path, root: Path, scale_factor: float, progress: Progress) -> Manifest:
    program = _generator()
    needed = int(_BYTES_PER_SCALE_FACTOR * scale_factor) + _MIB
    free = shutil.disk_usage(base).free
    if free < needed:
        raise _disk_full(base, scale_factor, needed, free)
    partial = Path(tempfile.mkdtemp(prefix=f".{root.name}-", dir=base))
    try:
        _generate(program, partial, scale_factor, needed, progress)
        manifest = Manifest(
            generator=f"tpchgen-cli {importlib.metadata.version('tpchgen-cli')}",
            row_group_bytes=row_group_bytes(scale_factor),
            files={table: _describe(_put_away(partial, table)) for table in TABLES},
        )
        write_atomic(partial / _MANIFEST, manifest.model_dump_json(indent=1))
        shutil.rmtree(root, ignore_errors=True)  # damaged, or not there
        os.rename(partial, root)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return manifest


def _generate(
    program: str, folder: Path, scale_factor: float, expected_bytes: int, progress: Progress
) -> None:
    argv = [*tied_argv(program), *generator_argv(scale_factor, folder)]
    what = f"making TPC-H data at scale factor {scale_factor:g}"
    with (
        tempfile.TemporaryFile(dir=folder) as log,
        subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log) as child,
    ):
        try:
            while child.poll() is None:
                progress(what, min(_bytes_in(folder) / expected_bytes, 0.99))
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(0.2)
        finally:
            child.kill()  # interrupted: it must not go on writing
        log.seek(0)
        said = log.read(1 << 16).decode(errors="replace")
    if child.returncode:
        free = shutil.disk_usage(folder).free
        if "No space left" in said or "Disk quota exceeded" in said:
            raise _disk_full(folder.parent, scale_factor, expected_bytes, free)
        reason = (said.strip().splitlines() or [f"status {child.returncode}"])[-1]
        raise DownloadFailed(f"{what}: tpchgen-cli failed ({reason}); nothing was kept")
    progress(what, 1.0)


def generator_argv(scale_factor: float, folder: Path) -> tuple[str, ...]:
    """What tpchgen-cli is told; it writes `folder`/TABLE.parquet."""
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


def _disk_full(folder: Path, scale_factor: float, needed: int, free: int) -> DownloadFailed:
    return DownloadFailed(
        f"{folder}: not enough room; TPC-H at scale factor {scale_factor:g} needs about "
        f"{needed:,} bytes, {free:,} are free; make room, or set XDG_CACHE_HOME to a larger disk"
    )


def _put_away(root: Path, table: str) -> Path:
    """Move what the generator wrote to where it belongs."""
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


def _sweep(base: Path, name: str) -> None:
    """Remove what a process that was killed in the middle has left; the lock is ours."""
    for path in base.glob(f".{name}-*"):
        shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def _locked(path: Path, name: str, progress: Progress) -> Iterator[None]:
    with open(path, "a", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress(f"waiting for another process that makes TPC-H {name}", None)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
