"""The guest itself: commands, their output and status, time limits, what is left behind."""

from __future__ import annotations

import subprocess

import pytest

from tests.vm.guest import Guest

pytestmark = pytest.mark.parametrize("guest", ["milan2"], indirect=True)


def test_output_and_status_come_back_apart(guest: Guest) -> None:
    done = guest.run(["sh", "-c", "echo out; echo err >&2; exit 3"])
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "err\n")


def test_a_time_limit_kills_the_whole_process_group(guest: Guest) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        guest.run(["sh", "-c", "sleep 1234 & sleep 1234"], timeout_s=1)
    left = guest.run(["pgrep", "-x", "sleep", "-a"])
    assert "1234" not in left.stdout
