"""The order of deployments and of queries, and the wait for an idle machine."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.bench.idle import idle_between, wait_until_idle
from atoll.bench.schedule import in_block, stream_orders
from atoll.host.cpu_times import CpuTimes
from tests.parts.bench import IDLE
from tests.parts.fake_host import FakeHost


def test_schedule_reverses_from_block_to_block() -> None:
    assert in_block(["a", "b", "c"], 0) == [(0, "a"), (1, "b"), (2, "c")]
    assert in_block(["a", "b", "c"], 1) == [(0, "c"), (1, "b"), (2, "a")]


@given(st.lists(st.text(min_size=1), min_size=1, max_size=6, unique=True), st.integers(1, 5))
def test_schedule_is_balanced(labels: list[str], pairs: int) -> None:
    """Over an even number of blocks everybody has the same mean position, once a block."""
    turns = [turn for block in range(2 * pairs) for turn in in_block(labels, block)]
    for label in labels:
        positions = [position for position, name in turns if name == label]
        assert len(positions) == 2 * pairs
        assert sum(positions) / len(positions) == pytest.approx((len(labels) - 1) / 2)


@given(st.integers(1, 22), st.integers(1, 9))
def test_every_stream_asks_everything_once(queries: int, streams: int) -> None:
    names = [f"q{number}" for number in range(1, queries + 1)]
    orders = stream_orders(names, streams)
    assert len(orders) == streams
    assert all(sorted(order) == sorted(names) for order in orders)
    if streams <= queries:
        assert len({order[0] for order in orders}) == streams


def test_idle_share() -> None:
    assert idle_between(CpuTimes(100, 0, 200), CpuTimes(180, 0, 300)) == pytest.approx(0.8)
    assert idle_between(CpuTimes(100, 0, 200), CpuTimes(100, 0, 200)) == 1.0
    busy = FakeHost(IDLE)
    calls = 0
    read = busy.read_text

    def reading(path: str) -> str:
        nonlocal calls
        calls += 1
        return read(path).replace("cpu  100", f"cpu  {100 + calls * 50}")

    busy.read_text = reading  # type: ignore[method-assign]
    assert wait_until_idle(busy, 5.0) == pytest.approx(0.0)
    assert 5.0 <= busy.now_s <= 6.0  # it waited for quiet, but not for ever
    assert wait_until_idle(FakeHost({}), 5.0) == 1.0
