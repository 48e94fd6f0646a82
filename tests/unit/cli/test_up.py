"""`atoll up`, and the commands for what is up: what they refuse, and when they end."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from atoll.cli import run
from atoll.engines import registry
from atoll.host.local import LocalHost
from atoll.host.topology import read_machine
from atoll.plan import make_plan
from atoll.plan.cluster import over_machines
from atoll.plan.network import Place
from atoll.schema.deployment import Deployment, State, UpOptions
from atoll.schema.inspection import Finding, Severity
from atoll.schema.plan import Plan
from atoll.store.document import write_document
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


def test_a_part_of_a_cluster_is_started_with_its_secret_only(
    tmp_path: Path, capsys: Capture
) -> None:
    plans = {"a": listening("127.0.0.2"), "b": listening("127.0.0.3")}
    path, secret, base = tmp_path / "plan.json", tmp_path / "secret", tmp_path / "conf"
    base.mkdir()
    (base / "spark-defaults.conf").write_text("spark.cores.max 1\n")
    write_document(path, over_machines(plans, 7077)["a"])
    secret.write_text("0123456789abcdef\n")
    secret.chmod(0o600)
    up = ["up", str(path), "--dry-run"]
    assert run(up) == 2
    assert "on each of them with --secret" in capsys.readouterr().err
    assert run([*up, "--secret", str(tmp_path / "none")]) == 2
    assert "none: there is no such file" in capsys.readouterr().err
    # One executor of two could not start, so the user's number is not kept.
    assert run([*up, "--secret", str(secret), "--base", str(base)]) == 0
    shown = capsys.readouterr().out
    assert "0123456789abcdef" not in shown
    assert "spark://127.0.0.2:7077" in shown
    secret.chmod(0o644)
    assert run([*up, "--secret", str(secret)]) == 4
    assert run(["up", "duckdb", "--dry-run", "--secret", str(secret)]) == 2
    capsys.readouterr()
    for argv in (["bench", str(path)], ["render", str(path), "--to", "native"]):
        assert run(argv) == 2
        assert "is a part of a cluster of 2 machines" in capsys.readouterr().err


def test_a_part_of_a_cluster_is_not_restarted(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """And stays up: the reason comes before the end."""
    part = over_machines({"a": listening("10.0.0.1"), "b": listening("10.0.0.2")}, 7077)["b"]
    records.write(
        Deployment(
            name="part",
            id="x",
            boot_id="b",
            run_dir="/r/x",
            scratch_dir="/s/x",
            plan=part,
            state=State.READY,
            supervisor=None,
            keeper=None,
            options=UpOptions(),
            created_unix_s=1,
        )
    )
    ended: list[str] = []
    monkeypatch.setattr("atoll.cli.restart.down", lambda name, host: ended.append(name))
    monkeypatch.setattr("atoll.cli.restart.find", lambda name, host: (records.read(name), None))
    monkeypatch.setattr("atoll.supervise.prepare.refuse_foreign", lambda plan, machine: None)
    monkeypatch.setattr("atoll.supervise.prepare.refuse_unfit", lambda plan, host: None)
    try:
        assert run(["restart", "part"]) == 2
    finally:
        records.forget("part")
    assert "is a part of a cluster" in capsys.readouterr().err
    assert not ended


def listening(address: str) -> Plan:
    traits = registry.get("spark").traits
    return make_plan(read_machine(), traits, "wim", listen=(Place(address, None),))


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
