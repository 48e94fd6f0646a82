"""Terms over a grid that was measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from atoll.bench.results import Results
from atoll.errors import UsageError
from atoll.experiments.catalog import get
from atoll.experiments.claims import Reading, judge, parse_claim, parse_term
from atoll.experiments.ours import failed, of_results, verdicts
from atoll.experiments.readings import BenchReadings
from atoll.schema.operators import QueryProfile
from atoll.schema.results import EngineWork, Line, PassPlaces, QueryProfiled, QueryTime, QueryWork
from atoll.schema.whereabouts import Whereabouts
from tests.parts.bench_grid import MEASURED, grid, measured

READ = BenchReadings.of(MEASURED, "spark")


def value(text: str) -> float:
    found = READ(parse_term(text))
    assert isinstance(found, Reading), found
    return found.estimate.value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("speedup(n=4)", 2.0),
        ("speedup(n=2)", 1.25),
        ("speedup()", 1.0),
        ("speedup(memory=bind)", 2.0),
        ("speedup(memory=interleave)", 0.8),
        ("speedup(n=4, query=q1)", 2.0),
        ("best(over=n)", 2.0),
        ("best(over=memory)", 2.0),
        ("scaling(cores=1)", 1.0),
        ("scaling(cores=2)", 2.0),
        ("scaling(cores=cores)", 3.6),
        ("least_query(n=4)", 2.0),
        ("most_query(n=4)", 2.0),
    ],
)
def test_a_term_finds_its_deployment(text: str, expected: float) -> None:
    assert value(text) == pytest.approx(expected, rel=1e-6)


def test_the_mean_is_the_papers_statistic() -> None:
    found = READ(parse_term("speedup(n=4)"))
    assert isinstance(found, Reading) and found.mean == pytest.approx(2.0)
    # One slow run of WIM moves the mean and not the median.
    slow = [
        line.model_copy(update={"seconds": line.seconds * 10})
        if isinstance(line, QueryTime) and (line.block, line.label) == (5, "spark/wim")
        else line
        for line in MEASURED.lines
    ]
    read = BenchReadings.of(Results(MEASURED.header, tuple(slow)), "spark")
    found = read(parse_term("speedup(n=4)"))
    assert isinstance(found, Reading) and found.mean
    assert found.estimate.value == pytest.approx(2.0) and found.mean > 4


def altered(given: Results, seconds: Callable[[QueryTime], float | None]) -> BenchReadings:
    """Each query takes what `seconds` says; None: the line is missing."""
    lines = [
        line.model_copy(update={"seconds": seconds(line)}) if isinstance(line, QueryTime) else line
        for line in given.lines
        if not isinstance(line, QueryTime) or seconds(line) is not None
    ]
    return BenchReadings.of(Results(given.header, tuple(lines)), "spark")


def test_the_mean_of_a_time_is_over_its_runs() -> None:
    found = READ(parse_term("time(query=q1)"))
    assert isinstance(found, Reading) and found.blocks
    assert found.mean == pytest.approx(sum(found.blocks.values()) / len(found.blocks))


def test_the_mean_is_over_the_blocks_that_both_have() -> None:
    """One block is 100 times slow, and in it one deployment failed."""

    def seconds(line: QueryTime) -> float | None:
        if (line.block, line.label) == (5, "spark/n=4"):
            return None
        return line.seconds * (100 if line.block == 5 else 1)

    found = altered(MEASURED, seconds)(parse_term("speedup(n=4)"))
    assert isinstance(found, Reading) and found.mean == pytest.approx(2.0)


def test_no_query_is_slower_is_judged_of_every_query() -> None:
    """q6 has the least point; the interval of q1 is wide."""
    times = {"q1": [0.3, 3.0, 0.4, 2.9, 0.97, 0.96], "q6": [1.01] * 6}

    def seconds(line: QueryTime) -> float:
        return times[line.query][line.block] if line.label == "spark/wicp" else 1.0

    read = altered(measured(grid("policy=wicp"), {}), seconds)
    least = read(parse_term("least_query(policy=wicp)"))
    assert isinstance(least, Reading) and least.of.endswith("q6")
    verdict = judge(parse_claim("least_query(policy=wicp) >= 1"), read)
    assert verdict.outcome == "could not be judged" and "q1" in verdict.reasons[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("speedup(n=3)", "no deployment has n=3"),
        ("speedup(n=2, memory=bind)", "no deployment"),
        ("speedup(policy=win)", "no deployment has policy=win"),
        ("speedup(n=4, query=q99)", "no block has it"),
        ("best(over=smt)", "smt was not measured"),
        ("peak(n=4)", "did not report its peak memory"),
        ("latency(n=4)", "a bench has no latency"),
    ],
)
def test_what_was_not_measured_is_said(text: str, words: str) -> None:
    found = READ(parse_term(text))
    assert isinstance(found, str) and words in found


def test_a_deployment_that_is_its_own_baseline_here_proves_nothing() -> None:
    read = BenchReadings.of(measured(grid("policy=win,wicp,wic"), {"spark/wicp": 0.5}), "spark")

    def outcome(text: str) -> str:
        return judge(parse_claim(text), read).outcome

    assert outcome("speedup(policy=win) > 1") == "could not be judged"
    assert outcome("speedup(policy=win) >= 1") == "could not be judged"
    assert outcome("gain(policy=wicp, over=wicp) ~ 1") == "could not be judged"
    assert outcome("speedup(policy=wicp) > speedup(policy=win)") == "held"
    assert outcome("gain(policy=wicp, over=wic) > 1") == "held"
    assert outcome("gain(policy=wic, over=wicp) > 1") == "did not hold"


def test_a_speedup_of_a_memory_policy_is_over_wim_without_one() -> None:
    seconds = {"spark/wim/memory=bind": 4.0, "spark/wicp/memory=bind": 0.5}
    read = BenchReadings.of(
        measured(grid("policy=wim,wicp", "memory=bind,interleave", product=True), seconds), "spark"
    )
    found = read(parse_term("speedup(policy=wicp, memory=bind)"))
    assert isinstance(found, Reading) and found.estimate.value == pytest.approx(2.0)
    within = read(parse_term("gain(policy=wicp, memory=bind, over=wim)"))
    assert isinstance(within, Reading) and within.estimate.value == pytest.approx(8.0)


def test_a_claim_over_the_grid_is_judged_by_pairs() -> None:
    verdict = judge(
        parse_claim("speedup(n=4) > speedup(n=2) and speedup(n=4) >= best(over=n)"), READ
    )
    assert verdict.outcome == "held", verdict.reasons


def peaks(streams: int, *told: Line) -> Reading | str:
    header = MEASURED.header
    entrants = tuple(one.model_copy(update={"streams": streams}) for one in header.entrants)
    results = Results(header.model_copy(update={"entrants": entrants}), (*MEASURED.lines, *told))
    return BenchReadings.of(results, "spark")(parse_term("peak(query=q1)"))


def test_a_peak_is_of_a_query_alone() -> None:
    at: dict[str, Any] = {"label": "spark/wim", "query": "q1"}
    told = EngineWork(peak_bytes=2_000_000_000)
    work = [QueryWork(block=block, work=told, **at) for block in range(6)]
    found = peaks(1, *work)
    assert isinstance(found, Reading) and found.estimate.value == pytest.approx(2)
    assert "but of 2 at a time" in str(peaks(2, *work))
    alone = QueryProfiled(block=0, profile=QueryProfile(operators=(), peak_bytes=10**9), **at)
    found = peaks(2, *work, alone)
    assert isinstance(found, Reading) and found.estimate.value == pytest.approx(1)


def test_remote_traffic_is_what_was_counted_and_no_estimate() -> None:
    def read(counted: float | None) -> Reading | str:
        places = Whereabouts(
            processes=1,
            threads=1,
            elsewhere=0,
            migrations=0,
            cpu_s_by_node={},
            bytes_by_node={},
            local_pages=0.9,
            local_resctrl=counted,
            read_bytes=0,
            written_bytes=0,
        )
        lines = [PassPlaces(block=n, label="spark/wim", places=places) for n in range(6)]
        return BenchReadings.of(Results(MEASURED.header, (*MEASURED.lines, *lines)), "spark")(
            parse_term("remote()")
        )

    for counted, expected in ((0.25, 75.0), (1.0, 0.01)):
        found = read(counted)
        assert isinstance(found, Reading) and found.estimate.value == pytest.approx(expected)
    assert read(None) == "remote memory traffic was not counted (resctrl)"


def test_verdicts_are_by_engine() -> None:
    ours = of_results(get("olap-fig9"), MEASURED, "grid.jsonl")
    found = verdicts(get("olap-fig9"), ours)
    assert [*found] == ["spark"] and not failed(found)
    with pytest.raises(UsageError, match="of the suite tpch, not of olap-fig13"):
        of_results(get("olap-fig13"), MEASURED, "grid.jsonl")
    assert ours.source == "grid.jsonl" and ours.size.startswith("tpch SF ")
