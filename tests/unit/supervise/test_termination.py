"""How deployments end, and what is written of them: last words, SIGKILL, records on disk."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from atoll.errors import AtollError, DiskFull, DownloadFailed, NotPermitted, UsageError
from atoll.host.local import LocalHost
from atoll.schema.deployment import Deployment, ProcessId, State
from atoll.supervise import keeper, records
from atoll.supervise.lastwords import (
    OomKills,
    how_it_ended,
    oom_kills,
    port_was_taken,
    telling_line,
    why,
)
from atoll.supervise.request import Request
from atoll.supervise.start_keeper import start_keeper
from atoll.supervise.stop import listing
from atoll.supervise.supervisor import first_record
from atoll.supervise.termination import end_all, sweep
from tests.parts.fake_host import FakeHost, FakeProcess
from tests.parts.faults import fails
from tests.parts.toy import toy_plan

# ---- last words


def test_the_telling_line_is_the_last_that_speaks_of_an_error() -> None:
    log = (
        "INFO starting\nERROR Master: Failed to bind\njava.net.BindException: Address in use\n"
        "\tat sun.nio.ch.Net.bind0(Native Method)\nINFO bye\n"
    )
    assert telling_line(log) == "java.net.BindException: Address in use"
    assert telling_line("one\ntwo\n") == "two"
    guice = "error\n1) a is defunct\n  at x\n\n2) b was not used\n\n25 errors\n\tat c.d(E.java:1)\n"
    assert telling_line(guice) == "1) a is defunct"
    assert telling_line("25 errors\n") == "25 errors"
    assert telling_line("") == "it wrote nothing"


def test_how_it_ended() -> None:
    assert how_it_ended(3) == "exit status 3"
    assert how_it_ended(-9) == "killed by SIGKILL"


def test_what_the_kernel_killed_for_want_of_memory_is_counted() -> None:
    host = FakeHost({"/proc/vmstat": "nr_free_pages 1\noom_kill 3\noom_kill_x 9\n"})
    assert oom_kills(host) == OomKills(3, own=False)
    assert oom_kills(FakeHost({"/proc/vmstat": "nr_free_pages 1\n"})).number == 0
    assert oom_kills(FakeHost()).number == 0


def test_the_count_of_the_closest_cgroup_comes_first() -> None:
    host = FakeHost(
        {
            "/proc/vmstat": "oom_kill 9\n",
            "/proc/self/cgroup": "0::/a.slice/b.service/c\n",
            "/proc/self/mountinfo": "29 22 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            "/sys/fs/cgroup/a.slice/memory.events": "oom 7\noom_kill 7\n",
            "/sys/fs/cgroup/a.slice/b.service/memory.events": "low 0\noom 3\noom_kill 2\n",
        }
    )
    assert oom_kills(host) == OomKills(2, own=True)


@pytest.mark.parametrize(
    ("status", "words", "killed"),
    [
        (-9, "it wrote nothing", True),
        (1, "LOG:  server process (PID 7) was terminated by signal 9: Killed", True),
        (1, "Command exited with code 137", True),
        (-15, "bye", False),
        (1, "FATAL:  port 9137 is in use", False),
    ],
)
def test_who_was_killed_for_memory(status: int, words: str, killed: bool) -> None:
    ended = how_it_ended(status)
    for own, cause in (
        (True, ": out of memory; the OOM killer acted in its cgroup (see dmesg)"),
        (False, "; the OOM killer ended 2 processes (see dmesg)"),
    ):
        before, now = OomKills(3, own=own), OomKills(5, own=own)
        assert why(status, words, before, now) == (ended + cause if killed else ended)
        assert why(status, words, now, now) == ended


@pytest.mark.parametrize(
    ("line", "taken"),
    [
        ("OSError: [Errno 98] Address already in use", True),
        ("java.net.BindException: x", True),
        ("listening on port 5", False),
    ],
)
def test_a_taken_port_is_recognised(line: str, taken: bool) -> None:
    assert port_was_taken(line) is taken


# ---- ending


def test_sigterm_first_then_sigkill_and_children_born_in_between_too() -> None:
    host = FakeHost()
    first, second = (host.spawn(["x"], env={}, cwd="/", log="/l") for _ in range(2))
    late: list[FakeProcess] = []

    def find() -> list[ProcessId]:
        if host.now_s > 0.5 and not late:
            late.append(host.spawn(["born late"], env={}, cwd="/", log="/l"))
        return [p.id for p in host.processes.values() if p.exit_status is None]

    assert end_all(host, find, grace_s=1.0) == 3
    assert first.signals == [signal.SIGTERM, signal.SIGKILL]
    assert second.exit_status == -9
    assert late[0].signals == [signal.SIGTERM, signal.SIGKILL]


def test_a_subreaper_finds_an_orphan_that_left_its_session() -> None:
    """The tree alone, without a cgroup: setsid and a double fork do not lead out of it."""
    program = """
import os, sys, time
from atoll.host.local import LocalHost
from atoll.host.reaper import become_subreaper, reap
from atoll.supervise.termination import end_descendants
become_subreaper()
reader, writer = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.environ.clear()
        os.write(writer, b"%d" % os.getpid())
        time.sleep(3600)
    os._exit(0)
orphan = int(os.read(reader, 20))
print(end_descendants(LocalHost(), grace_s=1.0, reap=reap) >= 1, LocalHost().identify(orphan))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr) == ("True None\n", "")


def test_who_works_in_a_folder_behind_a_link_is_found(tmp_path: Path) -> None:
    """A cache is often a link to a larger disk; of a process the kernel tells where that leads."""
    disk = tmp_path / "disk"
    (disk / "abcd1234" / "data-0").mkdir(parents=True)
    (tmp_path / "cache").symlink_to(disk)
    scratch = tmp_path / "cache" / "abcd1234"
    request = asked("x", "abcd1234", run_dir="/no/abcd1234", scratch_dir=str(scratch))
    host = LocalHost()
    record = first_record(request, boot_id=records.boot_id(host), cgroup="")
    with subprocess.Popen(["sleep", "3600"], env={}, cwd=scratch / "data-0") as sleeper:
        try:
            assert sweep(host, record, grace_s=1.0) == 1
        finally:
            sleeper.kill()
    assert not (disk / "abcd1234").exists()


# ---- records


def asked(
    name: str, identity: str, *, run_dir: str, scratch_dir: str, log_dir: str = "/l"
) -> Request:
    return Request(
        name=name,
        id=identity,
        plan=toy_plan(1),
        processes=(),
        files={},
        copies={},
        links={},
        endpoints=(),
        run_dir=run_dir,
        scratch_dir=scratch_dir,
        log_dir=log_dir,
        launcher="x",
        environment={},
        start_timeout_s=1,
        grace_s=1,
    )


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "-x", "a" * 33, "a b", "a\n"])
def test_names_that_are_no_names(name: str) -> None:
    with fails(UsageError, name=f"{name!r} cannot"):
        records.check_name(name)


def test_a_lock_is_held_by_one_and_free_when_closed() -> None:
    held = records.try_lock("locked")
    assert held is not None
    assert records.try_lock("locked") is None
    os.close(held)
    again = records.try_lock("locked")
    assert again is not None
    os.close(again)


def test_a_hand_edited_record_cannot_have_other_folders_removed(tmp_path: Path) -> None:
    precious, own = tmp_path / "precious", tmp_path / "abcd1234"
    precious.mkdir()
    own.mkdir()
    request = asked("x", "abcd1234", run_dir=str(precious), scratch_dir=str(own))
    records.remove_folders(first_record(request, boot_id="b", cgroup=""))
    assert precious.exists()
    assert not own.exists()


def test_a_record_from_before_a_restart_is_forgotten() -> None:
    request = asked("old", "00000000", run_dir="/no/00000000", scratch_dir="/no/00000000")
    # This very process would count as its supervisor, were it not for the boot id.
    me = LocalHost().identify(os.getpid())
    record = first_record(request, boot_id="another boot", cgroup="")
    records.write(record.model_copy(update={"supervisor": me, "state": State.READY}))
    assert not (records.folder("old") / "deployment.json").stat().st_mode & 0o077
    found, notices = listing(LocalHost())
    assert "old" not in [each.name for each in found]
    assert any("restarted" in notice for notice in notices)
    assert "old" not in records.names()


def test_what_ends_while_it_is_listed_is_not_listed_as_killed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    request = asked("brief", "00000000", run_dir="/no/00000000", scratch_dir="/no/00000000")
    records.write(first_record(request, boot_id=records.boot_id(LocalHost()), cgroup=""))
    lock = records.try_lock

    def late(name: str) -> int | None:
        records.forget("brief")  # as its keeper does, and then lets go of the lock
        return lock(name)

    monkeypatch.setattr(records, "try_lock", late)
    found, notices = listing(LocalHost())
    assert "brief" not in [*(one.name for one in found), *records.names()]
    assert not [notice for notice in notices if "brief" in notice]


@pytest.mark.parametrize(
    ("number", "kind"),
    [(errno.ENOSPC, DiskFull), (errno.EDQUOT, DiskFull), (errno.EACCES, NotPermitted)],
)
def test_a_lock_that_cannot_be_made_is_one_line(
    number: int, kind: type[AtollError], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: object, *_: object) -> int:
        raise OSError(number, os.strerror(number), path)

    monkeypatch.setattr(os, "open", refuse)
    with fails(kind, path=records.folder("full") / "lock", why=os.strerror(number)):
        records.try_lock("full")


def test_a_link_that_cannot_be_made_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "symlink", refuse)
    link = tmp_path / "up-full"
    with fails(DiskFull, path=link, why=os.strerror(errno.ENOSPC)):
        records.link_run_dir(str(tmp_path / "abcd1234"), "full")


def test_what_fills_the_disk_is_removed_before_its_end_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "abcd1234"
    scratch.mkdir()
    request = asked("full", "abcd1234", run_dir="/no/abcd1234", scratch_dir=str(scratch))
    record = first_record(request, boot_id="b", cgroup="")
    records.write(record)
    write = records.write

    def written(deployment: Deployment) -> None:
        if scratch.exists():
            raise DownloadFailed("No space left on device")
        write(deployment)

    monkeypatch.setattr(records, "write", written)
    keeper._finish_record(record, 1, "/no/log")
    found = records.read("full")
    assert found is not None and found.state is State.FAILED
    assert "the supervisor died (exit status 1)" in found.error
    assert not scratch.exists()
    records.forget("full")


# ---- handing over


def test_the_record_is_there_before_the_keeper(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed before its keeper ran, it is found by its record, and its folders are removed."""
    seen: list[str] = []

    def killed(*_: object, **__: object) -> None:
        seen.extend(records.names())
        raise KeyboardInterrupt  # as near as a test comes to kill -9

    monkeypatch.setattr(subprocess, "Popen", killed)
    monkeypatch.setattr(records, "forget", lambda name: None)
    monkeypatch.setattr(records, "remove_folders", lambda record: None)
    run_dir = tmp_path / "abcd1234"
    run_dir.mkdir()
    request = asked(
        "early",
        "abcd1234",
        run_dir=str(run_dir),
        scratch_dir="/no/abcd1234",
        log_dir=str(records.logs("early")),
    )
    with pytest.raises(KeyboardInterrupt):
        start_keeper(request, LocalHost())
    assert seen == ["early"] and (run_dir / "request.json").exists()
    monkeypatch.undo()
    found, _ = listing(LocalHost())
    (record,) = [one for one in found if one.name == "early"]
    assert record.state is State.FAILED
    assert not run_dir.exists()
    records.forget("early")


def test_a_keeper_that_cannot_be_started_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(subprocess, "Popen", refuse)
    run_dir = tmp_path / "abcd1234"
    run_dir.mkdir()
    request = asked(
        "none",
        "abcd1234",
        run_dir=str(run_dir),
        scratch_dir="/no/abcd1234",
        log_dir=str(records.logs("none")),
    )
    with pytest.raises(OSError, match="temporarily"):
        start_keeper(request, LocalHost())
    assert "none" not in records.names() and not run_dir.exists()
    lock = records.try_lock("none")
    assert lock is not None
    os.close(lock)
