"""`atoll fleet` against three hosts with a real sshd each, in network namespaces."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator

import pytest

from atoll.schema.base import parse
from atoll.schema.fleet_answers import FleetAnswers
from atoll.schema.machine import Machine
from atoll.schema.plan import Plan
from tests.parts.deployment import until
from tests.parts.fleet import Fleet, fleet


@pytest.fixture(scope="module")
def hosts() -> Iterator[Fleet]:
    with fleet() as made:
        yield made


def test_a_fleet_is_planned_started_verified_and_ended(hosts: Fleet) -> None:
    code, out, err = hosts.run("discover", "INVENTORY", "-o", "kept", "--json")
    assert code == 0, err
    answers = parse(FleetAnswers, out, where="stdout")
    kept = hosts.folder / "kept"
    assert parse(FleetAnswers, (kept / "discover.json").read_text(), where="file") == answers
    for answer in answers.hosts:
        text = (kept / answer.host / "machine.json").read_text()
        assert answer.facts["cores"] == len(parse(Machine, text, where="file").cores)
        assert answer.clock is not None  # one machine has one clock
        assert abs(answer.clock.offset_s) <= answer.clock.error_s
    hosts.answers("plan", "INVENTORY", "duckdb", "--policy", "wim", "-o", "kept")
    assert parse(Plan, (kept / "b/plan.json").read_text(), where="file").engine == "duckdb"

    up = hosts.answers("up", "INVENTORY", "kept/", "--name", "nightly")
    assert {name: one["facts"]["state"] for name, one in up.items()} == dict.fromkeys(
        "abc", "ready"
    )
    for machine in hosts.machines.values():
        (deployment,) = machine.deployments()
        assert deployment.startswith("nightly-")
        assert machine.processes()
    code, _, err = hosts.run("up", "INVENTORY", "duckdb", "--name", "nightly")
    assert code == 2 and "atoll fleet down nightly" in err
    verified = hosts.answers("verify")
    assert all(one["facts"]["threads"] > 0 for one in verified.values())
    assert {one["facts"]["drifted"] for one in verified.values()} == {0}

    # One of them dies, and that host only has failed.
    victim = next(pid for pid, argv in hosts.machines["b"].processes().items() if "duckdb" in argv)
    os.kill(victim, signal.SIGKILL)
    until(lambda: not os.path.exists(f"/proc/{victim}"), lambda: "it lives")
    status = hosts.answers("status", code=1)
    assert [name for name, one in status.items() if one["exit_code"]] == ["b"]
    assert "failed" in status["b"]["error"]

    hosts.answers("down", "nightly")
    hosts.until_nothing_runs()
    assert hosts.run("down")[0] == 2


@pytest.mark.parametrize("after", ["wrote", "started"])
def test_down_ends_what_a_killed_controller_has_begun(hosts: Fleet, after: str) -> None:
    controller = hosts.start("up", "INVENTORY", "duckdb", "--name", after)
    if after == "wrote":
        until(lambda: hosts.state(after).exists(), lambda: "no record")
    else:
        until(hosts.any_deployment, lambda: "nothing starts")
    controller.kill()  # `ip netns exec` runs the command in its own place
    controller.wait()
    assert json.loads(hosts.state(after).read_text())["hosts"]
    hosts.answers("down", after)
    hosts.until_nothing_runs()
    assert not hosts.state(after).exists()
    assert not hosts.any_deployment()


def test_a_host_that_fails_to_start_takes_the_others_down(hosts: Fleet) -> None:
    """The disk of one is full."""
    with hosts.machines["c"].full_disk():
        answers = hosts.answers("up", "INVENTORY", "duckdb", code=1)
        assert [name for name, one in answers.items() if one["exit_code"]] == ["c"]
        assert answers["c"]["exit_code"] == 6
        assert "No space left" in answers["c"]["error"]
        hosts.until_nothing_runs()
    assert not hosts.state("duckdb").exists()
    assert not hosts.any_deployment()


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
    hosts.answers("discover", "INVENTORY")
