"""What makes a run wrong: rows that violate a condition, and commits that are lost or invented."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from atoll.bench.runner import WrongAnswer
from atoll.engines.api import QueryResult
from atoll.engines.transactions import Condition
from atoll.oltp.checks import Checks
from atoll.schema.oltp import ConditionFound

SUMS = Condition("1", "sums agree", "select sums")


class StubClient:
    """Answers the condition and the count."""

    def __init__(self, rows: Sequence[tuple[Any, ...]], count: int) -> None:
        self.answers = {SUMS.sql: list(rows), "select count": [(count,)]}

    def execute(self, sql: str, *, timeout_s: float) -> QueryResult:
        return QueryResult((), self.answers[sql], 0)

    def instances(self, *, timeout_s: float) -> int:
        return 1

    def close(self) -> None: ...


def checked(
    rows: Sequence[tuple[Any, ...]], acknowledged: int, count: int, *, exact: bool
) -> tuple[ConditionFound, ...]:
    checks = Checks((SUMS,), ("payment", "select count"), "block 1")
    return checks.of(StubClient(rows, count), acknowledged, exact=exact)[1]


def test_all_hold() -> None:
    found = checked([], 7, 7, exact=True)
    assert [(one.name, one.violations) for one in found] == [("1", 0), ("acknowledged", 0)]


def test_a_violation_names_the_condition_and_its_first_row() -> None:
    with pytest.raises(WrongAnswer, match=r"block 1: violated conditions: 1$") as caught:
        checked([(1, None), (2, 5)], 7, 7, exact=True)
    assert "1: sums agree: 2 violations, first 1, None" in caught.value.detail


@pytest.mark.parametrize(
    ("acknowledged", "count", "exact", "wrong"),
    [
        (7, 6, True, True),  # lost
        (7, 8, True, True),  # invented
        (7, 6, False, True),
        (7, 8, False, False),  # committed, and the client was cut off from the answer
    ],
)
def test_what_was_acknowledged(acknowledged: int, count: int, exact: bool, wrong: bool) -> None:
    if not wrong:
        checked([], acknowledged, count, exact=exact)
        return
    with pytest.raises(WrongAnswer, match="violated conditions: acknowledged") as caught:
        checked([], acknowledged, count, exact=exact)
    assert f"{acknowledged} acknowledged, {count} there" in caught.value.detail
