"""Processes that tests look into: started, waited for until they say 'ready', and killed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def live(
    argv: Sequence[str], output: Path, *, env: Mapping[str, str] | None = None
) -> Iterator[int]:
    """The pid of a process that has said 'ready'; `output` gets all that it prints."""
    with output.open("wb") as out:
        process = subprocess.Popen(
            argv,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
        )
    try:
        while b"ready" not in output.read_bytes():
            assert process.poll() is None, output.read_text()
            try:
                process.wait(0.05)
            except subprocess.TimeoutExpired:
                continue
        yield process.pid
    finally:
        process.kill()
        process.wait()
