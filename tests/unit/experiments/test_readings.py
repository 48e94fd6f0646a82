"""Terms over a grid that was measured."""

from __future__ import annotations

import pytest

from atoll.experiments.catalog import get
from atoll.experiments.claims import Reading, judge, parse_claim, parse_term
from atoll.experiments.ours import failed, of_results, verdicts
from atoll.experiments.readings import BenchReadings
from tests.parts.bench_grid import MEASURED, grid, measured

READ = BenchReadings(MEASURED, "spark")


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


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("speedup(n=3)", "no deployment with n=3 was measured"),
        ("speedup(n=2, memory=bind)", "no deployment"),
        ("speedup(policy=win)", "no deployment with policy=win"),
        ("speedup(n=4, query=q99)", "no block has it"),
        ("best(over=smt)", "smt was not measured"),
        ("peak(n=4)", "did not report its peak memory"),
        ("latency(n=4)", "a bench has no latency"),
    ],
)
def test_what_was_not_measured_is_said(text: str, words: str) -> None:
    found = READ(parse_term(text))
    assert isinstance(found, str) and words in found


def test_a_deployment_that_is_the_baseline_here_is_no_speedup() -> None:
    one = measured(grid("policy=win,wicp,wic"), {})
    read = BenchReadings(one, "spark")
    assert "same deployment as WIM" in str(read(parse_term("speedup(policy=win)")))


def test_a_claim_over_the_grid_is_judged_by_pairs() -> None:
    verdict = judge(
        parse_claim("speedup(n=4) > speedup(n=2) and speedup(n=4) >= best(over=n)"), READ
    )
    assert verdict.outcome == "held", verdict.reasons


def test_verdicts_are_by_engine() -> None:
    ours = of_results(MEASURED, "grid.jsonl")
    found = verdicts(get("olap-fig9"), ours)
    assert [*found] == ["spark"] and not failed(found)
    assert ours.source == "grid.jsonl" and ours.size.startswith("tpch SF ")
