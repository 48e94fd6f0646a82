"""What `atoll tune` prints: every line fits, and says what was found."""

from __future__ import annotations

import pytest

from atoll.report.terminal.tuning import standing_text, tuning_text
from atoll.schema.machine import Summary
from atoll.schema.tuning import Effect, LeftOut, Run, Tuning, Verdict
from atoll.stats.paired import Interval
from atoll.tune.search import Block, Judged
from tests.parts.machines import plain

MALLOC = Effect(
    setting={"malloc": "tbbmalloc"},
    gain=1.62,
    low=1.55,
    high=1.7,
    blocks=18,
    verdict=Verdict.BETTER,
)
MEMORY = Effect(
    setting={"memory": "weighted interleave:0-3,8-11"},
    gain=1.0,
    low=0.99,
    high=1.01,
    blocks=36,
    verdict=Verdict.SAME,
)
DROPPED = Effect(setting={"malloc": "tcmalloc"}, gain=1.2, blocks=3)


def result(*effects: Effect, **best: str) -> Tuning:
    summary: Summary = plain().summary
    return Tuning(
        command=("./prog", "--size", "3"),
        metric="time",
        machine=summary,
        machine_id="0" * 16,
        kernel="6.12",
        time_s=100.0,
        error=0.05,
        margin=0.02,
        comparisons=2,
        effects=effects,
        dropped=(DROPPED,),
        best=best,
        prefix="atoll-exec --malloc tbbmalloc --" if best else "",
        knobs={},
        left_out=(LeftOut(what="smt", why="each core has one thread that the command may use"),),
        cautions=("other programs took more than 10% of the CPUs in 3 of 40 blocks",),
        runs=(),
    )


def test_a_gain_is_shown_with_its_interval_and_the_way_to_keep_it() -> None:
    text = tuning_text(result(MALLOC, MEMORY, malloc="tbbmalloc"), width=80, colour=False)
    assert max(map(len, text.splitlines())) <= 80
    for part in (
        "Best: malloc=tbbmalloc, 1.62x [1.55, 1.70].",
        "To keep it: atoll-exec --malloc tbbmalloc -- ./prog --size 3",
        "dropped early",
        "at most 5%",
        "Left out: smt:",
        "Caution: other programs",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("effects", "said"),
    [
        ((MEMORY,), "Leave it: no setting is better."),
        ((MALLOC.model_copy(update={"verdict": Verdict.CANNOT_TELL}),), "more --time"),
        ((), "nothing to vary"),
    ],
)
def test_leave_it_is_an_answer(effects: tuple[Effect, ...], said: str) -> None:
    assert said in tuning_text(result(*effects), width=80, colour=False)


def test_values_that_all_failed_are_not_called_nothing() -> None:
    run = Run(block=0, setting={}, seconds=1.0, cpu_s=1.0, rss_bytes=1, cost=1.0)
    found = result().model_copy(update={"runs": (run,)})
    assert "no other value could be measured" in tuning_text(found, width=80, colour=False)


def test_an_engine_is_kept_by_the_options_of_up_or_by_a_plan() -> None:
    engine = {"command": ("atoll", "up", "duckdb"), "suite": "tpch SF 1, 22 queries in 1 stream"}
    found = result(MALLOC, malloc="tbbmalloc")
    by_options = found.model_copy(update=engine | {"prefix": "--malloc tbbmalloc"})
    text = tuning_text(by_options, width=80, colour=False)
    assert text.startswith("atoll up duckdb, tpch SF 1, 22 queries in 1 stream: time\n")
    assert "To keep it: atoll up duckdb --malloc tbbmalloc\n" in text
    by_plan = found.model_copy(update=engine | {"prefix": ""})
    follow = f"atoll up /nowhere/{'folder/' * 9}plan.json"
    text = tuning_text(by_plan, width=80, colour=False, follow=follow)
    assert f"To keep it: {follow}\n" in text  # in one line, for copying


@pytest.mark.parametrize(
    ("leader", "said"),
    [
        (None, "nothing known yet"),
        (Judged((("malloc", "x"),), 1.2, None, 2, None), "gain 1.20, not judged yet"),
        (Judged((("malloc", "x"),), 1.2, Interval(1.1, 1.3), 9, Verdict.BETTER), "[1.10, 1.30]"),
        (Judged((("malloc", "x"),), 0.9, None, 2, None), "nothing is better yet"),
    ],
)
def test_progress_says_what_leads_and_how_sure_it_is(leader: Judged | None, said: str) -> None:
    text = standing_text(Block((), "judging", leader), 11, 192.0)
    assert said in text and text.startswith("judging, block 12:") and "3.2 min" in text
