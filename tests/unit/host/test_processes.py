"""How Atoll starts a process: captured, limited in time, tied to this process."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from atoll.host import processes

NAP = ["sh", "-c", "echo $$ > pid; exec sleep 600"]


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_the_output_and_the_status_are_captured() -> None:
    done = processes.run(["sh", "-c", "echo out; echo err >&2; exit 3"])
    assert done == processes.Finished(3, "out\n", "err\n")


def test_a_command_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    with pytest.raises(TimeoutError, match=r"sh: no end within 0\.5 s"):
        processes.run(NAP, timeout_s=0.5, cwd=str(tmp_path))
    assert is_gone(int((tmp_path / "pid").read_text()))


def test_a_tick_that_raises_ends_the_command(tmp_path: Path) -> None:
    def tick() -> None:
        if (tmp_path / "pid").exists():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        processes.run(NAP, cwd=str(tmp_path), tied=True, tick=tick)
    assert is_gone(int((tmp_path / "pid").read_text()))


def test_a_child_is_watched_and_signalled(tmp_path: Path) -> None:
    child = processes.start(["sleep", "600"], env={}, log=str(tmp_path / "log"))
    assert child.poll() is None
    with pytest.raises(TimeoutError):
        child.wait(0.01)
    child.signal(signal.SIGTERM)
    assert child.wait(60) == -signal.SIGTERM
    child.signal(signal.SIGTERM)  # it has ended: nothing happens


def test_a_descriptor_is_passed_on(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    argv = ["sh", "-c", f"echo hello > /dev/fd/{writing}"]
    child = processes.start(argv, env={}, log=str(tmp_path / "log"), pass_fds=(writing,))
    assert child.wait(60) == 0
    assert os.read(reading, 10) == b"hello\n"
    os.close(reading)
    os.close(writing)


def test_a_tied_child_gets_its_signal_when_its_parent_ends(tmp_path: Path) -> None:
    ours = os.fork()
    if ours == 0:
        script = (
            f"sleep 600 & trap 'kill $!; touch {tmp_path}/heard; exit' TERM; touch {tmp_path}/up"
        )
        processes.start(
            ["sh", "-c", f"{script}; wait"],
            env=dict(os.environ),
            log=str(tmp_path / "log"),
            tied_by=signal.SIGTERM,
        )
        deadline = time.monotonic() + 60
        while not (tmp_path / "up").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        os._exit(0)
    os.waitpid(ours, 0)
    deadline = time.monotonic() + 60
    while not (tmp_path / "heard").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_process_that_a_command_leaves_behind_is_not_waited_for(tmp_path: Path) -> None:
    started_s = time.monotonic()
    done = processes.run(["sh", "-c", "sleep 600 & echo $!"], timeout_s=60)
    os.kill(int(done.stdout), signal.SIGKILL)
    assert time.monotonic() - started_s < 50
