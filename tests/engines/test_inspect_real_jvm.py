"""Real JVMs asked for their flags, and left alone where asking could harm them."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from atoll.engines.java import find_java
from atoll.errors import EngineFailed
from atoll.host import jvm_attach
from atoll.host.local import LocalHost
from atoll.inspect.jvm import look_at_jvm
from atoll.install import installed
from atoll.plan import make_plan
from atoll.plan.jvm import gc_threads
from atoll.schema.inspection import JvmLook
from tests.parts.deployment import until
from tests.parts.jvm_program import write_program
from tests.parts.live_process import live
from tests.parts.machines import plain
from tests.parts.plan import DISTRIBUTED

pytestmark = pytest.mark.installed

HOST = LocalHost()


@pytest.fixture(scope="module")
def java() -> str:
    try:
        return find_java(
            HOST, major=17, wanted_by="spark", engine="spark", part=installed("openjdk-17")
        )[0]
    except EngineFailed as fault:
        pytest.skip(str(fault))


@contextmanager
def jvm(java: str, folder: Path, *options: str, environment: str = "") -> Iterator[int]:
    """A JVM that must still live at the end, with nothing said but what it says by itself."""
    argv = [java, "-Xmx64m", *options, *write_program(folder)]
    output = folder / "out"
    with live(argv, output, env={"JDK_JAVA_OPTIONS": environment}) as pid:
        before = output.read_text()
        yield pid
        assert HOST.identify(pid) is not None
        assert output.read_text() == before  # no dump of its stacks
        assert not list(Path("/tmp").glob(f".attach_pid{pid}"))
        assert not Path(f"/proc/{pid}/cwd/.attach_pid{pid}").exists()
    Path(f"/tmp/.java_pid{pid}").unlink(missing_ok=True)


def looked_at(pid: int) -> JvmLook:
    look = look_at_jvm(HOST, pid, timeout_s=30)
    assert look is not None
    return look


def test_what_a_jvm_made_of_its_flags(java: str, tmp_path: Path) -> None:
    options = ("-XX:ActiveProcessorCount=3", "-XX:+UseSerialGC", "-XX:+UseTransparentHugePages")
    with jvm(java, tmp_path, *options) as pid:
        look = looked_at(pid)
        assert looked_at(pid) == look  # the second time without a signal
    assert look.version.startswith("17.")
    assert (look.processors, look.processors_asked) == (3, 3)
    assert (look.use_numa, look.use_numa_asked) == (False, False)
    assert (look.collector, look.max_heap_bytes) == ("Serial", 64 << 20)
    assert look.transparent_huge_pages


def test_use_numa_turns_itself_off_on_one_node(java: str, tmp_path: Path) -> None:
    nodes = [name for name in os.listdir("/sys/devices/system/node") if name[4:].isdigit()]
    with jvm(java, tmp_path, "-XX:+UseParallelGC", environment="-XX:+UseNUMA") as pid:
        look = looked_at(pid)
    assert look.use_numa_asked
    assert look.use_numa is (len(nodes) > 1)
    assert look.collector == "Parallel"
    assert look.processors in range(1, len(os.sched_getaffinity(0)) + 1)  # a quota counts too
    assert look.processors_asked is None


def test_many_askers_at_once_wake_it_once(java: str, tmp_path: Path) -> None:
    with jvm(java, tmp_path) as pid, ThreadPoolExecutor(6) as pool:
        asked = [pool.submit(HOST.ask_jvm, pid, "VM.version", timeout_s=30) for _ in range(6)]
        assert all("version 17." in each.result() for each in asked)


def test_a_file_that_goes_while_it_is_looked_at_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """As another asker's does once it has attached."""
    pid = os.getpid()
    others = Path(f"/tmp/.attach_pid{pid}")

    def too_late(path: str) -> os.stat_result:
        Path(path).unlink()
        raise FileNotFoundError

    status = Path("/proc/self/status").read_text()
    others.touch()
    with monkeypatch.context() as patch:
        patch.setattr(os, "lstat", too_late)
        with jvm_attach._attach_file(pid, str(pid), status) as ours:
            assert ours and others.exists()
    assert not others.exists()


def test_a_file_left_behind_does_not_stop_us(java: str, tmp_path: Path) -> None:
    with jvm(java, tmp_path) as pid:
        left = Path(f"/tmp/.attach_pid{pid}")
        left.touch()
        assert "version 17." in HOST.ask_jvm(pid, "VM.version", timeout_s=30)
        assert left.exists()  # not ours
        left.unlink()


def test_a_jvm_without_signals_is_not_signalled(java: str, tmp_path: Path) -> None:
    with jvm(java, tmp_path, "-Xrs") as pid:
        listens = Path(f"/tmp/.java_pid{pid}")  # from the start, in a thread of its own
        until(listens.exists, lambda: "it does not listen")
        listens.unlink()
        with pytest.raises(PermissionError, match="-Xrs"):
            look_at_jvm(HOST, pid)


def test_a_jvm_that_does_not_attach_is_left_alone(java: str, tmp_path: Path) -> None:
    (tmp_path / "options").write_text("-XX:+DisableAttachMechanism\n")
    for options in (["-XX:+DisableAttachMechanism"], [f"@{tmp_path}/options"]):
        with (
            jvm(java, tmp_path, *options) as pid,
            pytest.raises(PermissionError, match="DisableAttachMechanism"),
        ):
            look_at_jvm(HOST, pid)


def test_a_stopped_jvm_is_not_signalled(java: str, tmp_path: Path) -> None:
    with jvm(java, tmp_path) as pid:
        os.kill(pid, signal.SIGSTOP)
        os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOWAIT)
        with pytest.raises(PermissionError, match="stopped"):
            look_at_jvm(HOST, pid)
        os.kill(pid, signal.SIGCONT)
        assert looked_at(pid).collector


def test_a_jvm_that_hangs_is_given_up(java: str, tmp_path: Path) -> None:
    with jvm(java, tmp_path) as pid:
        assert looked_at(pid).collector  # its socket is there
        os.kill(pid, signal.SIGSTOP)
        os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOWAIT)
        with pytest.raises(TimeoutError):
            look_at_jvm(HOST, pid, timeout_s=0.2)
        os.kill(pid, signal.SIGCONT)


def test_a_command_that_it_does_not_know(java: str, tmp_path: Path) -> None:
    with jvm(java, tmp_path) as pid, pytest.raises(OSError, match="Unknown diagnostic command"):
        HOST.ask_jvm(pid, "VM.nonsense", timeout_s=30)


def test_what_is_no_jvm_is_not_asked() -> None:
    assert look_at_jvm(HOST, os.getpid()) is None
    with pytest.raises(PermissionError, match="not a HotSpot"):
        HOST.ask_jvm(os.getpid(), "VM.version", timeout_s=1)


@pytest.mark.parametrize("threads", [1, 2, 8, 9, 24, 48, 96])
def test_a_jvm_has_as_many_gc_threads_as_a_decomposition_counts(java: str, threads: int) -> None:
    options = [f"-XX:ActiveProcessorCount={threads}", "-XX:+UseG1GC", "-XX:-UsePerfData"]
    done = HOST.run([java, *options, "-XX:+PrintFlagsFinal", "-version"], timeout_s=60)
    flags = dict(re.findall(r"(\w+GCThreads)\s+= (\d+)", done.stdout))
    (slot,) = make_plan(plain(threads, memory_gib=64), DISTRIBUTED, "wim").slots
    found = gc_threads([slot])
    assert flags["ParallelGCThreads"] == str(found.parallel)
    assert flags["ConcGCThreads"] == str(found.concurrent)
