"""The agent's systemd unit: systemd reads it, and it is closed off."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from atoll.cli import COMMANDS, cli
from tests.parts.paths import ROOT

UNIT = ROOT / "docs/live/atoll-agent@.service"


def started_by(unit: str) -> list[str]:
    (line,) = [line for line in unit.splitlines() if line.startswith("ExecStart=")]
    return line.removeprefix("ExecStart=").split()


def test_it_starts_a_command_that_exists_and_needs_no_capability() -> None:
    unit = UNIT.read_text()
    program, command, *options = started_by(unit)
    assert program.endswith("/atoll") and command in COMMANDS
    found = cli.get_command(None, command)  # type: ignore[arg-type]  # it needs no context
    assert found is not None
    known = {name for parameter in found.params for name in parameter.opts}
    assert {word for word in options if word.startswith("-")} <= known
    lines = unit.splitlines()
    assert "CapabilityBoundingSet=" in lines and "AmbientCapabilities=" in lines
    assert "User=%i" in lines


def test_it_says_how_to_see_processes_that_have_capabilities() -> None:
    for text in (UNIT.read_text(), (ROOT / "docs/live.md").read_text()):
        assert "AmbientCapabilities=CAP_SYS_PTRACE" in text


def test_systemd_reads_the_units_of_the_agent(tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed (Debian's package systemd)")
    unit = tmp_path / UNIT.name
    text = UNIT.read_text()
    # systemd looks whether the program can be run.
    unit.write_text(text.replace(started_by(text)[0], sys.executable))
    done = subprocess.run(
        [program, "verify", "--man=no", str(unit)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert [line for line in done.stderr.splitlines() if "atoll-agent" in line] == []
    # systemd's own scale, from 0 (closed) to 100.
    done = subprocess.run(
        [program, "security", "--offline=true", "--threshold=20", "--no-pager", str(unit)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
