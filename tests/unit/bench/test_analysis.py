"""From results to a summary: figures, verdicts, warnings; no engine."""

from __future__ import annotations

import pytest

from atoll.bench.analysis import summarise
from atoll.bench.results import Results
from atoll.report.bench import verdicts
from atoll.report.bench.page import html
from atoll.report.bench.render import FORMATS, render
from atoll.schema.plan import HugePages, Malloc, Policy
from atoll.schema.results import (
    BlockFailed,
    DeploymentUp,
    Entrant,
    Line,
    PassDone,
    QueryTime,
    VerifyResult,
)
from tests.parts.bench import WIM, entrant, header, lines, query_failed, results, time
from tests.parts.bench_plans import plan


def codes(found: Results) -> set[str]:
    return {warning.code for warning in summarise(found).warnings}


def test_speedups_are_paired_within_blocks() -> None:
    summary = summarise(results())
    wim, wic = summary.entrants
    assert wim.speedups == ()
    for query in ("geomean", "q1", "q6", "pass"):
        found = verdicts.speedup_of(wic, query)
        assert found is not None and found.interval is not None
        # The machine slowed down by half over the run; the pairs do not know it.
        assert found.value == pytest.approx(2.0)
        assert (found.interval.low, found.interval.high) == pytest.approx((2.0, 2.0))
        assert found.verdict == "faster"
    q1 = verdicts.times_of(wic, "q1")
    assert q1 is not None and q1.median_s == pytest.approx((1.2 * 1.3) ** 0.5)
    assert summary.blocks_done == 6
    assert summary.basis == "measured"
    assert codes(results()) == set()


def test_warm_ups_and_broken_passes_do_not_count() -> None:
    given = [
        *lines(blocks=6)[:-1],
        time(0, "spark/wic", "q1", 99.0, "warm-up"),
        time(6, "spark/wic", "q1", 99.0),
        BlockFailed(block=6, label="spark/wic", error="died"),
        time(6, "spark/wim", "q1", 99.0),
        time(6, "spark/wim", "q6", 99.0),
        PassDone(block=6, label="spark/wim", seconds=198.0),
    ]
    summary = summarise(results(given))
    wic = summary.entrants[1]
    q1 = verdicts.times_of(wic, "q1")
    found = verdicts.speedup_of(wic, "q1")
    assert q1 is not None and q1.max_s < 2.0
    assert (wic.blocks_done, wic.blocks_failed) == (6, 1)
    assert found is not None and found.blocks == 6 and found.value == pytest.approx(2.0)
    assert (summary.blocks_done, summary.blocks_failed) == (6, 1)
    assert "block-failed" in codes(results(given))


def test_below_five_blocks_no_interval_anywhere() -> None:
    summary = summarise(results(lines(blocks=4)))
    text = summary.model_dump_json()
    assert '"interval":{' not in text
    assert '"verdict":"cannot tell"' in text
    assert "few-blocks" in codes(results(lines(blocks=4)))
    page = html(header(), summary)
    assert "whisker" not in page.split("</style>")[1]


def test_no_difference_is_a_result() -> None:
    given = lines(blocks=6)
    noisy = [
        line.model_copy(update={"seconds": line.seconds * (2.0 if line.block % 2 else 2.2)})
        if isinstance(line, QueryTime | PassDone) and line.label == "spark/wic"
        else line
        for line in given
    ]
    mixed = [
        line.model_copy(update={"seconds": line.seconds * (0.9 if line.block < 3 else 1.05)})
        if isinstance(line, QueryTime | PassDone) and line.label == "spark/wic"
        else line
        for line in noisy
    ]
    summary = summarise(results(mixed))
    found = verdicts.speedup_of(summary.entrants[1], "geomean")
    assert found is not None and found.verdict == "no significant difference"
    assert verdicts.verdicts(summary)[0].startswith("No significant difference between spark/wic")


def test_streams_are_averaged_geometrically() -> None:
    head = header(WIM.model_copy(update={"streams": 2}), blocks_asked=1, queries=("q1",))
    given: list[Line] = [
        time(0, "spark/wim", "q1", 1.0),
        time(0, "spark/wim", "q1", 4.0).model_copy(update={"stream": 1}),
        PassDone(block=0, label="spark/wim", seconds=4.0),
    ]
    q1 = verdicts.times_of(summarise(results(given, head)).entrants[0], "q1")
    assert q1 is not None and q1.median_s == pytest.approx(2.0)
    assert q1.blocks == 1


def test_a_run_without_any_block_can_be_reported() -> None:
    failed: list[Line] = [BlockFailed(block=0, label="spark/wim", error="x")]
    gone: list[Line] = [query_failed(0, "spark/wim", query) for query in ("q1", "q6")]
    for some in ([], failed, gone, [*lines()[:-1], *gone]):
        found = results(some)
        assert summarise(found).status == "unfinished"
        for kind in FORMATS:
            assert render(found, kind)


@pytest.mark.parametrize(
    ("given", "code"),
    [
        (lines(idle=0.5), "busy-machine"),
        (
            [*lines(), VerifyResult(block=0, label="spark/wic", threads=9, drifted=2, detail="d")],
            "drift",
        ),
        (
            [
                line.model_copy(update={"cached_share": None})
                if isinstance(line, DeploymentUp)
                else line
                for line in lines()
            ],
            "page-cache",
        ),
        (
            [
                line.model_copy(update={"seconds": 500.0})
                if isinstance(line, QueryTime) and line.block == 3
                else line
                for line in lines()
            ],
            "outliers",
        ),
        (
            [
                *lines(),
                time(0, "spark/wic", "q1", 1.0).model_copy(
                    update={"answer": "wrong", "detail": "row 1 is (2)"}
                ),
            ],
            "wrong-answer",
        ),
    ],
)
def test_warnings(given: list[Line], code: str) -> None:
    assert code in codes(results(given))


@pytest.mark.parametrize(
    "change",
    [
        {"total_heap_bytes": 1 << 30},
        {"total_threads": 3},
        {"shuffle_partitions": 9},
        {"malloc": Malloc.JEMALLOC},
        {"thp": HugePages.NEVER},
    ],
)
def test_unequal_totals_are_not_comparable(change: dict[str, object]) -> None:
    other = Entrant(
        label="spark/wic",
        engine="spark",
        plan=plan("spark", Policy.WIC, 4, **change),
        baseline="spark/wim",
    )
    found = results(head=header(WIM, other))
    assert "not-comparable" in codes(found)
    assert "NOT EQUAL" in " ".join(verdicts.equal_settings(summarise(found)))


def test_coinciding_entrants_are_told() -> None:
    twin = entrant("spark", Policy.WIN)
    assert "coincide" in codes(results(lines((WIM, twin)), header(WIM, twin)))
