"""For the tests of servers that refuse root: the command line as an ordinary user, and what is left
of a deployment afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from atoll.schema.deployment import Deployment
from atoll.supervise import records
from tests.parts.deployment import left_over
from tests.parts.postgresql import ORDINARY_USER, pids


def atoll(
    *arguments: str, run_as: tuple[str, ...] = ORDINARY_USER
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*run_as, sys.executable, "-m", "atoll", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def succeed(*arguments: str) -> str:
    done = atoll(*arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def record_of(name: str) -> Deployment:
    record = records.read(name)
    assert record is not None
    return record


@contextmanager
def up(engine: str, name: str, policy: str, *more: str) -> Iterator[Deployment]:
    succeed("up", engine, "--policy", policy, "--name", name, "-d", *more)
    record = record_of(name)
    try:
        yield record
    finally:
        if name in records.names():
            succeed("down", name)
        left = traces(record)
        assert left == [], left


def traces(record: Deployment) -> list[str]:
    """What is left of a deployment: processes, folders, System V segments, shared memory files."""
    title, *rows = (line.split() for line in Path("/proc/sysvipc/shm").read_text().splitlines())
    table = [dict(zip(title, map(int, row), strict=False)) for row in rows]
    made = [
        entry["shmid"]
        for entry in table
        if entry["cpid"] in pids(record) and entry["ctime"] >= int(record.created_unix_s)
    ]
    shared = [
        path
        for path in Path("/dev/shm").glob("PostgreSQL.*")
        # That of another server is mapped while that one lives, and then goes.
        if is_ours(path, record) and not is_mapped(path) and path.exists()
    ]
    folders = [folder for folder in (record.run_dir, record.scratch_dir) if os.path.exists(folder)]
    return [*left_over(record.name), *folders, *map(str, made), *map(str, shared)]


def is_ours(path: Path, record: Deployment) -> bool:
    try:
        found = path.stat()
    except FileNotFoundError:
        return False
    return found.st_uid == os.getuid() and found.st_mtime >= record.created_unix_s


def is_mapped(path: Path) -> bool:
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if str(path) in Path(f"/proc/{pid}/maps").read_text():
                return True
        except OSError:
            continue  # has ended
    return False
