"""`atoll fleet` against three hosts with a real sshd each, in network namespaces."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from random import Random

import pytest

from atoll.bench.results import read_results
from atoll.engines import registry
from atoll.engines.api import Client
from atoll.errors import EngineFailed
from atoll.schema.base import parse
from atoll.schema.fleet_answers import FleetAnswers
from atoll.schema.machine import Machine
from atoll.schema.plan import Plan
from atoll.schema.profile import Profile
from tests.parts.deployment import until
from tests.parts.fleet import Fleet, fleet


@pytest.fixture(scope="module")
def hosts() -> Iterator[Fleet]:
    with fleet() as made:
        yield made


def test_a_fleet_is_planned_started_verified_and_ended(hosts: Fleet) -> None:
    code, out, err = hosts.run(
        "plan", "INVENTORY", "duckdb", "--policy", "wim", "-o", "kept", "--json"
    )
    assert code == 0, err
    answers = parse(FleetAnswers, out, where="stdout")
    kept = hosts.folder / "kept"
    assert parse(FleetAnswers, (kept / "plan.json").read_text(), where="file") == answers
    for answer in answers.hosts:
        text = (kept / answer.host / "plan.json").read_text()
        assert parse(Plan, text, where="file").engine == "duckdb"
        assert answer.clock is not None  # one machine has one clock
        assert abs(answer.clock.offset_s) <= answer.clock.error_s

    up = hosts.answers("up", "INVENTORY", "kept/", "--name", "nightly")
    assert [one["facts"]["state"] for one in up.values()] == ["ready"] * 3
    for machine in hosts.machines.values():
        (deployment,) = machine.deployments()
        assert deployment.startswith("nightly-")

    # One of them dies, and that host only has failed.
    victim = next(pid for pid, argv in hosts.machines["b"].processes().items() if "duckdb" in argv)
    os.kill(victim, signal.SIGKILL)
    until(lambda: not os.path.exists(f"/proc/{victim}"), lambda: "it lives")
    verified = hosts.answers("verify", code=1)
    assert [name for name, one in verified.items() if one["exit_code"]] == ["b"]
    assert "is not running" in verified["b"]["error"]
    for name in "ac":
        assert verified[name]["facts"]["threads"] > 0
        assert verified[name]["facts"]["drifted"] == 0

    hosts.answers("down", "nightly")
    hosts.nothing_is_left()


def test_nothing_outlives_a_down_after_a_killed_controller(hosts: Fleet) -> None:
    """Not even the start on a host that hangs meanwhile: it goes on after `down` found nothing."""
    a = hosts.machines["a"]
    controller = hosts.start("up", "INVENTORY", "duckdb", "--name", "k9")
    until(lambda: any(" up duckdb" in argv for argv in a.processes().values()), a.processes)
    frozen = list(a.processes())
    for pid in frozen:
        os.kill(pid, signal.SIGSTOP)
    try:
        assert not a.deployments()
        controller.kill()  # `ip netns exec` runs the command in its own place
        controller.wait()
        assert len(json.loads(hosts.state("k9").read_text())["hosts"]) == 3
        assert hosts.answers("down", "k9")["a"]["facts"]["state"] == "was not up"
        assert not hosts.state("k9").exists()
    finally:
        for pid in frozen:
            os.kill(pid, signal.SIGCONT)
    hosts.nothing_is_left()


def test_hosts_that_cannot_be_used_say_why(hosts: Fleet) -> None:
    """No answer at all; a key that is not the one in known_hosts; a user who may not log in."""
    hosts.machines["a"].link("down")
    known = hosts.folder / "known_hosts"
    kept = known.read_text()
    known.write_text("\n".join(line for line in kept.splitlines() if "10.77.0.3" not in line))
    hosts.write(c={"user": "nobody"})
    try:
        answers = hosts.answers("discover", "INVENTORY", code=1)
    finally:
        hosts.machines["a"].link("up")
        known.write_text(kept)
        hosts.write()
    assert {name: one["exit_code"] for name, one in answers.items()} == {"a": 1, "b": 2, "c": 4}
    assert "10.77.0.3 >> " in answers["b"]["error"]
    assert "SHA256:" in answers["b"]["error"]
    assert "authorized_keys" in answers["c"]["error"]


def two_of(hosts: Fleet) -> str:
    """An inventory without host c."""
    document = hosts.document()
    path = hosts.folder / "two.json"
    path.write_text(json.dumps({**document, "hosts": document["hosts"][:2]}))
    return str(path)


def plan_cluster(hosts: Fleet) -> str:
    two = two_of(hosts)
    hosts.answers("plan", two, "spark", "--cluster", "--heap", "600MiB", "-o", "parts")
    return two


@pytest.mark.installed
def test_one_spark_over_two_hosts(hosts: Fleet) -> None:
    two = plan_cluster(hosts)
    hosts.answers("up", two, "parts/", "--name", "one", timeout_s=300)
    a, b = hosts.machines["a"], hosts.machines["b"]
    (conf,) = (a.folder / "run").glob("atoll/up-*/conf/spark-defaults.conf")
    secret = next(line.split()[1] for line in conf.read_text().splitlines() if "secret " in line)
    everything = [*a.processes().values(), *b.processes().values(), hosts.state("one").read_text()]
    assert len(secret) == 64 and not any(secret in each for each in everything)
    assert conf.stat().st_mode & 0o077 == 0

    endpoint = str(next((a.folder / "run").glob("atoll/up-*/sql.sock")))
    (client,) = registry.get("spark").connect([endpoint], timeout_s=30)
    try:
        assert client.instances(timeout_s=30) == 2
        sql = "select sum(one) from (select distinct id % 100 as one from range(0, 100000, 1, 8))"
        assert client.execute(sql, timeout_s=60).rows == [(4950,)]
        verified = hosts.answers("verify")
        assert all(one["facts"]["drifted"] == 0 for one in verified.values())

        # An instance of the other host dies: that host has failed, and queries say so.
        victim = next(pid for pid, argv in b.processes().items() if "CoarseGrained" in argv)
        os.kill(victim, signal.SIGKILL)
        with pytest.raises(EngineFailed, match="1 of 2 executors were lost"):
            until_lost(client)
    finally:
        client.close()
    hosts.answers("down", "one")
    hosts.nothing_is_left()


def until_lost(client: Client) -> None:
    for _ in range(60):
        client.execute("select 1", timeout_s=30)
        time.sleep(1)


@pytest.mark.installed
@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_chaos_in_a_cluster(hosts: Fleet, seed: int) -> None:
    """A part of one Spark dies while it starts; then `down` ends all of it."""
    random = Random(seed)
    two = plan_cluster(hosts)
    argv = ("up", two, "parts/", "--name", f"torn-{seed}", "--timeout", "60")
    controller = hosts.start(*argv)
    machine = hosts.machines["ab"[seed % 2]]
    until(lambda: any("java" in argv for argv in machine.processes().values()), machine.processes)
    time.sleep(random.uniform(0, 15))
    victims = [pid for pid, argv in machine.processes().items() if "java" in argv]
    os.kill(random.choice(victims), signal.SIGKILL)
    out, err = controller.communicate(timeout=300)
    print(controller.returncode, out, err)
    if hosts.state(f"torn-{seed}").exists():
        hosts.answers("down", f"torn-{seed}")
    hosts.nothing_is_left()


@pytest.mark.long
def test_a_host_with_a_full_disk_takes_the_others_down(hosts: Fleet) -> None:
    with hosts.machines["c"].full_disk():
        answers = hosts.answers("up", "INVENTORY", "duckdb", code=1)
        assert [name for name, one in answers.items() if one["exit_code"]] == ["c"]
        assert answers["c"]["exit_code"] == 6
        assert "No space left" in answers["c"]["error"]
    hosts.nothing_is_left()


@pytest.mark.long
def test_measuring_and_a_bench_bring_files_back(hosts: Fleet) -> None:
    hosts.answers("discover", "INVENTORY", "-o", "kept")
    hosts.answers("measure", "INVENTORY", "--only", "stream", "-o", "kept")
    argv = ("--policies", "wim", "--queries", "6", "--blocks", "1", "--sf", "0.01", "-o", "kept")
    bench = hosts.answers("bench", "INVENTORY", "duckdb", *argv)
    for name, one in bench.items():
        folder = hosts.folder / "kept" / name
        assert parse(Machine, (folder / "machine.json").read_text(), where="file").cores
        assert parse(Profile, (folder / "profile.json").read_text(), where="file").stream
        assert read_results(folder / "results.jsonl").lines
        assert (one["facts"]["blocks"], one["facts"]["differing"]) == (1, 0)
    hosts.nothing_is_left()


@pytest.mark.long
def test_a_network_that_hangs_and_comes_back(hosts: Fleet) -> None:
    hosts.answers("up", "INVENTORY", "duckdb")
    a = hosts.machines["a"]
    before = set(a.processes())
    controller = hosts.start("bench", "INVENTORY", "duckdb", "--blocks", "1000", "-o", "kept")
    until(lambda: len(a.processes()) > len(before) + 2, lambda: "no bench starts")
    a.link("down")
    try:
        until(lambda: set(a.processes()) <= before, a.processes, patience_s=60)
        status = hosts.answers("status", code=1)
        assert [name for name, one in status.items() if one["exit_code"]] == ["a"]
    finally:
        a.link("up")
        controller.send_signal(signal.SIGINT)
        _, err = controller.communicate(timeout=60)
    assert controller.returncode == 130, err
    assert set(hosts.answers("status")) == set("abc")  # what was up stayed up
    hosts.answers("down")
    hosts.nothing_is_left()


@pytest.mark.long
@pytest.mark.parametrize("seed", range(12))
def test_chaos(hosts: Fleet, seed: int) -> None:
    """Anything is killed at any time of `up`, or a network hangs; then `down` ends all of it."""
    random = Random(seed)
    controller = hosts.start("up", "INVENTORY", "duckdb", "--name", f"chaos-{seed}")
    broken: list[str] = []
    for _ in range(random.choice([1, 1, 2, 3])):
        time.sleep(random.uniform(0, 3))
        name = random.choice("abc")
        machine = hosts.machines[name]
        act = random.choice(["controller", "sshd", "process", "process", "network"])
        print(f"{act} {name}")
        if act == "controller":
            controller.kill()
        elif act == "sshd":
            machine.kill_all_sshd()
        elif act == "process" and (found := machine.processes()):
            with suppress(ProcessLookupError):
                os.kill(random.choice(list(found)), signal.SIGKILL)
        elif act == "network":
            machine.link("down")
            broken.append(name)
    time.sleep(random.uniform(0, 25) if broken else 0)
    for name in broken:
        hosts.machines[name].link("up")
    out, err = controller.communicate(timeout=180)
    print(controller.returncode, out, err)
    for machine in hosts.machines.values():
        machine.revive_sshd()
    if hosts.state(f"chaos-{seed}").exists():
        hosts.answers("down", f"chaos-{seed}")
    hosts.nothing_is_left()
