"""The screen of `atoll top`: fits, shows each figure, and is not controlled by names."""

from __future__ import annotations

import pytest

from atoll.report.machine.text import Line, Style
from atoll.report.terminal.live import Key, Screen, screen
from atoll.schema.deployment import State
from atoll.schema.inspection import Finding, Severity
from tests.parts.live import live_view
from tests.parts.machines import milan

MACHINE = milan(2, 8, 8)


def text(lines: list[Line]) -> list[str]:
    return ["".join(span.text for span in line).rstrip() for line in lines]


@pytest.mark.parametrize("height", [6, 24, 50])
@pytest.mark.parametrize("panel", ["", "memory", "drift"])
@pytest.mark.parametrize("width", [40, 80, 200])
def test_it_fills_the_screen_and_never_more(width: int, panel: str, height: int) -> None:
    chosen = Screen(panel=panel, selected=Key("sea", 15))
    lines = text(screen(live_view(64), MACHINE, chosen, width=width, height=height))
    assert len(lines) == height
    assert all(len(line) <= width for line in lines)
    assert any(line.startswith("> 15 ") for line in lines), "the selected slot is visible"
    assert lines[-1].startswith("q quit")


def test_a_slot_has_its_figures_and_the_picture_its_number() -> None:
    lines = text(screen(live_view(2), MACHINE, Screen(), width=80, height=None))
    assert lines[0].startswith("atoll top  1 deployment, 2 slots, 20 threads  no drift  costs 0.2")
    assert (
        "SLOT CPUS           THREADS    CPU   HOME  LOCAL  MIGR/s   GB/s   MEMORY  DRIFT" in lines
    )
    assert (
        "   0 0-7                 10   1.50   97 %   90 %     3.0    2.0    2 GiB   none" in lines
    )
    drawn = screen(live_view(2), MACHINE, Screen(), width=80, height=None)
    marks = [span for line in drawn for span in line if set(span.text.split()) == {"0"}]
    assert marks and marks[0].style is Style.BUSY


def test_drift_is_red_and_explained_in_its_panel() -> None:
    view = live_view(2, drift=3)
    lines = screen(view, MACHINE, Screen(Key("sea", 1), "drift"), width=80, height=24)
    red = {span.text.strip() for line in lines for span in line if span.style is Style.DRIFT} - {""}
    assert red == {"drift: 3", "0" * 8, ", thread-outside 3", "3"}
    said = "\n".join(text(lines))
    assert "worker-0 pid 7 tid 8 (evil): thread-outside: CPUs 9 instead of CPUs" in said
    assert "move it" in said and "and 2 more: atoll verify sea" in said


def test_names_do_not_control_the_terminal() -> None:
    bad = "x\x1b[2J\n\u202e"
    finding = Finding(
        code="c",
        severity=Severity.DRIFT,
        process=bad,
        pid=1,
        tid=2,
        comm=bad,
        mapping=bad,
        expected=bad,
        found=bad,
        cause=bad,
        remedy=bad,
    )
    view = live_view(1)
    (one,) = view.deployments
    hostile = one.model_copy(
        update={
            **dict.fromkeys(("name", "engine", "policy", "error"), bad),
            "findings": (finding,),
            "drift_by_code": {bad: 1},
            "unknown": (bad,),
        }
    )
    failed = hostile.model_copy(update={"state": State.FAILED})
    view = view.model_copy(update={"deployments": (hostile, failed), "notices": (bad,)})
    for panel in ("", "memory", "drift"):
        for height in (None, 24):
            chosen = Screen(panel=panel)
            for line in text(screen(view, MACHINE, chosen, width=80, height=height)):
                assert line.isprintable(), line


def test_a_screen_that_is_paused_says_so_however_narrow_it_is() -> None:
    for chosen, says in ((Screen(paused=True), True), (Screen(), False)):
        head = text(screen(live_view(64), MACHINE, chosen, width=40, height=24))[0]
        assert ("paused" in head) == says


def test_findings_are_shown_whole_and_the_others_counted() -> None:
    view = live_view(2, drift=3)
    (one,) = view.deployments
    many = {"findings": one.findings[:1] * 30, "drift_by_code": {"thread-outside": 40}}
    view = view.model_copy(update={"deployments": (one.model_copy(update=many),)})
    lines = text(screen(view, MACHINE, Screen(Key("sea", 1), "drift"), width=80, height=24))
    shown = sum("thread-outside:" in line for line in lines)
    assert 1 < shown < 30
    assert lines[-2] == f"and {40 - shown} more: atoll verify sea"


@pytest.mark.parametrize("panel", ["", "memory", "drift"])
def test_a_terminal_without_unicode_gets_none(panel: str) -> None:
    view = live_view(2, drift=1)
    (one,) = view.deployments
    view = view.model_copy(update={"deployments": (one.model_copy(update={"error": "é 短"}),)})
    chosen = Screen(Key("sea", None), panel)
    for height in (24, None):
        lines = text(screen(view, MACHINE, chosen, width=80, height=height, ascii_only=True))
        assert "\n".join(lines).isascii()


def test_wide_characters_do_not_make_a_line_longer() -> None:
    view = live_view(1)
    (one,) = view.deployments
    view = view.model_copy(update={"deployments": (one.model_copy(update={"error": "短" * 90}),)})
    lines = text(screen(view, MACHINE, Screen(), width=80, height=24))
    assert not any("短" in line for line in lines) and any("???" in line for line in lines)


def test_keys_select_and_open_panels() -> None:
    view = live_view(2)
    chosen = Screen()
    assert chosen.after("down", view).selected == Key("sea", 1)
    assert chosen.after("j", view).after("j", view).after("k", view).selected == Key("sea", 0)
    assert chosen.after("m", view).panel == "memory"
    assert chosen.after("m", view).after("m", view).panel == ""
    assert chosen.after("p", view).paused
    assert chosen.after("x", view) == chosen


def test_nothing_up_is_said() -> None:
    view = live_view(1).model_copy(update={"deployments": ()})
    said = text(screen(view, MACHINE, Screen().after("down", view), width=80, height=24))
    assert "nothing is up; start something with 'atoll up'" in said
