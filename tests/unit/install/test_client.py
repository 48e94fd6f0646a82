"""The clients that fetch, run for real."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from atoll.host.local import LocalHost
from atoll.host.processes import Finished
from atoll.install.client import runner


def test_a_client_is_run_with_its_output_and_ticks(tmp_path: Path) -> None:
    ticks: list[int] = []
    script = "echo out; echo err >&2; while [ ! -e go ]; do sleep 0.05; done; echo $TOY; exit 3"

    def tick() -> None:
        ticks.append(1)
        (tmp_path / "go").touch()

    done = runner(LocalHost())(["sh", "-c", script], cwd=tmp_path, env={"TOY": "boat"}, tick=tick)
    assert done == Finished(3, "out\nboat\n", "err\n")
    assert ticks


def test_a_client_that_is_not_there() -> None:
    with pytest.raises(FileNotFoundError):
        runner(LocalHost())(["no-such-program"])


def test_an_interrupt_ends_the_client(tmp_path: Path) -> None:
    pid = tmp_path / "pid"

    def tick() -> None:
        if pid.exists() and pid.read_text():  # there is a moment in which it is empty
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        runner(LocalHost())(["sh", "-c", "echo $$ > pid; exec sleep 600"], cwd=tmp_path, tick=tick)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)
