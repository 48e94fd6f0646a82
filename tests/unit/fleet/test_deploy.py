"""Starting and ending a fleet: what is asked of which host, and what stays in the record."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.errors import EXIT_INTERNAL, AtollError, UsageError
from atoll.fleet import deploy, looking, state
from atoll.fleet.asking import Refused, Task, ask_all
from atoll.fleet.protocol import FILE, SECRET, Reply, Request
from atoll.plan.cluster import over_machines
from atoll.schema.fleet import Reach
from atoll.schema.plan import CoordinatorKind, CoordinatorPlace, Plan
from tests.parts.bench import header
from tests.parts.faults import fails
from tests.parts.ssh_server import Said, answering, ends, served
from tests.parts.toy import toy_plan


class Host:
    """Keeps deployments as a host does; `wrong`: command -> the reply instead."""

    def __init__(self, **wrong: Reply) -> None:
        self.up: set[str] = set()
        self.wrong = wrong
        self.ran: list[Request] = []

    def reply(self, request: Request) -> Reply:
        self.ran.append(request)
        word = request.argv[0]
        if word in self.wrong:
            return self.wrong[word]
        if word == "up":
            self.up.add(request.argv[request.argv.index("--name") + 1])
        if word == "down" and request.argv[1] not in self.up:
            return ends(2, stderr="atoll: no deployment")
        if word == "down":
            self.up.remove(request.argv[1])
        if word == "ps":
            return ends(0, json.dumps([{"name": name, "pids": []} for name in self.up]))
        if word == "status":
            found = {"state": "ready", "error": "", "uptime_s": 1.0}
            return ends(0, json.dumps({**found, "addresses": [], "endpoints": []}))
        return ends()


@pytest.fixture
def hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., list[Reach]]]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with ExitStack() as stack:

        def make(**named: Host) -> list[Reach]:
            reaches = []
            for name, host in named.items():
                (tmp_path / name).mkdir()
                made = served(tmp_path / name, answering(Said(), answer=host.reply), name=name)
                reaches.append(stack.enter_context(made))
            return reaches

        yield make


def quiet(line: str) -> None:
    pass


def test_up_and_down(hosts: Callable[..., list[Reach]]) -> None:
    a, b = Host(), Host()
    answers = deploy.up("x", hosts(a=a, b=b), "toy", ("--policy", "wic"), quiet)
    assert [one.facts["state"] for one in answers] == ["ready", "ready"]
    (name,) = a.up
    assert b.up == {name}
    assert a.ran[0].argv == ("up", "toy", "--policy", "wic", "--name", name, "-d")
    assert a.ran[0].confirm == name
    fleet = state.find("x")
    assert [host.name for host in fleet.hosts] == ["a", "b"]
    with fails(UsageError, name="x"):
        deploy.up("x", fleet.hosts, "toy", (), quiet)
    deploy.down(fleet, quiet, forget=False)
    assert not a.up and not b.up
    assert state.names() == []


def test_each_host_gets_its_own_plan(hosts: Callable[..., list[Reach]]) -> None:
    a, b = Host(), Host()
    plans = {"a": toy_plan(1), "b": toy_plan(2)}
    deploy.up("x", hosts(a=a, b=b), plans, (), quiet)
    for host, plan in ((a, plans["a"]), (b, plans["b"])):
        assert host.ran[0].argv[:2] == ("up", FILE)
        assert Plan.model_validate_json(host.ran[0].document or "") == plan


def test_the_hosts_of_a_cluster_get_one_secret_and_only_a_whole_one_starts(
    hosts: Callable[..., list[Reach]],
) -> None:
    a, b = Host(), Host()
    reaches = hosts(a=a, b=b)
    parts = over_machines({"a": listening_plan("10.0.0.1"), "b": listening_plan("10.0.0.2")}, 7077)
    deploy.up("x", reaches, parts, (), quiet)
    first, second = a.ran[0], b.ran[0]
    assert first.argv[:4] == second.argv[:4] == ("up", FILE, "--secret", SECRET)
    assert first.secret == second.secret and len(first.secret or "") == 64
    assert (first.secret or "") not in state_text("x")
    for some in (
        {"a": parts["a"]},
        {"a": parts["a"], "b": listening_plan("10.0.0.2")},
        {"a": parts["a"], "b": parts["a"]},
    ):
        with fails(UsageError):
            deploy.up("y", reaches, some, (), quiet)


class Head(Host):
    """Is ready when the others have joined, or `gone`."""

    def __init__(self, gone: threading.Event) -> None:
        super().__init__()
        self._gone = gone

    def reply(self, request: Request) -> Reply:
        if request.argv[0] == "up":
            self._gone.wait(60)
        return super().reply(request)


def test_a_host_of_a_cluster_that_fails_ends_the_start_of_the_others(
    hosts: Callable[..., list[Reach]],
) -> None:
    """The head would wait for it until its own limit."""
    gone = threading.Event()
    a, b = Head(gone), Host(up=ends(5, stderr="atoll: no room"))
    parts = over_machines({"a": listening_plan("10.0.0.1"), "b": listening_plan("10.0.0.2")}, 7077)
    began_s = time.monotonic()
    try:
        first, second = deploy.up("x", hosts(a=a, b=b), parts, (), quiet)
    finally:
        gone.set()
    assert time.monotonic() - began_s < 50
    assert "another host of the cluster failed" in first.error
    assert second.error == "no room"
    assert first.exit_code == 1 and second.exit_code == 5


def test_a_host_of_a_cluster_that_is_away_ends_the_start_of_the_others(
    hosts: Callable[..., list[Reach]],
) -> None:
    gone = threading.Event()
    a = Head(gone)
    (here,) = hosts(a=a)
    away = here.model_copy(update={"name": "b", "port": 1})
    parts = over_machines({"a": listening_plan("10.0.0.1"), "b": listening_plan("10.0.0.2")}, 7077)
    began_s = time.monotonic()
    try:
        first, second = deploy.up("x", [here, away], parts, (), quiet)
    finally:
        gone.set()
    assert time.monotonic() - began_s < 50
    assert "another host of the cluster failed" in first.error
    assert second.exit_code == 1


def listening_plan(address: str) -> Plan:
    plan = toy_plan(1)
    slots = tuple(slot.model_copy(update={"address": address}) for slot in plan.slots)
    place = CoordinatorPlace(kind=CoordinatorKind.SHARED, address=address)
    return plan.model_copy(update={"slots": slots, "coordinator": place})


def state_text(name: str) -> str:
    return state.find(name).model_dump_json()


def test_one_that_fails_takes_the_others_down(hosts: Callable[..., list[Reach]]) -> None:
    a, b = Host(), Host(up=ends(5, stderr="atoll: warning: small\natoll: toy: no room\n"))
    first, second = deploy.up("x", hosts(a=a, b=b), "toy", (), quiet)
    assert (first.exit_code, second.exit_code) == (0, 5)
    assert (second.error, second.warnings) == ("toy: no room", ("small",))
    assert first.facts == {"state": "ended"}
    assert not a.up
    assert state.names() == []


def test_a_host_that_was_never_reached_leaves_no_record(
    hosts: Callable[..., list[Reach]],
) -> None:
    a = Host()
    (here,) = hosts(a=a)
    away = here.model_copy(update={"name": "away", "port": 1})
    answers = deploy.up("x", [here, away], "toy", (), quiet)
    assert [one.exit_code for one in answers] == [0, 1]
    assert state.names() == []
    assert not a.up


def test_a_host_that_cannot_be_ended_again(hosts: Callable[..., list[Reach]]) -> None:
    a, b = Host(down=ends(5, stderr="atoll: broken")), Host(up=ends(5, stderr="atoll: no room"))
    first, second = deploy.up("x", hosts(a=a, b=b), "toy", (), quiet)
    assert (first.exit_code, second.exit_code) == (5, 5)
    assert first.facts == {"state": "unknown"}
    assert "broken" in first.error and "atoll fleet down x" in first.error
    assert second.error == "no room"
    assert [host.name for host in state.find("x").hosts] == ["a"]


def test_a_host_that_is_gone_stays_in_the_record(hosts: Callable[..., list[Reach]]) -> None:
    a, b = Host(), Host()
    deploy.up("x", hosts(a=a, b=b), "toy", (), quiet)
    away = state.find("x").hosts[1].model_copy(update={"port": 1})
    whole = state.find("x")
    state.write(whole.model_copy(update={"hosts": (whole.hosts[0], away)}))
    answers = deploy.down(state.find("x"), quiet, forget=False)
    assert [one.exit_code for one in answers] == [0, 1]
    assert not a.up and b.up
    assert state.find("x").hosts == (away,)
    state.write(whole)  # it is back
    deploy.down(state.find("x"), quiet, forget=False)
    assert not b.up
    assert state.names() == []


def test_forget_drops_what_cannot_be_reached(hosts: Callable[..., list[Reach]]) -> None:
    deploy.up("x", hosts(a=Host()), "toy", (), quiet)
    fleet = state.find("x")
    away = fleet.hosts[0].model_copy(update={"port": 1})
    state.write(fleet.model_copy(update={"hosts": (away,)}))
    assert deploy.down(state.find("x"), quiet, forget=True)[0].exit_code == 1
    assert state.names() == []


def test_forget_keeps_what_answers(hosts: Callable[..., list[Reach]]) -> None:
    a = Host()
    deploy.up("x", hosts(a=a), "toy", (), quiet)
    a.wrong["down"] = ends(5, stderr="atoll: process 7 does not end")
    (answer,) = deploy.down(state.find("x"), quiet, forget=True)
    assert answer.exit_code == 5
    assert state.names() == ["x"]


def test_down_ends_nothing_of_another_fleet(hosts: Callable[..., list[Reach]]) -> None:
    a = Host()
    a.up.add("x")
    deploy.up("x", hosts(a=a), "toy", (), quiet)
    deploy.down(state.find(None), quiet, forget=False)
    assert a.up == {"x"}


def test_a_record_that_down_refuses_is_not_gone(hosts: Callable[..., list[Reach]]) -> None:
    a = Host()
    deploy.up("x", hosts(a=a), "toy", (), quiet)
    a.wrong["down"] = ends(2, stderr="atoll: damaged")
    (answer,) = deploy.down(state.find("x"), quiet, forget=False)
    assert (answer.exit_code, answer.error) == (2, "damaged")
    assert state.names() == ["x"]


def test_what_is_gone_is_down(hosts: Callable[..., list[Reach]]) -> None:
    a = Host()
    deploy.up("x", hosts(a=a), "toy", (), quiet)
    a.up.clear()
    (answer,) = deploy.down(state.find("x"), quiet, forget=False)
    assert answer.facts == {"state": "was not up"}
    assert state.names() == []


def test_an_interrupt_ends_what_was_started(
    hosts: Callable[..., list[Reach]], monkeypatch: pytest.MonkeyPatch
) -> None:
    a = Host()

    async def interrupted(task: Task, deployment: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(deploy, "look_at", interrupted)
    with pytest.raises(KeyboardInterrupt):
        deploy.up("x", hosts(a=a), "toy", (), quiet)
    assert [request.argv[0] for request in a.ran] == ["up", "down"]
    assert state.names() == []


def test_an_interrupt_while_it_is_undone_leaves_the_record(
    hosts: Callable[..., list[Reach]], monkeypatch: pytest.MonkeyPatch
) -> None:
    (here,) = hosts(a=Host())

    async def interrupted(task: Task, deployment: str) -> None:
        def again(*_: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(deploy, "ask_all", again)
        raise KeyboardInterrupt

    monkeypatch.setattr(deploy, "look_at", interrupted)
    with pytest.raises(KeyboardInterrupt, match="run: atoll fleet down x"):
        deploy.up("x", [here], "toy", (), quiet)
    assert state.names() == ["x"]


def test_two_commands_on_one_fleet(hosts: Callable[..., list[Reach]]) -> None:
    reaches = hosts(a=Host())
    with state.held("x"), fails(UsageError, name="x"):
        deploy.up("x", reaches, "toy", (), quiet)


@pytest.mark.parametrize("name", ["../x", "-x", "", "a" * 24, "a b"])
def test_names_that_are_refused(name: str) -> None:
    with fails(UsageError, name=repr(name)):
        deploy.up(name, [], "toy", (), quiet)


class _Answers:
    """A link to a host that answers everything with one reply."""

    clock = None

    def __init__(self, reply: Reply, reach: Reach | None = None) -> None:
        self._reply, self.reach = reply, reach

    async def ask(self, request: Request) -> Reply:
        return self._reply


def test_a_bench_that_a_signal_ended_keeps_its_results(tmp_path: Path) -> None:
    measured = header().model_dump_json() + "\n"
    reply = Reply(-9, "", "atoll: warning: old\nblock 3 of 9\n", measured)
    here = Reach(name="here", address="h", port=1, user="u", key_file=None, known_hosts="k",
                 atoll="atoll")  # fmt: skip
    task = Task(_Answers(reply, here))  # type: ignore[arg-type] # stands for a Link
    with pytest.raises(Refused, match=r"signal 9 .* memory") as caught:
        asyncio.run(_awaited(looking.bench("toy", (), "run", tmp_path), task))
    assert caught.value.exit_code == EXIT_INTERNAL
    assert task.warnings == ["old"]
    assert (tmp_path / "here/results.jsonl").read_text() == measured


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
LOOKS = {
    "discover": looking.discover(None),
    "measure": looking.measure((), None),
    "plan": looking.plan("toy", (), None),
    "bench": looking.bench("toy", (), "run", Path("/nowhere")),
    "status": looking.status("x"),
    "verify": looking.verify("x"),
}


@pytest.mark.parametrize("look", LOOKS)
@given(st.text() | JSON.map(json.dumps) | st.just("[" * 100_000))
def test_whatever_a_host_sends_is_a_fault_of_that_host(look: str, text: str) -> None:
    task = Task(_Answers(Reply(0, text, "", text)))  # type: ignore[arg-type] # stands for a Link
    try:
        asyncio.run(_awaited(LOOKS[look], task))
    except AtollError:
        pass
    else:
        assert look == "verify"  # of an empty list
        assert json.loads(text) == []


async def _awaited(work: looking.Work, task: Task) -> None:
    await work(task)


def test_asking_nobody() -> None:
    assert ask_all([], "looking", looking.status("x"), quiet) == ()
