"""A metric is read from a run, whether more or less of it is better; bad ones are refused."""

from __future__ import annotations

import pytest

from atoll.errors import UsageError
from atoll.tune.metric import Ran, parse_metric, parse_pass_metric
from tests.parts.faults import fails


def cost(metric: str, output: str = "") -> float:
    return parse_metric(metric).cost(Ran(seconds=2.0, rss_bytes=4096, output=output))


def test_time_and_memory_are_measured() -> None:
    assert cost("time") == 2.0
    assert cost("rss") == 4096.0


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        (r"tps = ([\d.,]+)", 1 / 1250.5),
        (r"throughput=tps = ([\d.,]+)", 1 / 1250.5),
        (r"p99=p99 (\d+)", 7.0),
        (r"time=took (\S+) ms", 3.5),
    ],
)
def test_a_number_in_the_output_is_the_last_that_matches(metric: str, expected: float) -> None:
    output = "tps = 1\ntps = 1,250.5\np99 7 ms, took 3.5 ms\n"
    assert cost(metric, output) == pytest.approx(expected)


@pytest.mark.parametrize("output", ["nothing", "n = x", "n = 0", "n = -3", "n = inf"])
def test_an_output_without_a_positive_number_is_a_fault(output: str) -> None:
    with pytest.raises(ValueError, match="output"):
        cost(r"n = (\S+)", output)


@pytest.mark.parametrize("metric", ["throughput", "p99", "tps", "(", "p99=("])
def test_what_cannot_be_read_is_refused(metric: str) -> None:
    with fails(UsageError, metric=metric):
        parse_metric(metric)


def test_a_pass_has_a_time_a_throughput_and_with_enough_queries_a_99th_percentile() -> None:
    def cost(metric: str, queries: int) -> float:
        latencies_s = [number / 100 for number in range(1, queries + 1)]
        return parse_pass_metric(metric).cost(Ran(seconds=4.0, latencies_s=latencies_s))

    assert cost("time", 8) == 4.0
    assert cost("throughput", 8) == 0.5
    assert cost("p99", 200) == 1.98


def test_a_99th_percentile_needs_100_queries_which_is_known_before_any_run() -> None:
    parse_pass_metric("p99").require_queries(100)
    parse_pass_metric("time").require_queries(1)
    with fails(UsageError, metric="p99", queries="99"):
        parse_pass_metric("p99").require_queries(99)


@pytest.mark.parametrize("metric", ["rss", "tps = (.*)"])
def test_a_pass_has_no_other_metric(metric: str) -> None:
    with fails(UsageError, metric=metric):
        parse_pass_metric(metric)
