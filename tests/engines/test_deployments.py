"""Real processes, started and killed in every way: nothing may linger, and nothing else may go.

The engine is the toy of toy.py. What is left of a deployment is looked for from outside, by
the mark that every process of it carries in its environment.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from atoll.cli import cli
from atoll.errors import AtollError, EngineFailed, NotPermitted, UsageError
from atoll.host.local import LocalHost
from atoll.host.procfs import parse_stat
from atoll.schema.deployment import Deployment, State
from atoll.schema.plan import Placement
from atoll.supervise import records
from atoll.supervise.launch import Running, launch
from atoll.supervise.stop import down, listing
from tests.engines.toy import THREADS, ToyEngine, this_machine, toy_plan

ROOT = Path(__file__).resolve().parents[2]
HOST = LocalHost()
PATIENCE_S = 30.0


def start(name: str, engine: ToyEngine | None = None, workers: int = 2) -> Running:
    return launch(
        toy_plan(workers),
        engine or ToyEngine(),
        machine=this_machine(),
        host=HOST,
        name=name,
        grace_s=1.0,
    )


def left_over(name: str) -> list[str]:
    """Living processes of a deployment of that name, its keeper and supervisor too."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            environ = Path(f"/proc/{entry}/environ").read_bytes()
            command = Path(f"/proc/{entry}/cmdline").read_bytes()
            stat = parse_stat(Path(f"/proc/{entry}/stat").read_text())
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        of_it = f"ATOLL_DEPLOYMENT={name}:".encode() in environ
        if stat.lives and (of_it or request_of(name, command)):
            found.append(f"{entry} {stat.comm} {command.replace(bytes(1), b' ')!r}")
    return found


def request_of(name: str, command: bytes) -> bool:
    """Whether it is the keeper or the supervisor of that name."""
    words = command.decode(errors="replace").split("\0")
    if "atoll.supervise.keeper" not in words:
        return False
    try:
        text = Path(words[words.index("atoll.supervise.keeper") + 1]).read_text()
    except FileNotFoundError:
        return False
    return f'"name":"{name}"' in text


def until(what: Callable[[], bool], saying: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < deadline, saying()
        time.sleep(0.05)


def until_gone(name: str) -> None:
    until(lambda: not left_over(name), lambda: left_over(name))
    lock = None

    def is_free() -> bool:
        nonlocal lock
        lock = records.try_lock(name)
        return lock is not None

    until(is_free, lambda: f"{name}: locked")
    assert lock is not None
    os.close(lock)


class Owner:
    """A process of its own that launches the toy, so that it can be killed."""

    def __init__(self, name: str, *flags: str) -> None:
        self.name = name
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.engines.toy", "owner", "--name", name, *flags],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def until_says(self, line: str) -> None:
        assert self.process.stdout is not None
        heard = []
        for said in self.process.stdout:
            heard.append(said)
            if line in said:
                return
        raise AssertionError("".join(heard))

    def record(self) -> Deployment:
        record = records.read(self.name)
        assert record is not None
        return record


@contextmanager
def owner(name: str, *flags: str) -> Iterator[Owner]:
    held = Owner(name, *flags)
    try:
        yield held
    finally:
        held.process.kill()
        held.process.communicate()
        if name in records.names():
            down(name, HOST)
        assert not left_over(name)


def atoll(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


def message(result: Result) -> str:
    assert isinstance(result.exception, AtollError), result.output
    return str(result.exception)


# ---- up, and down again


def test_up_is_ready_with_all_instances_in_and_leaves_nothing() -> None:
    with start("plain", ToyEngine(worker_flags=("--grandchild",)), workers=3) as running:
        assert [client.instances(timeout_s=5) for client in running.clients] == [3]
        record = running.deployment
        assert record.state is State.READY
        assert [p.spec.name for p in record.processes] == [
            "coordinator",
            *(f"worker-{i}" for i in range(3)),
        ]
        assert Path(record.run_dir, "conf/toy.conf").read_text() == "x=1\n"
        assert len(left_over("plain")) == 4 + 3 + 2
    assert left_over("plain") == []
    assert not Path(record.run_dir).exists()
    assert not Path(record.scratch_dir).exists()
    assert "plain" not in records.names()
    assert (records.logs("plain") / "worker-2.log").exists()
    if record.cgroup:
        assert not Path(record.cgroup).exists()


def test_a_process_that_ignores_sigterm_is_killed() -> None:
    with start("stubborn", ToyEngine(worker_flags=("--grandchild", "--stubborn"))):
        pass
    assert left_over("stubborn") == []


def test_down_ends_one_deployment_and_no_other() -> None:
    with start("left") as left, start("right") as right:
        down("left", HOST)
        with pytest.raises(EngineFailed, match="left: was ended from outside"):
            left.check(wait_s=PATIENCE_S)
        assert left_over("left") == []
        right.check()
        assert right.clients[0].instances(timeout_s=5) == 2


def test_a_name_in_use_is_refused_and_the_first_stays() -> None:
    with start("twice") as running:
        with pytest.raises(UsageError, match="'twice' is up"):
            start("twice")
        running.check()
        assert running.clients[0].instances(timeout_s=5) == 2


def test_a_detached_deployment_outlives_its_owner_until_down() -> None:
    with owner("detached", "--detach") as held:
        held.until_says("ready")
        assert held.process.wait(PATIENCE_S) == 0
        listed = {d.name: d.state for d in listing(HOST)[0]}
        assert listed["detached"] is State.READY
        assert atoll("verify", "detached").exit_code == 0
        result = atoll("down", "detached")
        assert (result.exit_code, result.stdout) == (0, "detached: down\n")
        assert left_over("detached") == []


# ---- what goes wrong while it starts


def test_a_worker_that_dies_is_named_with_its_last_words() -> None:
    words = r"dies: worker-\d died \(exit status 3\).*ValueError: the toy is broken \(log: /.*log\)"
    with (
        pytest.raises(EngineFailed, match=words),
        start("dies", ToyEngine(worker_flags=("--die",))) as running,
    ):
        running.check(wait_s=PATIENCE_S)
    assert left_over("dies") == []
    assert "dies" not in records.names()


def test_a_port_in_use_is_tried_once_more_with_another() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        engine = ToyEngine()
        engine.port_of = lambda port: taken.getsockname()[1] if engine.layouts == 1 else port
        with start("once-more", engine):
            assert engine.layouts == 2


def test_a_port_that_stays_in_use_is_an_error_of_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        engine = ToyEngine(port_of=lambda port: int(taken.getsockname()[1]))
        with pytest.raises(EngineFailed, match=r"coordinator died.*Address already in use"):
            start("taken", engine)
    assert left_over("taken") == []


def test_not_ready_in_time_says_what_is_missing() -> None:
    with pytest.raises(EngineFailed, match=r"not ready after 2 s.*0 of 2 worker instances are in"):
        launch(
            toy_plan(2),
            ToyEngine(worker_flags=("--mute",)),
            machine=this_machine(),
            host=HOST,
            name="mute",
            start_timeout_s=2.0,
            grace_s=1.0,
        )
    assert left_over("mute") == []


def test_a_plan_of_another_machine_is_refused() -> None:
    plan = toy_plan().model_copy(update={"machine_id": "0123456789abcdef"})
    with pytest.raises(UsageError, match="another machine"):
        launch(plan, ToyEngine(), machine=this_machine(), host=HOST, name="foreign")


def test_cpus_that_are_not_there_are_refused() -> None:
    plan = toy_plan(1)
    slot = plan.slots[0].model_copy(update={"cpus": (100_000,)})
    with pytest.raises(NotPermitted, match="CPUs 100000 of the plan are offline"):
        launch(
            plan.model_copy(update={"slots": (slot,)}),
            ToyEngine(),
            machine=this_machine(),
            host=HOST,
            name="absent",
        )


# ---- kill -9, of everybody, at every time


@pytest.mark.parametrize("moment", ["starting worker-1", "ready"])
@pytest.mark.parametrize("victim", ["owner", "supervisor", "keeper"])
def test_nothing_lingers_after_kill_9(victim: str, moment: str) -> None:
    name = f"k9-{victim}-{moment.split()[0]}"
    with owner(name, "--grandchild", "--stubborn") as held:
        held.until_says(moment)
        record = held.record()
        assert record.supervisor is not None
        assert record.keeper is not None
        pid = {
            "owner": held.process.pid,
            "supervisor": record.supervisor.pid,
            "keeper": record.keeper.pid,
        }[victim]
        os.kill(pid, signal.SIGKILL)
        until_gone(name)
        assert not Path(record.run_dir).exists()
        if record.cgroup:
            assert not Path(record.cgroup).exists()


@pytest.mark.parametrize(
    ("victim", "why"),
    [
        ("supervisor", r"told: the supervisor died \(killed by SIGKILL\)"),
        ("keeper", r"told: its keeper was killed"),
    ],
)
def test_the_owner_is_told_why(victim: str, why: str) -> None:
    with start("told") as running:
        record = running.deployment
        process = record.supervisor if victim == "supervisor" else record.keeper
        assert process is not None
        os.kill(process.pid, signal.SIGKILL)
        with pytest.raises(EngineFailed, match=why):
            running.check(wait_s=PATIENCE_S)


@pytest.mark.parametrize("way", ["ps", "down", "up"])
def test_what_a_killed_keeper_and_supervisor_leave_is_ended_by_the_next_command(way: str) -> None:
    name = f"both-{way}"
    with owner(name, "--grandchild", "--detach") as held:
        held.until_says("ready")
        held.process.wait(PATIENCE_S)
        record = held.record()
        assert record.supervisor is not None
        assert record.keeper is not None
        # Stopped first, so that neither can act on the death of the other.
        for process in (record.keeper, record.supervisor):
            os.kill(process.pid, signal.SIGSTOP)
        for process in (record.keeper, record.supervisor):
            os.kill(process.pid, signal.SIGKILL)
        until(lambda: HOST.identify(record.supervisor.pid) is None, lambda: record)  # type: ignore[union-attr]
        assert left_over(name)
        if way == "ps":
            listed = {d.name: d for d in listing(HOST)[0]}
            assert listed[name].state is State.FAILED
            assert "were killed" in listed[name].error
        elif way == "down":
            down(name, HOST)
        else:
            with start(name) as running:
                running.check()
        assert left_over(name) == []
        assert not Path(record.run_dir).exists()


def test_a_detached_deployment_whose_worker_dies_is_listed_as_failed() -> None:
    with owner("sick", "--detach") as held:
        held.until_says("ready")
        held.process.wait(PATIENCE_S)
        victim = next(p.id for p in held.record().processes if p.spec.name == "worker-1")
        assert victim is not None
        os.kill(victim.pid, signal.SIGKILL)
        until_gone("sick")
        record = held.record()
        assert record.state is State.FAILED
        assert "worker-1 died (killed by SIGKILL) while it was up" in record.error
        result = atoll("ps")
        assert "sick" in result.stdout
        assert "failed" in result.stdout


# ---- interrupts


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("moment", ["starting coordinator", "waiting for all", "ready"])
def test_an_interrupt_at_any_stage_leaves_nothing(moment: str, number: signal.Signals) -> None:
    name = f"int-{number.name}-{moment.split()[0]}"
    flags = ("--grandchild",) if moment == "ready" else ("--grandchild", "--mute")
    with owner(name, *flags) as held:
        held.until_says(moment)
        held.process.send_signal(number)
        assert held.process.wait(PATIENCE_S) == 130
        assert left_over(name) == []
        assert name not in records.names()


# ---- verify


def test_verify_sees_every_thread() -> None:
    with start("seen", ToyEngine(worker_flags=("--grandchild",))) as running:
        found = running.verify()
        assert found.drifted == 0
        assert found.missing == ()
        by_process: dict[str, int] = {}
        for thread in found.threads:
            by_process[thread.process] = by_process.get(thread.process, 0) + 1
        # The threads, the main thread, and the orphaned grandchild.
        assert by_process["worker-0"] == by_process["worker-1"] == THREADS + 2


def test_verify_names_the_thread_that_drifted() -> None:
    with start("moved") as running:
        worker = next(p.id for p in running.deployment.processes if p.spec.name == "worker-1")
        assert worker is not None
        tid = max(int(name) for name in os.listdir(f"/proc/{worker.pid}/task"))
        everything = os.sched_getaffinity(0)
        slot = toy_plan().slots[1].cpus
        assert slot is not None
        if set(slot) == everything:
            pytest.skip("needs two CPUs: a thread cannot drift on one")
        os.sched_setaffinity(tid, everything)
        drifted = [thread for thread in running.verify().threads if thread.drifted]
        assert [(thread.process, thread.pid, thread.tid) for thread in drifted] == [
            ("worker-1", worker.pid, tid)
        ]
        result = atoll("verify", "moved")
        assert "1 found elsewhere" in message(result)
        assert f"tid {tid} " in result.stdout


def test_verify_of_wim_wants_everything_that_is_allowed() -> None:
    with launch(
        toy_plan(1, masked=False, placement=Placement.NONE),
        ToyEngine(),
        machine=this_machine(),
        host=HOST,
        name="wim",
        grace_s=1.0,
    ) as running:
        assert running.verify().drifted == 0
        worker = next(p.id for p in running.deployment.processes if p.spec.name == "worker-0")
        assert worker is not None
        if len(os.sched_getaffinity(0)) > 1:
            os.sched_setaffinity(worker.pid, {min(os.sched_getaffinity(0))})
            assert running.verify().drifted == 1


# ---- the commands


def test_ps_as_table_and_json_fits_a_terminal() -> None:
    with start("listed"):
        table = atoll("ps")
        assert table.exit_code == 0
        assert max(map(len, table.stdout.splitlines())) <= 80
        assert "listed" in table.stdout
        assert '"state": "ready"' in atoll("ps", "--json").stdout


def test_down_of_an_unknown_name_lists_the_known() -> None:
    with start("known"):
        assert "known: known" in message(atoll("down", "nobody"))
        assert "known: known" in message(atoll("verify", "nobody"))


def test_up_refuses_a_plan_of_another_version(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(toy_plan().model_dump_json().replace('"version":1', '"version":9'))
    assert "version 9 cannot be read" in message(atoll("up", str(path)))
