"""Commands of the tests that fetch from the network, whose hiccups are no fault of theirs."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable

import pytest

from atoll.errors import DownloadFailed

TRIES = 3
PAUSE_S = 20.0


def fetched(run: Callable[[], subprocess.CompletedProcess[str]]) -> str:
    """The command's stdout; it is run again where the network failed it, and skipped where it does
    so to the end. Another checksum than the pinned one is a failure at once."""
    for left in reversed(range(TRIES)):
        done = run()
        if done.returncode != DownloadFailed.exit_code or "checksum" in done.stderr:
            break
        if not left:
            pytest.skip(f"not available: {done.stderr.strip()}")
        time.sleep(PAUSE_S)
    assert done.returncode == 0, done.stderr
    return done.stdout
