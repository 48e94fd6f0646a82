"""What all commands share: help, a reader that goes away, a full disk, an internal error."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest

from atoll.cli import COMMANDS, cli, run
from tests.parts.faults import check_complaint

ATOLL = (sys.executable, "-m", "atoll")
Capture = pytest.CaptureFixture[str]


SUBCOMMANDS = {
    "fleet": ("discover", "measure", "plan", "up", "status", "verify", "down", "bench"),
    "profile": ("show", "compare"),
    "engine": ("list", "install", "remove"),
    "experiment": ("list", "show", "run", "report"),
    "workload": ("list", "run"),
    "oltp": ("run", "show"),
    "operators": ("plan", "show", "apply", "undo", "compare", "watch"),
}


@pytest.mark.parametrize(
    "names",
    [[name] for name in COMMANDS]
    + [[name, sub] for name, subs in SUBCOMMANDS.items() for sub in subs],
)
def test_help_has_an_example_and_fits_80_columns(names: list[str], capsys: Capture) -> None:
    assert run([*names, "--help"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"Examples?: atoll ", said)
    assert max(map(len, said.splitlines())) <= 80
    listed = said.partition("\nCommands:\n")[2]
    assert "..." not in listed, "a command's first sentence is too long for the list"


@pytest.mark.parametrize("arguments", [["--help"], ["ps"], ["topo"]])
def test_a_quick_command_loads_nothing_that_is_slow_to_import(
    arguments: list[str], tmp_path: Path
) -> None:
    script = (
        "import sys; from atoll.cli import run; run(sys.argv[1:]); "
        "print({'pydantic', 'rich', 'numpy', 'asyncio'} & set(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr.splitlines()[-1] == "set()"


def test_without_a_command_the_help_is_shown(capsys: Capture) -> None:
    assert run([]) == 2
    said = capsys.readouterr().err
    assert said.startswith("Usage: atoll")
    assert all(f"\n  {name} " in said for name in COMMANDS)


@pytest.mark.parametrize("names", [[], ["help"], ["up"], ["engine"], ["engine", "install"]])
def test_help_of_a_command_is_what_its_option_prints(names: list[str], capsys: Capture) -> None:
    assert run(["help", *names]) == 0
    said = capsys.readouterr().out
    assert run([*names, "--help"]) == 0
    assert said == capsys.readouterr().out


def test_help_of_a_command_that_does_not_exist(capsys: Capture) -> None:
    assert run(["help", "bogus"]) == 2
    check_complaint(capsys.readouterr().err, command="bogus")
    assert run(["help", "up", "bogus"]) == 2
    check_complaint(capsys.readouterr().err, command="atoll up")


def test_an_unknown_command_is_one_line(capsys: Capture) -> None:
    assert run(["bogus"]) == 2
    check_complaint(capsys.readouterr().err, command="bogus")


@pytest.mark.parametrize(
    ("name", "meant"),
    [("start", "up"), ("stop", "down"), ("list", "ps"), ("verfy", "verify"), ("log", "logs")],
)
def test_another_name_of_a_command_is_understood(name: str, meant: str, capsys: Capture) -> None:
    assert run([name]) == 2
    check_complaint(capsys.readouterr().err, command=name, meant=meant)


@pytest.mark.parametrize("cores", [1, 256])  # fits the buffer, does not fit the pipe
def test_a_reader_that_goes_away_is_no_fault(cores: int) -> None:
    ending, beginning = os.pipe()
    os.close(ending)
    try:
        done = subprocess.run(
            [*ATOLL, "topo", "--json", "--synthetic", f"Core:{cores} PU:1"],
            stdout=beginning,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        os.close(beginning)
    assert done.returncode == 0, done.stderr
    assert "Error" not in done.stderr


def test_a_full_disk_behind_stdout_is_told() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*ATOLL, "ps", "--json"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 6
    assert "No space left on device" in done.stderr and done.stderr.count("\n") == 1


def test_a_fault_of_ours_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    def broken(*_: object) -> NoReturn:
        raise ZeroDivisionError("two\nlines")

    monkeypatch.setattr(cli, "invoke", broken)
    assert run(["ps"]) == 70
    check_complaint(capsys.readouterr().err, fault="ZeroDivisionError: two lines")
    monkeypatch.setenv("ATOLL_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        run(["ps"])
