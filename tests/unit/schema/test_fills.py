"""What readings of simulated caches add up to."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from atoll.schema.fills import FillRow, FillSources
from tests.parts.fills import counts, row


def test_sources_are_seen_from_the_chiplet_that_got_the_line() -> None:
    seen = counts(row((5, 7, 11), (13, 17)))
    assert seen.sources() == FillSources(
        own_l3=5, other_chiplet=7, other_node=11, local_memory=13, remote_memory=17
    )
    assert seen.sources().share("own_l3") == 5 / 53
    assert seen.sources("kernel").lines == 0
    assert seen.sources(chiplets=[2]).share("own_l3") == 0


def test_a_difference_is_what_was_counted_between() -> None:
    between = counts(row((5, 7, 11)), 3_000_000).since(counts(row((1, 2, 3))))
    assert between.user[0].from_chiplets == (4, 5, 8)
    assert between.user[0].instructions == 0
    assert between.simulated_s == pytest.approx(0.0005)


@pytest.mark.parametrize("bad", [row((1, 2)), row((1, 2, 3), (1,))])
def test_rows_of_another_machine_are_refused(bad: FillRow) -> None:
    with pytest.raises(ValidationError, match="a row wants 3 chiplets and 2 nodes"):
        counts(bad)
