"""A profile's latencies as those of simulated caches."""

from __future__ import annotations

import pytest

from atoll.errors import UsageError
from atoll.guest import machines
from atoll.guest.caches import describe
from atoll.guest.measured import with_latencies
from atoll.schema.profile import NodeMatrix
from tests.parts.profiles import epyc, figure, node_matrix, profile, sapphire_rapids

MILAN = machines.load("epyc-7713x2")


def test_every_figure_of_a_whole_profile_is_taken() -> None:
    measured = epyc()
    built = with_latencies(MILAN, measured)
    found = dict(built.latency_ns)
    assert found.pop("l2") == 4
    assert found.pop("own_l3") == 14
    assert found.pop("other_chiplet") == pytest.approx(108, rel=0.15)
    assert found.pop("near_cache") == pytest.approx(108, rel=0.15)
    assert found.pop("far_cache") == pytest.approx(197, rel=0.05)
    assert found.pop("local_memory") == pytest.approx(96, rel=0.05)
    assert found.pop("far_memory") == pytest.approx(198, rel=0.05)
    assert found == {}  # no package has a second node
    assert built.about == f"{MILAN.about}, latencies measured on {measured.machine_title}"


def test_they_become_cycles_in_place_of_the_catalogs() -> None:
    before, after = (
        describe(topology, 1000) for topology in (MILAN, with_latencies(MILAN, epyc()))
    )
    assert "\nlatency own_l3 46\n" in before
    assert "\nlatency own_l3 51\n" in after  # 14 ns at 3675 MHz
    assert "\nlatency near_memory 459\n" in after  # not measured


def test_nodes_follow_each_other_by_package() -> None:
    rows = tuple(tuple(figure(10.0 * (i ^ j) + 90) for j in range(4)) for i in range(4))
    nodes = node_matrix((0, 1, 2, 3), 90, 200, 182, 64).model_copy(update={"latency_ns": rows})
    assert isinstance(nodes, NodeMatrix)
    built = with_latencies(MILAN, epyc().model_copy(update={"nodes": nodes, "caches": ()}))
    found = dict(built.latency_ns)
    assert (found["local_memory"], found["near_memory"]) == (90, 100)
    assert found["far_memory"] == 115  # the median of 110 and 120


def test_one_package_has_no_far_caches() -> None:
    found = dict(with_latencies(MILAN, sapphire_rapids()).latency_ns)
    assert set(found) == {"other_chiplet", "near_cache"}


def test_a_profile_without_latencies_is_refused() -> None:
    with pytest.raises(UsageError, match="no latencies"):
        with_latencies(MILAN, profile("nothing", 4))
    with pytest.raises(UsageError, match="emulated"):
        with_latencies(MILAN, epyc().model_copy(update={"emulated": True}))
