"""The seam to the system: what /proc says, signals that cannot hit the wrong process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.errors import NotPermitted
from atoll.host.local import LocalHost
from atoll.host.procfs import parse_ran, parse_stat, status_field
from atoll.host.snapshot import SnapshotHost
from atoll.schema.cpulist import format_cpulist, parse_cpulist
from atoll.schema.deployment import ProcessId

STAT = (
    "4242 (a) R (b c)) S 17 4242 4242 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 9 0 987654 1 2 3 "
    "4 5 6 7 8 9 10 11 12 13 14 15 16 5 0 0 0 0\n"
)


def test_a_process_name_with_spaces_and_parentheses() -> None:
    stat = parse_stat(STAT)
    assert (stat.comm, stat.state, stat.parent) == ("a) R (b c)", "S", 17)
    assert (stat.start_ticks, stat.last_cpu) == (987654, 5)
    assert stat.lives and not stat.ended


def test_a_process_lives_as_long_as_one_of_its_threads() -> None:
    zombie = STAT.replace(") S 17", ") Z 17")
    leader = parse_stat(zombie)
    assert (leader.threads, leader.ended, leader.lives) == (9, True, True)
    assert not parse_stat(zombie.replace("20 0 9 0", "20 0 1 0")).lives


def test_a_link_is_text_also_where_its_name_is_no_utf_8(tmp_path: Path) -> None:
    link = tmp_path / "link"
    os.symlink(b"/data/\xff", link)
    assert LocalHost().read_link(str(link)) == "/data/\ufffd"


def test_our_own_stat_says_what_the_system_calls_say() -> None:
    stat = parse_stat(Path("/proc/self/stat").read_text())
    assert stat.parent == os.getppid()
    assert stat.last_cpu in os.sched_getaffinity(0)


@pytest.mark.parametrize("stat", [STAT, STAT.replace(") S 17", ") Z 17")])
def test_the_quick_reading_of_a_stat_is_that_of_the_whole(stat: str) -> None:
    whole = parse_stat(stat)
    assert parse_ran(stat.encode()) == (whole.ended, whole.cpu_s, whole.last_cpu)


def test_the_cpu_time_of_another_process_is_that_of_its_stat() -> None:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as child:
        while LocalHost().cpu_seconds(child.pid) < 0.2:
            pass
        told_s = parse_stat(Path(f"/proc/{child.pid}/stat").read_text()).cpu_s
        assert 0.1 < told_s <= LocalHost().cpu_seconds(child.pid) + 0.02
        child.kill()
    with pytest.raises(ProcessLookupError):
        LocalHost().cpu_seconds(child.pid)


def test_status_field() -> None:
    assert status_field("Name:\tx\nCpus_allowed_list:\t0-3,8\n", "Cpus_allowed_list") == "0-3,8"
    assert status_field("Name:\tx\n", "Mems_allowed_list") == ""


@given(st.frozensets(st.integers(0, 4096)))
def test_cpulist_round_trip(cpus: frozenset[int]) -> None:
    assert parse_cpulist(format_cpulist(cpus)) == tuple(sorted(cpus))


@pytest.mark.parametrize("text", ["3-1", "a", "-1", "0-", "0-99999999999", "1_0", "+1", "٣"])
def test_cpulist_refuses(text: str) -> None:
    with pytest.raises(ValueError):
        parse_cpulist(text)


def test_a_signal_reaches_only_the_process_that_was_meant(tmp_path: Path) -> None:
    host = LocalHost()
    log = str(tmp_path / "log")
    child = host.spawn([sys.executable, "-c", "input()"], env={}, cwd="/", log=log)
    # stdin is empty, so input() ends it with a traceback in the log.
    assert child.wait(60) == 1
    assert "EOFError" in Path(log).read_text()
    sleeper = subprocess.Popen(["sleep", "60"])
    try:
        me = host.identify(sleeper.pid)
        assert me is not None
        other = ProcessId(pid=me.pid, start_ticks=me.start_ticks + 1)
        assert not host.signal(other, signal.SIGKILL)
        assert sleeper.poll() is None
        assert host.signal(me, signal.SIGKILL)
        os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
        assert host.identify(sleeper.pid) is None, "a zombie counts as gone"
    finally:
        sleeper.kill()
        assert sleeper.wait() == -9
    assert not host.signal(me, signal.SIGKILL)


def test_a_spawned_child_has_its_own_session_and_none_of_our_descriptors(tmp_path: Path) -> None:
    host = LocalHost()
    log = tmp_path / "log"
    held = os.open("/dev/null", os.O_RDONLY)
    program = (
        "import os; print(os.getsid(0) == os.getpid(), "
        "sorted(os.readlink(f'/proc/self/fd/{i}') for i in range(3)), "
        f"os.path.exists('/proc/self/fd/{held}'), sorted(os.environ))"
    )
    argv = [sys.executable, "-c", program]
    host.spawn(argv, env={"LC_ALL": "C"}, cwd="/", log=str(log)).wait(60)
    os.close(held)
    assert log.read_text().strip() == f"True {['/dev/null', str(log), str(log)]} False ['LC_ALL']"


def test_a_snapshot_reads_inside_its_folder_only(tmp_path: Path) -> None:
    root = tmp_path / "captured"
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/status").write_text("Cpus_allowed_list:\t0,2-3\n")
    (tmp_path / "secret").write_text("x")
    (root / "proc/out").symlink_to(tmp_path / "secret")
    host = SnapshotHost(root)
    assert host.affinity(0) == {0, 2, 3}
    assert host.list_dir("/proc") == ["out", "self"]
    for path in ("/proc/out", "/../secret"):
        assert not host.exists(path)
        with pytest.raises(FileNotFoundError):
            host.read_text(path)
    with pytest.raises(NotPermitted):
        host.run(["true"], timeout_s=1)
