"""Deployments whose processes are killed or interrupted at every stage: nothing may linger."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest
from click.testing import CliRunner

from atoll.cli import cli
from atoll.errors import EngineFailed
from atoll.schema.deployment import State
from atoll.supervise import records
from atoll.supervise.stop import down, listing
from tests.parts.deployment import (
    HOST,
    KILLED,
    PATIENCE_S,
    kill_at_once,
    left_over,
    owner,
    start,
    until_gone,
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
        kill_at_once([record.keeper.pid, record.supervisor.pid])
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
        assert re.search(f"worker-1 died {KILLED} while it was up", record.error)
        result = CliRunner().invoke(cli, ["ps"])
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
