"""What the demo measures in its time, and what it concludes."""

from __future__ import annotations

import pytest

from atoll.bench.analysis import summarise
from atoll.bench.demo import Cost, conclusion, cost_of, queries_that_fit
from tests.parts.bench import WIC, WIM, header, lines, results

COST = Cost({"q18": 6.0, "q6": 1.0, "q1": 2.0}, rest_s=10.0)


def test_the_cheapest_queries_are_taken_until_the_time_is_full() -> None:
    assert queries_that_fit(COST, 5, 95.0) == ("q6", "q1", "q18")
    assert queries_that_fit(COST, 5, 94.0) == ("q6", "q1")
    assert queries_that_fit(COST, 5, 55.0) == ("q6",)
    assert queries_that_fit(COST, 5, 54.0) == ()


def test_the_cost_of_a_deployment_is_its_queries_and_the_rest() -> None:
    one_block = results(lines((WIM, WIC), 1), header(WIM, WIC, blocks_asked=1))
    cost = cost_of(one_block, 100.0, 2)
    assert cost.of(cost.queries) == pytest.approx(50.0)
    assert 0 < sum(cost.queries.values()) < 50.0
    assert cost_of(one_block, 0.0, 2).rest_s == 0.0


def test_a_gain_is_named_with_the_command_that_brings_it() -> None:
    found, following = conclusion([summarise(results(lines((WIM, WIC), 6)))])
    assert found.startswith("spark with ") and "faster" in found
    assert "atoll up spark --policy wic" in following


def test_without_a_gain_the_default_is_as_good() -> None:
    equal = {"spark/wim": 1.0, "spark/wic": 1.0}
    found, following = conclusion([summarise(results(lines((WIM, WIC), 6, equal)))])
    assert "no significant difference" in found
    assert "atoll plan spark" in following


def test_without_an_interval_nothing_is_concluded() -> None:
    found, _ = conclusion([summarise(results(lines((WIM, WIC), 2)))])
    assert "interval" in found
    assert conclusion([])[0] == found
