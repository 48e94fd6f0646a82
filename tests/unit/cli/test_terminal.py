"""Progress on a terminal: any text can be shown, also what an engine wrote."""

from __future__ import annotations

import sys

import pytest

from atoll.bench.runner import Tick
from atoll.cli import run
from atoll.cli.terminal import progress
from atoll.report.bench.progress import bench_progress

FOREIGN = "no answer at [/run/x.sock]"  # a closing tag for rich


def test_a_line_may_contain_brackets(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with progress("starting") as tell:
        tell(FOREIGN)
    with bench_progress(1) as shown:
        shown.tick(Tick(0, 5, 0, "toy/wim", "starting"))
        shown.say(FOREIGN)
    assert capsys.readouterr().err.count(FOREIGN) >= 2


@pytest.mark.parametrize(
    ("term", "no_colour", "coloured"),
    [("xterm", "", True), ("xterm", "1", False), ("dumb", "", False), ("", "", False)],
)
def test_only_terminals_that_know_colours_get_them(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    term: str,
    no_colour: str,
    coloured: bool,
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", term)
    monkeypatch.setenv("NO_COLOR", no_colour)
    assert run(["topo", "--synthetic", "Package:1 Core:2 PU:1"]) == 0
    assert ("\x1b" in capsys.readouterr().out) is coloured
