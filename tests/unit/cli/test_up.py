"""`atoll up`, and the commands for what is up: what they refuse, and when they end."""

from __future__ import annotations

import os

import pytest

from atoll.cli import run
from atoll.host.local import LocalHost
from atoll.schema.inspection import Finding, Severity
from atoll.supervise import records
from tests.parts.faults import check_complaint

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize("port", ["0", "70000", "-1", "x"])
def test_a_port_that_is_none(port: str, capsys: Capture) -> None:
    assert run(["up", "duckdb", f"--port={port}"]) == 2
    check_complaint(capsys.readouterr().err, port=port, option="--port")


@pytest.mark.parametrize("command", ["status", "logs", "restart", "verify", "down"])
def test_a_deployment_that_does_not_exist(command: str, capsys: Capture) -> None:
    assert run([command, "nobody"]) == 2
    check_complaint(capsys.readouterr().err, name="'nobody'")


def test_logs_are_followed_as_long_as_the_deployment_lives(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    (records.logs("followed") / "worker-0.log").write_text("one\n")
    lock = records.try_lock("followed")
    assert lock is not None
    # The record of a failed deployment stays.
    (records.folder("followed") / "deployment.json").touch()
    monkeypatch.setattr(LocalHost, "sleep", lambda self, seconds: os.close(lock))
    assert run(["logs", "followed", "-f"]) == 0
    assert capsys.readouterr().out == "one\n"
    (records.folder("followed") / "deployment.json").unlink()


def test_a_route_over_another_nic_is_a_warning_before_the_start(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    found = Finding(
        code="leaves-elsewhere",
        severity=Severity.DRIFT,
        process="slot 0",
        pid=0,
        expected="packets from 10.0.0.5 leave over eth1",
        found="to 10.0.0.4 they leave over eth0",
        cause="c",
        remedy="ip rule add",
    )
    monkeypatch.setattr("atoll.cli.up.route_findings", lambda host, plan: [found])
    assert run(["up", "duckdb", "--policy", "wim", "--dry-run"]) == 0
    said = capsys.readouterr().err
    assert "they leave over eth0" in said
    assert "ip rule add" in said
