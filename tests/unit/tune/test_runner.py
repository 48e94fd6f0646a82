"""The process that runs the command: what it measures, and that nothing of the command stays."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from atoll.errors import EngineFailed
from atoll.host.local import LocalHost
from atoll.host.measured import end_descendants
from atoll.tune.factors import Recipe
from atoll.tune.metric import Ran
from atoll.tune.runs import EMPTY, CommandRuns, RunFault

# A daemon: a session of its own, its parent ended, no descriptor of ours.
DAEMON = "setsid sh -c 'echo $$ > {path}; exec sleep 600' > /dev/null 2>&1 < /dev/null & sleep 0.2"


@pytest.fixture
def ended() -> Iterator[list[CommandRuns]]:
    made: list[CommandRuns] = []
    yield made
    for runs in made:
        runs.end()


def shell(
    ended: list[CommandRuns],
    script: str,
    *,
    stdin: str = EMPTY,
    recipe: Recipe | None = None,
    limit_s: float = 60,
) -> Ran:
    runs = CommandRuns(LocalHost(), ["sh", "-c", script], stdin=stdin)
    ended.append(runs)
    return runs.run(recipe or Recipe(), limit_s=limit_s)


def gone(pid: int, longest_s: float = 20) -> bool:
    until = time.monotonic() + longest_s
    while time.monotonic() < until:
        if not Path(f"/proc/{pid}").exists():
            return True
        time.sleep(0.02)
    return False


def pid_in(path: Path) -> int:
    until = time.monotonic() + 60
    while not path.exists() or not path.read_text().strip():
        assert time.monotonic() < until, "the command did not start"
        time.sleep(0.02)
    return int(path.read_text())


def test_a_run_is_measured(ended: list[CommandRuns]) -> None:
    big = "head -c 40000000 /dev/zero | tail -c 40000000 > /dev/null"
    ran = shell(ended, f"echo words; echo more >&2; {big}")
    assert "words" in ran.output and "more" in ran.output
    assert ran.seconds > 0 and ran.rss_bytes and ran.rss_bytes > 30 << 20


def test_a_setting_reaches_the_command(ended: list[CommandRuns]) -> None:
    recipe = Recipe(flags=("-C", "0"), environment=("OMP_PROC_BIND=close",))
    ran = shell(ended, "grep Cpus_allowed_list /proc/self/status; env", recipe=recipe)
    assert re.search(r"^Cpus_allowed_list:\s+0$", ran.output, re.MULTILINE)
    assert "OMP_PROC_BIND=close" in ran.output


def test_a_setting_decides_over_the_commands_own_atoll_exec(ended: list[CommandRuns]) -> None:
    own = ["atoll-exec", "--malloc", "system", "--", "sh", "-c", "echo $LD_PRELOAD; nproc"]
    runs = CommandRuns(LocalHost(), own, stdin=EMPTY)
    ended.append(runs)
    assert runs.run(Recipe(flags=("-C", "0")), limit_s=60).output.split() == ["1"]


def test_each_run_reads_its_stdin_from_the_start(ended: list[CommandRuns], tmp_path: Path) -> None:
    path = tmp_path / "input"
    path.write_text("lines\n")
    runs = CommandRuns(LocalHost(), ["cat"], stdin=str(path))
    ended.append(runs)
    assert [runs.run(Recipe(), limit_s=60).output.strip() for _ in range(2)] == ["lines"] * 2


def test_a_pipe_whose_reader_ends_ends_its_writer(ended: list[CommandRuns]) -> None:
    assert "y" in shell(ended, "yes | head -n 1").output


def test_a_daemon_is_named_and_ended(ended: list[CommandRuns], tmp_path: Path) -> None:
    path = tmp_path / "pid"
    with pytest.raises(RunFault, match="sleep"):
        shell(ended, DAEMON.format(path=path))
    assert gone(pid_in(path))


def test_a_command_without_end_is_ended_with_its_children(
    ended: list[CommandRuns], tmp_path: Path
) -> None:
    path = tmp_path / "pid"
    with pytest.raises(RunFault, match="no end within"):
        shell(ended, f"sh -c 'echo $$ > {path}; exec sleep 600'; true", limit_s=3)
    assert gone(pid_in(path))


def test_a_command_that_would_fill_the_memory_with_its_output_is_ended(
    ended: list[CommandRuns], tmp_path: Path
) -> None:
    path = tmp_path / "pid"
    with pytest.raises(RunFault, match="more than 256 MiB"):
        shell(ended, f"echo $$ > {path}; exec yes")
    assert gone(pid_in(path))


def test_a_time_longer_than_poll_can_wait_is_no_fault(ended: list[CommandRuns]) -> None:
    assert "word" in shell(ended, "echo word", limit_s=3e6).output


@pytest.mark.parametrize(("script", "says"), [("exit 3", "status 3"), ("kill -11 $$", "signal 11")])
def test_a_failure_says_how(script: str, says: str, ended: list[CommandRuns]) -> None:
    with pytest.raises(RunFault, match=says):
        shell(ended, f"{script}; true")


def test_ending_while_the_command_runs_ends_it(tmp_path: Path) -> None:
    path = tmp_path / "pid"
    runs = CommandRuns(LocalHost(), ["sh", "-c", f"echo $$ > {path}; sleep 600; true"], stdin=EMPTY)

    def interrupt() -> None:
        pid_in(path)
        os.kill(os.getpid(), signal.SIGINT)  # the main thread gets it

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        runs.run(Recipe(), limit_s=60)
    runs.end()
    assert gone(pid_in(path))


def test_a_process_of_another_user_is_left_and_ends_no_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As what sudo has started; root may signal everybody, so the kernel's answer is played."""

    def refuse(pid: int, number: int) -> None:
        raise PermissionError

    with subprocess.Popen(["sleep", "600"]) as child, monkeypatch.context() as patched:
        patched.setattr(os, "kill", refuse)
        end_descendants()
        assert child.poll() is None
        patched.undo()
        child.kill()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_the_end_of_the_runner_alone_leaves_nothing_running(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a child of the command nor its daemon; what this process had before goes on."""
    monkeypatch.setattr("atoll.tune.runs._ANSWER_S", 1.0)
    daemon, child = tmp_path / "daemon", tmp_path / "child"
    script = f"{DAEMON.format(path=daemon)}; sh -c 'echo $$ > {child}; exec sleep 600'; true"
    before = subprocess.Popen(["sleep", "600"])
    runs = CommandRuns(LocalHost(), ["sh", "-c", script], stdin=EMPTY)

    def stop() -> None:
        pid_in(child)
        os.kill(guard_and_runner(os.getpid())[1], number)

    threading.Thread(target=stop).start()
    try:
        with pytest.raises(EngineFailed, match="has died"):
            runs.run(Recipe(), limit_s=5)
        runs.end()
        assert gone(pid_in(daemon)) and gone(pid_in(child))
        assert before.poll() is None
    finally:
        before.kill()
        before.wait()


@pytest.mark.parametrize("killed", [False, True])
def test_no_runner_is_left_that_outlives_its_guard(killed: bool, tmp_path: Path) -> None:
    """At its end it restores switches, for longer than the guard is waited for."""
    note_of_earlier_boot(tmp_path)
    runs = CommandRuns(LocalHost(), ["true"], stdin=EMPTY, knobs_folder=str(tmp_path))
    runs.run(Recipe(), limit_s=5)
    guard, runner = guard_and_runner(os.getpid())
    if killed:
        os.kill(guard, signal.SIGKILL)
    runs.run(Recipe(), limit_s=5)
    runs.end()
    assert not Path(f"/proc/{runner}").exists()


def note_of_earlier_boot(folder: Path) -> Path:
    note = folder / "bench.json"
    note.write_text(
        '{"format": "atoll/bench-knobs", "version": 1, "boot_id": "earlier", '
        '"values": {"swappiness": "60"}}'
    )
    return note


def guard_and_runner(tune: int) -> tuple[int, int]:
    (guard,) = [pid for pid in children(tune) if is_runner(pid)]
    (runner,) = children(guard)
    return guard, runner


def children(pid: int) -> list[int]:
    return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


def is_runner(pid: int) -> bool:
    return b"atoll.tune.runner" in Path(f"/proc/{pid}/cmdline").read_bytes()


@pytest.mark.parametrize("also", [(), (0,), (1,)], ids=["alone", "guard", "runner"])
def test_kill_9_leaves_nothing_running(also: tuple[int, ...], tmp_path: Path) -> None:
    """Also if the guard or the runner is killed at the same moment."""
    path = tmp_path / "pid"
    script = (
        "from atoll.host.local import LocalHost\n"
        "from atoll.tune.factors import Recipe\n"
        "from atoll.tune.runs import EMPTY, CommandRuns\n"
        f"argv = ['sh', '-c', {DAEMON.format(path=path) + '; sleep 600; true'!r}]\n"
        "CommandRuns(LocalHost(), argv, stdin=EMPTY).run(Recipe(), limit_s=600)\n"
    )
    tune = subprocess.Popen([sys.executable, "-c", script], start_new_session=True)
    daemon = pid_in(path)
    below = guard_and_runner(tune.pid)
    for pid in (tune.pid, *(below[one] for one in also)):
        os.kill(pid, signal.SIGKILL)
    tune.wait()
    assert gone(daemon) and all(map(gone, below))


def test_the_end_of_stdin_restores_what_a_killed_tune_left(tmp_path: Path) -> None:
    """A note of an earlier boot is dropped, which shows that the note was looked at."""
    note = note_of_earlier_boot(tmp_path)
    runner = [sys.executable, "-P", "-m", "atoll.tune.runner", str(tmp_path)]
    env = os.environ | {"PYTHONPROFILEIMPORTTIME": "1"}

    def imported() -> str:
        done = subprocess.run(
            runner,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=env,
            check=True,
            timeout=60,
        )
        return done.stderr.decode()

    assert "atoll.bench.switches" in imported()
    assert not note.exists()
    assert "atoll.bench.switches" not in imported()  # it has nothing to do, and ends at once
