"""`atoll up`: ports that are refused before anything is planned."""

from __future__ import annotations

import pytest

from atoll.cli import run
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
