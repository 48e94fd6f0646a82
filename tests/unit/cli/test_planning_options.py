"""The options of a plan are those of plan, up, bench and render, and none needs a plan file."""

from __future__ import annotations

from pathlib import Path

import pytest

from atoll.cli import run
from tests.parts.faults import check_complaint

Capture = pytest.CaptureFixture[str]
COMMANDS = {
    "plan": ("plan", "duckdb"),
    "up": ("up", "duckdb"),
    "bench": ("bench", "duckdb", "--policies", "wim"),
    "bench of all": ("bench", "duckdb"),
    "render": ("render", "trino", "--explain"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_more_than_the_machine_has_is_one_line(command: str, capsys: Capture) -> None:
    asked = {
        "--heap 900 TiB": ("--heap", "900TiB"),
        "--reserve 900 TiB": ("--reserve", "900TiB"),
        "--reserve-cores 99999": ("--reserve-cores", "99999"),
        "--page-cache: takes ": ("--page-cache", "100%"),
    }
    for said, option in asked.items():
        assert run([*COMMANDS[command], *option]) == 2
        complaint = capsys.readouterr().err
        assert complaint.startswith(f"atoll: {said}") and complaint.count("\n") == 1, complaint


@pytest.mark.parametrize("command", COMMANDS)
def test_nonsense_is_one_line(command: str, capsys: Capture) -> None:
    assert run([*COMMANDS[command], "--page-cache", "much"]) == 2
    check_complaint(capsys.readouterr().err, text="'much'")


@pytest.mark.parametrize("command", ["up", "bench", "render"])
def test_a_plan_file_has_its_own(command: str, tmp_path: Path, capsys: Capture) -> None:
    path = str(tmp_path / "plan.json")
    assert run(["plan", "duckdb", "-o", path]) == 0
    capsys.readouterr()
    explain = ["--explain"] if command == "render" else []
    assert run([command, path, *explain, "--malloc", "system"]) == 2
    complaint = capsys.readouterr().err
    assert "own" in complaint and "leave out" in complaint and complaint.count("\n") == 1
