"""Deployments of real processes: up, verify, down, and what goes wrong while one starts.

The engine is the toy of toy.py. What happens when they are killed is tested in
test_deployments_killed.py.
"""

from __future__ import annotations

import os
import re
import signal
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from atoll.engines.api import Layout
from atoll.errors import EngineFailed, NotPermitted, UsageError
from atoll.schema.deployment import State, UpOptions
from atoll.schema.plan import Placement
from atoll.store.paths import cache_dir, run_dir
from atoll.supervise import records
from atoll.supervise.launch import launch
from atoll.supervise.stop import down, listing
from tests.parts.deployment import (
    HOST,
    PATIENCE_S,
    atoll,
    left_over,
    message,
    owner,
    start,
    until_gone,
)
from tests.parts.toy import THREADS, ToyEngine, this_machine, toy_plan

# ---- up, and down again


def test_up_is_ready_with_all_instances_in_and_leaves_nothing() -> None:
    with start("plain", ToyEngine(worker_flags=("--grandchild",)), workers=3) as running:
        assert [client.instances(timeout_s=PATIENCE_S) for client in running.clients] == [3]
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
        with pytest.raises(EngineFailed, match="left"):
            left.check(wait_s=PATIENCE_S)
        assert left_over("left") == []
        right.check()
        assert right.clients[0].instances(timeout_s=PATIENCE_S) == 2


def test_a_name_in_use_is_refused_and_the_first_stays() -> None:
    with start("twice") as running:
        with pytest.raises(UsageError, match="'twice'"):
            start("twice")
        running.check()
        assert running.clients[0].instances(timeout_s=PATIENCE_S) == 2


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
        with pytest.raises(EngineFailed, match=r"coordinator.*Address already in use"):
            start("taken", engine)
    assert left_over("taken") == []


def test_not_ready_in_time_says_what_is_missing() -> None:
    said = ""
    wanted = "waiting for the engine; last status: 0 of 2 worker instances in"
    for limit_s in (2.0, 10.0, 60.0):  # the coordinator may need all of a short one
        with pytest.raises(EngineFailed, match=f"{limit_s:.0f} s") as caught:
            launch(
                toy_plan(2),
                ToyEngine(worker_flags=("--mute",)),
                machine=this_machine(),
                host=HOST,
                name="mute",
                options=UpOptions(timeout_s=limit_s),
                grace_s=1.0,
            )
        assert left_over("mute") == []
        said = str(caught.value)
        # It may have come up at the last moment, its workers not, or not have been asked yet.
        if not re.search(r"for (coordinator|worker)|no answer yet|Errno|the engine$", said):
            break
    assert said.endswith(wanted)


@pytest.mark.parametrize(
    ("between", "heard"),
    [(0, "0 of 2 worker instances in"), (None, "the toy does not know")],
)
def test_instances_that_drop_out_again_are_waited_for(between: int | None, heard: str) -> None:
    said: list[str] = []
    engine = ToyEngine(settles_s=0.5, counts=[between, 2])  # the last comes first
    with start("settles", engine, progress=said.append):
        assert engine.counts == []
    whole = "2 of 2 worker instances in; checking that they stay (0.5 s)"
    assert [line for line in said if line in (whole, heard)][:3] == [whole, heard, whole]


def test_a_plan_of_another_machine_is_refused() -> None:
    plan = toy_plan().model_copy(update={"machine_id": "0123456789abcdef"})
    with pytest.raises(UsageError, match="atoll plan"):
        launch(plan, ToyEngine(), machine=this_machine(), host=HOST, name="foreign")


def test_cpus_that_are_not_there_are_refused() -> None:
    plan = toy_plan(1)
    slot = plan.slots[0].model_copy(update={"cpus": (100_000,)})
    with pytest.raises(NotPermitted, match="100000"):
        launch(
            plan.model_copy(update={"slots": (slot,)}),
            ToyEngine(),
            machine=this_machine(),
            host=HOST,
            name="absent",
        )


def test_a_state_folder_that_cannot_be_made_leaves_no_other_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    # A folder of the temporary one would be too long for sockets, and not be used.
    private = Path(os.environ["XDG_RUNTIME_DIR"], "x")
    private.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(private))
    with pytest.raises(NotPermitted, match="cannot make this folder"):
        start("nowhere")
    assert list(cache_dir("scratch").iterdir()) == []
    assert list(run_dir().iterdir()) == []


def test_a_fault_of_the_supervisor_is_told_with_its_words() -> None:
    class Unwritable(ToyEngine):
        def layout(self, *arguments: Any, **named: Any) -> Layout:
            made = super().layout(*arguments, **named)
            return replace(made, files={"conf": "", "conf/below-a-file": ""})

    with pytest.raises(EngineFailed, match=r"supervisor.*exit status 1.*conf.*/"):
        start("unwritable", Unwritable())
    assert left_over("unwritable") == []
    assert "unwritable" not in records.names()


def test_to_detach_what_has_died_is_a_fault_and_no_success() -> None:
    with start("too-late") as running:
        supervisor = running.deployment.supervisor
        assert supervisor is not None
        os.kill(supervisor.pid, signal.SIGKILL)
        until_gone("too-late")
        with pytest.raises(EngineFailed, match="supervisor"):
            running.detach()


# ---- verify


def test_verify_sees_every_thread() -> None:
    with start("seen", ToyEngine(worker_flags=("--grandchild",))) as running:
        found = running.verify()
        assert found.drifted == 0
        assert found.missing == ()
        by_process: dict[str, int] = {}
        for process in found.processes:
            by_process[process.process] = by_process.get(process.process, 0) + len(process.threads)
        # The threads, the main thread, and the orphaned grandchild.
        assert by_process["worker-0"] == by_process["worker-1"] == THREADS + 2


def test_verify_names_the_thread_that_drifted() -> None:
    with start("moved") as running:
        worker = next(p.id for p in running.deployment.processes if p.spec.name == "worker-1")
        assert worker is not None
        tid = max(int(name) for name in os.listdir(f"/proc/{worker.pid}/task"))
        everything = os.sched_getaffinity(0)
        if len(everything) < 2:
            pytest.skip("needs two CPUs: a thread cannot drift on one")
        os.sched_setaffinity(tid, everything)
        for deep in (True, False):
            drift = running.verify(deep=deep).drift
            assert [(f.code, f.process, f.pid, f.tid) for f in drift] == [
                ("thread-outside", "worker-1", worker.pid, tid)
            ]
        for command in (("verify", "moved"), ("inspect", "moved")):
            result = atoll(*command)
            assert message(result).startswith("threads or mappings not where") and ": 1" in message(
                result
            )
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
