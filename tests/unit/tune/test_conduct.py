"""A search carried out: what a run may do wrong, and that no switch stays turned."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from atoll.errors import AtollError, CheckFailed, UsageError
from atoll.host.api import Conversation
from atoll.knobs.journal import JournalFolder
from atoll.schema.advice import Reach
from atoll.schema.tuning import Verdict
from atoll.tune import search
from atoll.tune.conduct import Found, Work, conduct
from atoll.tune.factors import Factor, Recipe
from atoll.tune.metric import parse_metric
from atoll.tune.runs import EMPTY, CommandRuns
from tests.parts.faults import fails
from tests.parts.knobs import BALANCING, Kernel
from tests.parts.tuning import Answer, FakeRunner, Law

MALLOC = Factor("malloc", "malloc", "", Reach.PROCESS, "system", ("jemalloc", "tbbmalloc"))
AUTONUMA = Factor("autonuma", "numa-balancing", "", Reach.SYSTEM, "1", ("0",))


class Host(Kernel):
    """A kernel with knobs, on which the command runs as `answer` says."""

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self.answer = answer
        self.runner: FakeRunner | None = None

    def converse(self, argv: object, *, env: Mapping[str, str]) -> Conversation:
        self.runner = FakeRunner(self, self.answer)
        return self.runner


def as_is(argv: list[str], number: int) -> dict[str, object]:
    return {}


def recipe(setting: search.Setting) -> Recipe:
    values = dict(setting)
    return Recipe(
        flags=("--malloc", values["malloc"]) if "malloc" in values else (),
        knobs={"numa-balancing": values["autonuma"]} if "autonuma" in values else {},
    )


@pytest.fixture
def folder(tmp_path: Path) -> JournalFolder:
    return JournalFolder(tmp_path / "knobs")


def tuned(
    host: Host,
    folder: JournalFolder,
    *factors: Factor,
    metric: str = "time",
    time_s: float = 10_000,
    watch: Callable[..., None] = lambda *_: None,
) -> Found:
    def start(knobs_folder: str) -> CommandRuns:
        return CommandRuns(host, ["prog"], stdin=EMPTY, knobs_folder=knobs_folder)

    work = Work("prog", parse_metric(metric), factors or (MALLOC,), recipe, time_s, start, "")
    return conduct(host, work, folder, watch)


def test_a_gain_is_found_and_reported_while_it_goes(folder: JournalFolder) -> None:
    host = Host(lambda argv, number: {"seconds": 0.7 if "jemalloc" in argv else 1.0})
    seen = []
    found = tuned(host, folder, watch=lambda block, number, left_s: seen.append(block))
    assert found.outcome.best == (("malloc", "jemalloc"),)
    assert {block.doing for block in seen} == {"halving", "judging"}
    assert seen[-1].leader is not None and seen[-1].leader.setting == found.outcome.best
    assert not found.cautions and not found.left_out
    assert host.runner is not None and host.runner.runs == len(found.runs) + 2
    assert host.runner.ended


def test_without_a_value_nothing_is_run(folder: JournalFolder) -> None:
    none = Factor("memory", "memory", "", Reach.PROCESS, "default", why_none="one node")
    host = Host(as_is)
    assert tuned(host, folder, none).outcome.best == search.BASELINE
    assert host.runner is None


# ---- commands that cannot be measured ----------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        ({"status": 3, "stderr": "prog: no such table\n"}, {"status": "3"}),
        ({"status": -11}, {"signal": "11"}),
        ({"status": -9}, {"signal": "9"}),
        ({"seconds": 0.003}, {"seconds": "0.003"}),
        ({"left": ["serverd"]}, {"name": "serverd"}),
        ({"fault": "no end"}, {"limit": "10000"}),
    ],
)
def test_a_command_that_cannot_be_measured_is_refused(
    answer: dict[str, object], named: dict[str, str], folder: JournalFolder
) -> None:
    host = Host(lambda argv, number: answer)
    with fails(UsageError, command="prog", **named):
        tuned(host, folder)
    assert host.runner is not None and host.runner.ended


def test_trying_it_out_takes_no_longer_than_the_time(folder: JournalFolder) -> None:
    host = Host(lambda argv, number: {"seconds": 15.0})
    with pytest.raises(UsageError, match="runs are the least"):
        tuned(host, folder, time_s=20)
    assert host.runner is not None and host.runner.limits_s == [20.0, 5.0]


def test_a_metric_that_the_output_lacks_is_refused(folder: JournalFolder) -> None:
    with fails(UsageError, metric="tps = (.*)"):
        tuned(Host(as_is), folder, metric="tps = (.*)")


def test_too_little_time_is_refused_with_what_is_enough(folder: JournalFolder) -> None:
    with fails(UsageError, command="prog", runs="27"):
        tuned(Host(as_is), folder, time_s=20)


def test_a_command_that_fails_on_the_way_decides_nothing(folder: JournalFolder) -> None:
    host = Host(lambda argv, number: {"status": int(number > 20 and "--malloc" not in argv)})
    with fails(CheckFailed, command="prog"):
        tuned(host, folder)


@pytest.mark.parametrize("fails_at", [5, 6, 7])  # first of all the baseline, or a setting
def test_a_command_that_fails_now_and_then_is_decided_with_its_failures_counted(
    fails_at: int, folder: JournalFolder
) -> None:
    def answer(argv: list[str], number: int) -> dict[str, object]:
        return {
            "seconds": 0.7 if "jemalloc" in argv else 1.0,
            "status": int(number % 19 == fails_at),
        }

    found = tuned(Host(answer), folder)
    assert found.outcome.best == (("malloc", "jemalloc"),)
    (said,) = [text for text in found.cautions if "failed" in text]
    assert " of " in said and "exit status 1" in said


def test_the_baseline_may_fail_in_a_quarter_of_its_runs(folder: JournalFolder) -> None:
    runs = 0

    def answer(argv: list[str], number: int) -> dict[str, object]:
        nonlocal runs
        runs += "--malloc" not in argv
        return {"status": int("--malloc" not in argv and runs % 3 == 0)}

    with fails(CheckFailed, command="prog"):
        tuned(Host(answer), folder)


# ---- settings that cannot be used --------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"status": 1, "stderr": "out of memory"}, "out of memory"),
        ({"status": -9}, "memory is short"),
        ({"digest": "another"}, "output differs"),
        ({"fault": "no end"}, "no end"),
    ],
)
def test_a_setting_that_fails_is_left_out_with_the_reason(
    answer: dict[str, object], why: str, folder: JournalFolder
) -> None:
    found = tuned(Host(lambda argv, number: answer if "jemalloc" in argv else {}), folder)
    assert [one.what for one in found.left_out] == ["malloc=jemalloc"]
    assert why in found.left_out[0].why
    assert [one.setting for one in found.outcome.effects] == [(("malloc", "tbbmalloc"),)]


def test_a_setting_that_fails_more_often_than_the_baseline_is_left_out(
    folder: JournalFolder,
) -> None:
    """Though it is faster whenever it does not fail."""
    runs = 0

    def answer(argv: list[str], number: int) -> dict[str, object]:
        nonlocal runs
        runs += "jemalloc" in argv
        fails = "jemalloc" in argv and runs % 3 == 0
        return {"seconds": 0.7 if "jemalloc" in argv else 1.0, "status": int(fails)}

    found = tuned(Host(answer), folder)
    assert found.outcome.best == search.BASELINE
    (left_out,) = found.left_out
    assert left_out.what == "malloc=jemalloc" and "in 4 of 12 runs" in left_out.why


def test_a_setting_that_fails_as_often_as_the_baseline_is_seldom_left_out(
    folder: JournalFolder,
) -> None:
    """100 searches whose runs fail by a chance of 1/8: at most as often as stated, for each of the
    two settings. Searches whose baseline fails too often decide nothing."""
    rng, out, judged = np.random.default_rng(1), 0, 0
    for seed in range(100):
        law = Law({}, noise=0.05, seed=seed)

        def answer(argv: list[str], number: int, law: Law = law) -> dict[str, object]:
            return {"seconds": law.cost(()), "status": int(number > 2 and rng.random() < 1 / 8)}

        try:
            out += len(tuned(Host(answer), folder, time_s=150).left_out)
        except CheckFailed:
            continue
        judged += 2
    assert judged > 100 and out / judged <= 0.1


def test_an_output_that_always_changes_is_not_compared(folder: JournalFolder) -> None:
    found = tuned(Host(lambda argv, number: {"digest": str(number)}), folder)
    assert not found.left_out
    assert any("not compared" in text for text in found.cautions)


def test_wild_times_show_nothing_and_are_said(folder: JournalFolder) -> None:
    law = Law({}, noise=1.0)
    found = tuned(Host(lambda argv, number: {"seconds": law.cost(())}), folder, time_s=200)
    assert all(one.verdict is not Verdict.BETTER for one in found.outcome.effects)
    assert any("quartiles" in text for text in found.cautions)


# ---- switches of the whole system --------------------------------------------------------------


def test_a_switch_is_turned_for_its_setting_only_and_restored(folder: JournalFolder) -> None:
    host = Host(as_is)
    host.answer = lambda argv, number: {
        "seconds": {"1": 1.0, "0": 0.8}[host.value(BALANCING)],
    }
    found = tuned(host, folder, AUTONUMA)
    assert found.outcome.best == (("autonuma", "0"),)
    assert host.value(BALANCING) == "1"
    assert not (folder.folder / "bench.json").exists()


@pytest.mark.parametrize("last", [1, 2, 3, 4, 5, 10])
@pytest.mark.parametrize("fault", [KeyboardInterrupt, AtollError, MemoryError])
def test_no_switch_stays_turned_however_it_ends(
    last: int, fault: type[BaseException], folder: JournalFolder
) -> None:
    def answer(argv: list[str], number: int) -> dict[str, object]:
        if number == last:
            raise fault
        return {}

    host = Host(answer)
    with pytest.raises(fault):
        tuned(host, folder, AUTONUMA)
    assert host.value(BALANCING) == "1"
    assert host.runner is not None and host.runner.ended


def test_a_switch_that_this_kernel_refuses_is_said_and_nothing_is_turned(
    folder: JournalFolder,
) -> None:
    host = Host(as_is)
    host.refused[BALANCING, "0"] = 1
    with pytest.raises(AtollError, match="numa-balancing"):
        tuned(host, folder, AUTONUMA)
    assert host.value(BALANCING) == "1"
