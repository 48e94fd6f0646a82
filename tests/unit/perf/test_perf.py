"""The harness of `make perf`: what a bar says and when, pairing, wrong answers, exit codes."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import perf.__main__ as command
from perf import harness
from perf.harness import Interval, WrongAnswer

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("low", "value", "high", "says"),
    [
        (0.8, 0.9, 0.95, "ok"),
        (0.9, 1.1, 1.2, "ok"),  # slower as it seems, but the interval holds 1
        (1.0, 1.1, 1.2, "ok"),
        (1.01, 1.1, 1.2, "short"),  # wholly above 1
    ],
)
def test_no_slower_is_short_only_if_the_interval_lies_wholly_above_1(
    low: float, value: float, high: float, says: str, capsys: Capture
) -> None:
    assert harness.no_slower("x-ratio", Interval(value, low, high)) == (says == "ok")
    assert capsys.readouterr().out == f"bar x-ratio {value:g} 1 {says}\n"


def test_bars_and_stretch_goals_have_a_fixed_form(capsys: Capture) -> None:
    assert harness.at_most("a-ms", 0.51234, 0.5) is False
    assert harness.at_most("a-ms", 0.5, 0.5) is True
    assert harness.at_least("b-gbs", 12.0, 10.0) is True
    assert harness.at_least("b-gbs", 9.99, 10.0) is False
    harness.stretch("c-ms", 3.0, 1.0)
    assert capsys.readouterr().out.splitlines() == [
        "bar a-ms 0.5123 0.5 short",
        "bar a-ms 0.5 0.5 ok",
        "bar b-gbs 12 10 ok",
        "bar b-gbs 9.99 10 short",
        "stretch c-ms 3 1",
    ]


def test_subjects_alternate_and_the_order_turns_round() -> None:
    ran: list[str] = []

    def subject(name: str, seconds: float) -> float:
        ran.append(name)
        return seconds

    found = harness.interleave(
        {"a": lambda: subject("a", 1.0), "b": lambda: subject("b", 2.0)}, rounds=3, warmup=1
    )
    assert "".join(ran) == "ab" + "ab" + "ba" + "ab"
    assert {name: list(seconds) for name, seconds in found.items()} == {
        "a": [1.0] * 3,
        "b": [2.0] * 3,
    }


def test_what_disturbs_a_round_disturbs_both_sides_alike() -> None:
    rng = np.random.default_rng(3)
    shared = rng.lognormal(0.0, 1.0, 60)
    found = harness.ratio(2.0 * shared, shared)
    assert (found.low, found.value, found.high) == pytest.approx((2.0, 2.0, 2.0))
    assert harness.ratio(2.0 * shared, shared) == found
    apart = harness.ratio(2.0 * shared, rng.lognormal(0.0, 1.0, 60))
    assert apart.high / apart.low > 1.2


def test_the_intervals_hold_the_true_figure() -> None:
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(100):
        found = harness.difference(rng.normal(3.0, 0.1, 40), rng.normal(1.0, 0.1, 40))
        held += found.low <= 2.0 <= found.high
    assert held >= 85


def test_a_program_that_fails_has_no_time() -> None:
    assert harness.spawn([sys.executable, "-c", "pass"]) > 0
    assert harness.spawn_cpu([sys.executable, "-c", "pass"]) > 0
    assert harness.timed_cpu(lambda: sum(range(10**6))) > 0
    with pytest.raises(WrongAnswer, match="exit status 3"):
        harness.spawn([sys.executable, "-c", "raise SystemExit(3)"])


def test_busy_and_idle_ticks() -> None:
    stat = "cpu  10 1 5 100 20 2 3 4 9 9\ncpu0 1 1 1 1 1 1 1 1 1 1\n"
    assert harness._cpu_ticks(stat) == (25, 145)  # iowait is idle, steal is busy, guest in user


def test_a_busy_machine_is_told(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr(harness, "busy_share", lambda window_s: 0.5)
    assert harness.wait_until_idle(patience_s=0.0) is False
    assert "50% busy with other work" in capsys.readouterr().err
    monkeypatch.setattr(harness, "busy_share", lambda window_s: harness.BUSY_LIMIT)
    assert harness.wait_until_idle(patience_s=0.0) is True
    assert capsys.readouterr().err == ""


def test_exit_codes_tell_wrong_answers_and_unknown_names(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    assert command.main(["nonsense"]) == 2
    assert (
        "no comparison 'nonsense'; there are: cachesim, duckdb, engines, exec, indexes, inspect"
        in capsys.readouterr().err
    )

    def wrong() -> None:
        raise WrongAnswer("two plans differ")

    monkeypatch.setattr(command, "wait_until_idle", lambda: True)
    monkeypatch.setattr("perf.plan.compare", wrong)
    assert command.main(["plan"]) == 1
    assert "perf: plan: wrong answer: two plans differ" in capsys.readouterr().err
    monkeypatch.setattr("perf.plan.compare", lambda: None)
    assert command.main(["plan"]) == 0
