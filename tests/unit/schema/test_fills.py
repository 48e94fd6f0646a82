"""What readings of simulated caches add up to."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from atoll.schema.fills import Crossings, FillCounts, FillRow, FillSources
from tests.parts.fills import counts, row


def test_sources_are_seen_from_the_chiplet_that_got_the_line() -> None:
    seen = counts(row((5, 7, 11), (13, 17)))
    assert seen.sources() == FillSources(
        own_l3=5, other_chiplet=7, other_node=11, local_memory=13, remote_memory=17
    )
    assert seen.sources().share("own_l3") == 5 / 53
    assert seen.sources("kernel").lines == 0
    assert seen.sources(chiplets=[2]).share("own_l3") == 0


def test_a_line_counts_at_the_widest_border_that_it_crosses() -> None:
    """Chiplets 0 and 1 are on node 0, 2 on node 1 of the same package, 3 on node 2 of another."""
    zeros = (0, 0, 0, 0)
    first = row((1, 10, 100, 1000), (1, 100, 1000)).model_copy(update={"written": (1, 20, 300)})
    none = row(zeros, zeros[1:]).model_copy(update={"written": zeros[1:]})
    found = FillCounts(
        quantum_cycles=1000,
        clock_mhz=2000,
        cycles=1,
        lost_patience=0,
        node_of_chiplet=(0, 0, 1, 2),
        package_of_node=(0, 0, 1),
        user=(first, none, none, none),
        kernel=(none, none, none, none),
    )
    assert found.crossings() == Crossings(
        chiplet_bytes=10 * 64, node_bytes=220 * 64, package_bytes=2300 * 64
    )
    assert found.crossings("kernel").package_bytes == 0


def test_a_difference_is_what_was_counted_between() -> None:
    between = counts(row((5, 7, 11)), 3_000_000).since(counts(row((1, 2, 3))))
    assert between.user[0].from_chiplets == (4, 5, 8)
    assert between.user[0].instructions == 0
    assert between.simulated_s == pytest.approx(0.0005)


@pytest.mark.parametrize("bad", [row((1, 2)), row((1, 2, 3), (1,))])
def test_rows_of_another_machine_are_refused(bad: FillRow) -> None:
    with pytest.raises(ValidationError, match="a row wants 3 chiplets and 2 nodes"):
        counts(bad)
