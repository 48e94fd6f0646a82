"""The parts of supervise that are values: the life of a deployment, and places."""

from __future__ import annotations

import json
import os
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.errors import EngineFailed, NotPermitted, UsageError
from atoll.host.caller import clean_environment
from atoll.host.ports import free_ports
from atoll.host.processes import Finished
from atoll.host.topology import read_machine
from atoll.plan.identity import machine_id
from atoll.schema.base import parse
from atoll.schema.deployment import ProcessSpec, Role, State
from atoll.schema.plan import (
    CoordinatorKind,
    CoordinatorPlace,
    HugePages,
    Malloc,
    MemoryPolicy,
    Plan,
)
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
from tests.parts.fake_host import FakeHost
from tests.parts.faults import fails
from tests.parts.toy import toy_plan


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


def test_a_killed_process_has_no_last_words() -> None:
    life, _ = after(*UP, OwnerSaysReady(), Died("w1", "killed by SIGKILL", ""))
    assert life.error == "w1 died (killed by SIGKILL) while it was up"


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


def test_every_process_gets_the_deployments_malloc_and_huge_pages() -> None:
    plan = toy_plan().model_copy(update={"malloc": Malloc.JEMALLOC, "thp": HugePages.NEVER})
    for process in (spec("w0", 0, slot=0), spec("master", 0)):
        argv = placed_argv("x", plan, process)
        border = argv.index("--")
        assert argv[border - 3 : border] == ["--malloc", "jemalloc", "--no-thp"]
    host = FakeHost(on_run=lambda argv: Finished(0, "mimalloc\t/lib/libmimalloc.so.2\n", ""))
    with fails(UsageError, malloc="jemalloc"):
        refuse_unfit(plan, host)


def test_the_coordinator_has_a_place_of_its_own() -> None:
    place = CoordinatorPlace(kind=CoordinatorKind.RESERVED, cpus=(5,), memory_nodes=(1,))
    plan = toy_plan(1).model_copy(update={"coordinator": place})
    argv = placed_argv("x", plan, spec("master", 0))
    assert argv[:6] == ["x", "-C", "5", "-m", "1", "--"]


@pytest.mark.parametrize(
    ("slot", "changes", "named"),
    [
        (1, {"index": 0}, {"slot": "slot 0", "position": 1}),
        (0, {"index": -1}, {"slot": "slot -1", "position": 0}),
        (0, {"cpus": []}, {"slot": "slot 0"}),
        (0, {"cpus": [3, 5]}, {"cpu": 5}),
        (1, {"threads": 0}, {"slot": "slot 1"}),
        (1, {"heap_bytes": -5}, {"slot": "slot 1"}),
        (1, {"memory_policy": "bind", "memory_nodes": []}, {"slot": "slot 1", "policy": "bind"}),
    ],
)
def test_a_plan_that_was_edited_wrongly_is_refused(
    slot: int, changes: dict[str, object], named: dict[str, object]
) -> None:
    raw = json.loads(toy_plan(2).model_dump_json())
    for place, each in enumerate(raw["slots"]):
        each["cpus"] = [4 + place]
    parse(Plan, json.dumps(raw), where="p.json")
    raw["slots"][slot].update(changes)
    with fails(UsageError, where="p.json", **named):
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
    with fails(NotPermitted, offline="3", online="0-2"):
        refuse_unfit(plan, machine("0-2", frozenset({0, 1, 2})))
    with fails(NotPermitted, outside="2", allowed="0-1,3"):
        refuse_unfit(plan, machine("0-3", frozenset({0, 1, 3})))
    with fails(NotPermitted, closed="1", allowed="0"):
        refuse_unfit(plan, machine("0-3", frozenset({2, 3}), "0"))


def test_an_address_that_the_machine_does_not_have_is_refused() -> None:
    plan = slotted(cpus=(0,), memory_nodes=(), address="10.0.0.5")
    host = machine("0-3", frozenset({0}), "0")
    host.nics = {"lo": ("127.0.0.1",), "eth0": ("10.0.0.5",)}
    refuse_unfit(plan, host)
    host.nics["eth0"] = ("10.0.0.6",)
    with fails(UsageError, address="10.0.0.5", have="10.0.0.6, 127.0.0.1"):
        refuse_unfit(plan, host)
    refuse_unfit(slotted(cpus=(0,), memory_nodes=(), address="127.0.0.9"), host)


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
    with fails(NotPermitted, offline="1", online="0,2-3"):
        refuse_foreign(plan, asleep)
    unmasked = plan.slots[0].model_copy(update={"cpus": None})
    named = {"theirs": machine_id(whole), "ours": machine_id(asleep), "offline": "CPUs 1"}
    with fails(UsageError, **named):
        refuse_foreign(plan.model_copy(update={"slots": (unmasked,)}), asleep)


def test_free_ports_are_different_and_can_be_bound() -> None:
    assert len(set(free_ports(50))) == 50
    assert free_ports(0) == ()


def test_a_port_is_free_at_every_address() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.9", 0))
        # Only at that address; the search goes on until it finds one that is free at both.
        assert taken.getsockname()[1] not in free_ports(50, ("127.0.0.1", "127.0.0.9"))
    with fails(EngineFailed, addresses="192.0.2.77"):
        free_ports(1, ("192.0.2.77",))
