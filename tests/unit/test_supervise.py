"""The parts of supervise that are values: the life of a deployment, places, last words."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.errors import NotPermitted, UsageError
from atoll.host.fake import FakeHost
from atoll.host.local import LocalHost
from atoll.host.topology import read_machine
from atoll.plan.identity import machine_id
from atoll.schema.base import parse
from atoll.schema.deployment import ProcessId, ProcessSpec, Role, State
from atoll.schema.plan import CoordinatorKind, CoordinatorPlace, MemoryPolicy, Plan
from atoll.supervise import records
from atoll.supervise.ending import end_all
from atoll.supervise.lastwords import how_it_ended, port_was_taken, telling_line
from atoll.supervise.launch import clean_environment
from atoll.supervise.lifecycle import (
    Accepts,
    Action,
    Begin,
    Died,
    Event,
    Finish,
    KeeperGone,
    Lifecycle,
    OwnerDetaches,
    OwnerGone,
    OwnerSaysReady,
    Record,
    Start,
    StopAsked,
    Tell,
    TimeUp,
    lifecycle,
    step,
)
from atoll.supervise.place import placed_argv, refuse_foreign, refuse_unfit
from atoll.supervise.ports import free_ports
from atoll.supervise.request import Request
from atoll.supervise.stop import listing
from atoll.supervise.supervisor import first_record
from tests.engines.toy import toy_plan


def spec(name: str, stage: int, slot: int | None = None) -> ProcessSpec:
    return ProcessSpec(
        name=name, role=Role.WORKER, slot=slot, argv=("engine", name), env={}, stage=stage
    )


CLUSTER = (spec("master", 0), spec("w0", 1), spec("w1", 1), spec("driver", 7))


def after(*events: Event) -> tuple[Lifecycle, list[Action]]:
    life = lifecycle(CLUSTER)
    actions: list[Action] = []
    for event in events:
        life, more = step(life, event)
        actions += more
    return life, actions


UP = (Begin(), Accepts("master"), Accepts("w1"), Accepts("w0"), Accepts("driver"))


def test_a_stage_starts_once_all_of_the_one_before_accept() -> None:
    _, actions = after(*UP)
    started = [action.names for action in actions if isinstance(action, Start)]
    assert started == [("master",), ("w0", "w1"), ("driver",)]
    assert actions[-1] == Tell("accepting")
    _, actions = after(*UP[:3])
    assert [action.names for action in actions if isinstance(action, Start)] == started[:2]


def test_ready_is_for_the_owner_to_say() -> None:
    assert after(*UP)[0].state is State.STARTING
    life, actions = after(*UP, OwnerSaysReady())
    assert life.state is State.READY
    assert actions[-2:] == [Record(), Tell("ready")]


def test_a_dead_process_is_named_with_its_last_words() -> None:
    life, actions = after(*UP[:2], Died("w1", "exit status 3", "boom (log: /l)"))
    assert life.state is State.FAILED
    assert life.error == "w1 died (exit status 3) while it started: boom (log: /l)"
    assert actions[-1] == Finish()


def test_the_owners_death_ends_what_is_not_detached() -> None:
    assert after(*UP, OwnerSaysReady(), OwnerGone())[0].state is State.STOPPED
    assert after(*UP, OwnerSaysReady(), OwnerDetaches(), OwnerGone())[0].state is State.READY


def test_time_is_up_only_while_it_starts() -> None:
    life, _ = after(*UP[:3], TimeUp(9))
    assert life.error == "not ready after 9 s: still waiting for w0"
    assert after(*UP, OwnerSaysReady(), TimeUp(9))[0].state is State.READY


EVENTS = st.sampled_from(
    [
        *UP,
        Accepts("nobody"),
        Died("w0", "exit status 1", "x"),
        OwnerSaysReady(),
        OwnerDetaches(),
        OwnerGone(),
        StopAsked(),
        KeeperGone(),
        TimeUp(1),
    ]
)


@given(st.lists(EVENTS, max_size=20))
def test_whatever_happens_it_ends_at_most_once_and_starts_nothing_after(
    events: list[Event],
) -> None:
    life, actions = after(*events)
    assert actions.count(Finish()) == int(life.over)
    if life.over:
        assert actions[-1] == Finish()
    started = [name for action in actions if isinstance(action, Start) for name in action.names]
    if events.count(Begin()) <= 1:
        assert len(started) == len(set(started))


# ---- places


def slotted(**changes: object) -> Plan:
    plan = toy_plan(1)
    slot = plan.slots[0].model_copy(update=changes)
    return plan.model_copy(update={"slots": (slot,)})


@pytest.mark.parametrize(
    ("changes", "flags"),
    [
        ({"cpus": None}, []),
        ({"cpus": (0, 1, 2, 8)}, ["-C", "0-2,8"]),
        ({"cpus": (1,), "memory_policy": MemoryPolicy.LOCAL}, ["-C", "1", "-l"]),
        (
            {"cpus": (1,), "memory_policy": MemoryPolicy.BIND, "memory_nodes": (0, 1)},
            ["-C", "1", "-m", "0-1"],
        ),
        (
            {"cpus": None, "memory_policy": MemoryPolicy.INTERLEAVE, "memory_nodes": (0, 2)},
            ["-i", "0,2"],
        ),
        (
            {"cpus": (1,), "memory_policy": MemoryPolicy.PREFERRED, "memory_nodes": (3,)},
            ["-C", "1", "-p", "3"],
        ),
        (
            {
                "cpus": (1,),
                "memory_policy": MemoryPolicy.WEIGHTED_INTERLEAVE,
                "memory_nodes": (0, 1),
            },
            ["-C", "1", "-w", "0-1"],
        ),
    ],
)
def test_a_slot_becomes_flags(changes: dict[str, object], flags: list[str]) -> None:
    argv = placed_argv("/bin/atoll-exec", slotted(**changes), spec("w0", 0, slot=0))
    assert argv == ["/bin/atoll-exec", *flags, "--", "engine", "w0"]


def test_the_coordinator_has_a_place_of_its_own() -> None:
    place = CoordinatorPlace(kind=CoordinatorKind.RESERVED, cpus=(5,), memory_nodes=(1,))
    plan = toy_plan(1).model_copy(update={"coordinator": place})
    argv = placed_argv("x", plan, spec("master", 0))
    assert argv[:6] == ["x", "-C", "5", "-m", "1", "--"]


@pytest.mark.parametrize(
    ("slot", "changes", "said"),
    [
        (1, {"index": 0}, "slot 0 stands at place 1"),
        (0, {"index": -1}, "slot -1 stands at place 0"),
        (0, {"cpus": []}, "slot 0 has no CPU"),
        (0, {"cpus": [3, 5]}, "CPU 5 is in several slots"),
        (1, {"threads": 0}, "slot 1 needs at least one thread"),
        (1, {"heap_bytes": -5}, "slot 1 needs at least one thread and some heap"),
    ],
)
def test_a_plan_that_was_edited_wrongly_is_refused(
    slot: int, changes: dict[str, object], said: str
) -> None:
    raw = json.loads(toy_plan(2).model_dump_json())
    for place, each in enumerate(raw["slots"]):
        each["cpus"] = [4 + place]
    parse(Plan, json.dumps(raw), where="p.json")
    raw["slots"][slot].update(changes)
    with pytest.raises(UsageError, match=rf"p\.json: .*{said}"):
        parse(Plan, json.dumps(raw), where="p.json")


def test_an_emptied_path_leaves_engines_their_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/mine")
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Xmx1m")
    assert clean_environment()["PATH"] == f"/mine:{os.defpath}"
    assert "JAVA_TOOL_OPTIONS" not in clean_environment()
    monkeypatch.delenv("PATH")
    assert clean_environment()["PATH"] == os.defpath


def machine(online: str, allowed: frozenset[int], nodes: str = "0") -> FakeHost:
    return FakeHost(
        {
            "/sys/devices/system/cpu/online": online,
            "/proc/self/status": f"Mems_allowed_list:\t{nodes}\n",
        },
        affinity=allowed,
    )


def test_what_the_machine_does_not_have_or_allow_is_refused() -> None:
    plan = slotted(cpus=(2, 3), memory_nodes=(1,), memory_policy=MemoryPolicy.BIND)
    refuse_unfit(plan, machine("0-3", frozenset({2, 3}), "0-1"))
    with pytest.raises(NotPermitted, match=r"CPUs 3 of the plan are offline"):
        refuse_unfit(plan, machine("0-2", frozenset({0, 1, 2})))
    with pytest.raises(NotPermitted, match=r"CPUs 2 of the plan are outside .* \(0-1,3\)"):
        refuse_unfit(plan, machine("0-3", frozenset({0, 1, 3})))
    with pytest.raises(NotPermitted, match=r"memory nodes 1 of the plan"):
        refuse_unfit(plan, machine("0-3", frozenset({2, 3}), "0"))


def test_a_cpu_that_went_offline_makes_no_other_machine() -> None:
    """Without its CPU 1 the machine has another identity; that is not what the user must hear."""
    whole = read_machine(synthetic="Package:2 L3:1 Core:2 PU:1")
    core = whole.cores[1]
    asleep = whole.model_copy(
        update={"cores": tuple(c for c in whole.cores if c is not core), "offline_cpus": core.pus}
    )
    plan = slotted(cpus=(0, 1), memory_nodes=()).model_copy(
        update={"machine_id": machine_id(whole)}
    )
    refuse_foreign(plan, whole)
    with pytest.raises(NotPermitted, match=r"CPUs 1 of the plan are offline .*online: 0,2-3\)"):
        refuse_foreign(plan, asleep)
    unmasked = plan.slots[0].model_copy(update={"cpus": None})
    with pytest.raises(UsageError, match=r"another machine .* CPUs 1 offline\); make it anew"):
        refuse_foreign(plan.model_copy(update={"slots": (unmasked,)}), asleep)


def test_free_ports_are_different_and_can_be_bound() -> None:
    assert len(set(free_ports(50))) == 50
    assert free_ports(0) == ()


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
    late: list[int] = []

    def find() -> list[ProcessId]:
        if host.now_s > 0.5 and not late:
            late.append(host.spawn(["born late"], env={}, cwd="/", log="/l"))
        return [p.id for p in host.processes.values() if p.exit_status is None]

    assert end_all(host, find, grace_s=1.0) == 3
    assert host.processes[first].signals == [signal.SIGTERM, signal.SIGKILL]
    assert host.processes[second].exit_status == -9
    assert host.processes[late[0]].signals == [signal.SIGTERM, signal.SIGKILL]


def test_a_subreaper_finds_an_orphan_that_left_its_session() -> None:
    """The tree alone, without a cgroup: setsid and a double fork do not lead out of it."""
    program = """
import os, sys, time
from atoll.host.local import LocalHost
from atoll.host.reaper import become_subreaper, reap
from atoll.supervise.ending import end_descendants
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


# ---- records


def asked(name: str, identity: str, *, run_dir: str, scratch_dir: str) -> Request:
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
        log_dir="/l",
        launcher="x",
        environment={},
        start_timeout_s=1,
        grace_s=1,
    )


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "-x", "a" * 33, "a b", "a\n"])
def test_names_that_are_no_names(name: str) -> None:
    with pytest.raises(UsageError):
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
