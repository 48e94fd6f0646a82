"""Runs the program that writes the tables of a suite, with progress by the bytes on the disk."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from atoll.engines.api import Progress
from atoll.errors import DiskFull, DownloadFailed
from atoll.host.api import Host
from atoll.schema.text import first_line
from atoll.store.files import DISK_FULL


def generate(
    argv: Sequence[str],
    folder: Path,
    *,
    what: str,
    by: str,
    expected_bytes: float,
    host: Host,
    progress: Progress,
) -> None:
    """Run the generator `by`, which fills `folder`. It is killed when this process ends, also by
    kill -9.

    Raises DiskFull, and DownloadFailed with the last line that the generator printed."""
    done = host.run(
        argv,
        timeout_s=None,
        tied=True,
        tick=lambda: progress(what, min(_bytes_in(folder) / expected_bytes, 0.99)),
    )
    if done.returncode != 0:
        lines = (done.stdout + done.stderr).strip().splitlines()
        reason = (lines or [f"status {done.returncode}"])[-1]
        # A generator has no other way to say it.
        kind = DiskFull if any(word in reason for word in DISK_FULL) else DownloadFailed
        raise kind(f"{what}: {by} failed ({reason}); nothing was kept")
    progress(what, 1.0)


def run_generator(write_tables: Callable[[float, Path], None]) -> int:
    """For a generator of Atoll's own, with SCALE_FACTOR and FOLDER as arguments: its exit status,
    after one line if it failed."""
    try:
        write_tables(float(sys.argv[1]), Path(sys.argv[2]))
    except Exception as fault:  # of the library that writes, too
        print(first_line(str(fault)), file=sys.stderr)
        return 1
    return 0


def _bytes_in(folder: Path) -> int:
    total = 0
    for path in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):  # renamed or removed while we look
            total += path.stat().st_size
    return total
