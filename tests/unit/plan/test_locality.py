"""Whether an instance's part of a peak fits into L3, and when spreading it reaches more of it."""

from __future__ import annotations

from typing import Any

import pytest

from atoll.plan import make_plan
from atoll.plan.capacity import Demand
from tests.parts.machines import MIB, milan, plain
from tests.parts.plan import DISTRIBUTED, SINGLE

L3 = 32 * MIB  # of each of the 8 chiplets of a package


def said(peak_bytes: int, policy: str = "wicp", **more: Any) -> str:
    crossing = more.pop("crossing_bytes", None)
    plan = make_plan(
        milan(1),
        DISTRIBUTED,
        policy,
        demand=Demand(peak_bytes, source="observed", crossing_bytes=crossing),
        **more,
    )
    found = [one.text for one in plan.reasons if one.rule == "cache of an instance"]
    assert len(found) <= 1
    return "".join(found)


@pytest.mark.parametrize("policy", ["wicp", "wicp-mixed"])
def test_on_a_full_machine_both_have_the_same_share_of_l3(policy: str) -> None:
    assert "of the cache" in said(8 * L3, policy)
    over = said(8 * L3 + 8, policy)
    assert "of memory only" in over and "--policy wicp-mixed" not in over
    assert "32 MiB of L3" in over
    assert ("No chiplet is idle" in over) == (policy == "wicp")


def test_the_papers_own_query_is_judged_by_its_part() -> None:
    """90 MB are more than one L3 and less than all, yet WICP-local won: 11 MB per instance."""
    assert "of the cache" in said(90_000_000)


def test_idle_chiplets_are_reached_by_spreading() -> None:
    assert "of the cache" in said(L3, cores=8)
    assert "--policy wicp-mixed" in said(L3 + 1, cores=8)
    assert "would not hold it either" in said(8 * L3 + 1, cores=8)


def test_the_measured_crossing_stands_beside_it() -> None:
    assert "faster from 48 MiB on" in said(L3, crossing_bytes=48 * MIB)


def test_nothing_is_said_of_what_is_unknown() -> None:
    assert said(0) == ""
    assert said(L3, "wim") == "", "its threads may run anywhere"
    no_l3 = make_plan(plain(4), SINGLE, "win", demand=Demand(L3))
    assert not [one for one in no_l3.reasons if one.rule == "cache of an instance"]
