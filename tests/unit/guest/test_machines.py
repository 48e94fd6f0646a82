"""Real machines by name: what is kept when they are scaled, and where their figures are from."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.guest import caches, catalog, machines, topology
from atoll.guest.topology import TopologyRefused

SCALES = st.floats(min_value=1e-4, max_value=1)


def described(text: str) -> dict[str, list[list[int]]]:
    """The numbers of a description, by the first word of the line."""
    found: dict[str, list[list[int]]] = {}
    for line in text.splitlines():
        found.setdefault(line.split()[0], []).append([int(n) for n in re.findall(r"\b\d+\b", line)])
    return found


@given(st.sampled_from(machines.names()), st.integers(1, 64), SCALES)
def test_a_scaled_machine_is_one_that_the_simulation_takes(
    name: str, cpus: int, scale: float
) -> None:
    try:
        text = machines.text(name, cpus, scale)
    except TopologyRefused:
        return
    built = topology.parse(text, name)
    machine = catalog.read()["machine"][name]
    assert (built.packages, built.nodes) == (machine["packages"], machine["nodes"])
    assert len(built.places()) == cpus
    assert built.cores >= 2

    # What native/src/cachesim/machine.cpp wants.
    found = described(caches.describe(built, 1000))
    cpu = catalog.cpus()[built.caches]
    ((l1_sets, l1_ways),), ((l2_sets, l2_ways),), ((l3_sets, l3_ways),) = (
        found[key] for key in ("l1", "l2", "l3")
    )
    assert l1_sets.bit_count() == l2_sets.bit_count() == 1
    assert all(64 <= sets <= 1 << 20 for sets in (l1_sets, l2_sets, l3_sets))
    assert max(l1_ways, l2_ways, l3_ways) <= 16
    assert l3_sets % 64 == 0
    assert l2_sets * l2_ways >= l1_sets * l1_ways
    assert len(found["latency"]) == 8
    assert sum(size for _, _, size in found["memory"]) == sum(built.memory_mib) << 20
    # No core has more of an L3 than in the real machine.
    assert built.l3_kib / built.cores <= cpu.l3.kib * cpu.chiplets / cpu.cores * scale


@pytest.mark.parametrize(
    ("name", "cpus", "shape"),
    [
        ("epyc-7713x2", 16, (2, 4, 2, 8192)),  # packages, L3s, cores, KiB of an L3
        ("epyc-7713x2", 64, (2, 8, 4, 16384)),
        ("epyc-9654x2", 16, (2, 4, 2, 8192)),
        ("epyc-9654x2", 48, (2, 12, 2, 8192)),
        ("xeon-8480x2", 16, (2, 1, 8, 15360)),
        ("xeon-8480x2-snc4", 16, (2, 4, 2, 3840)),
        ("graviton3", 16, (1, 1, 16, 8192)),
        ("graviton3", 64, (1, 1, 64, 32768)),
    ],
)
def test_as_many_chiplets_stay_as_have_two_cores(
    name: str, cpus: int, shape: tuple[int, int, int, int]
) -> None:
    built = machines.load(name, cpus)
    assert (built.packages, built.l3, built.cores, built.l3_kib) == shape


def test_about_says_how_it_was_scaled() -> None:
    assert machines.load("epyc-7713x2", 16, 1 / 64).about == (
        "2 x AMD EPYC 7713, scaled to 16 of 128 cores: a package has 4 x 2 (real: 8 x 8), "
        "an L3 128 KiB (32 MiB), an L2 32 KiB (512 KiB)"
    )


@pytest.mark.parametrize(
    ("name", "cpus", "scale", "said"),
    [
        ("epyc", 16, 1, r"epyc: no such machine or file; there are epyc-7713x2, "),
        ("xeon-8480x2-snc4", 8, 1, r"cpus: xeon-8480x2-snc4 can have 16, 24, 32, 40, 48, 56, 64$"),
        ("graviton3", 128, 1, r"cpus: graviton3 can have 2, 3, "),
        ("graviton3", 16, 1e-4, r"cache_scale: leaves 0.819 KiB of L3, and the least .* is 64$"),
        ("graviton3", 16, 0, r"cache_scale: wants a number above 0, at most 1$"),
        ("graviton3", 16, 2, r"cache_scale: wants a number above 0, at most 1$"),
        ("graviton3", 16, float("nan"), r"cache_scale: wants a number above 0, at most 1$"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(name: str, cpus: int, scale: float, said: str) -> None:
    with pytest.raises(TopologyRefused, match=said):
        machines.load(name, cpus, scale)


def test_every_figure_has_a_source_or_says_how_it_was_estimated() -> None:
    tables = catalog.read()
    named: set[str] = set()
    for cpu in tables["cpu"].values():
        assert set(cpu["latency"]) == {
            *("l2", "own_l3", "other_chiplet", "near_cache", "far_cache"),
            *("memory", "local_memory", "near_memory", "far_memory"),
        }
        figures: list[dict[str, Any]] = [cpu[key] for key in ("clock_mhz", "l1", "l2", "l3")]
        figures += [*cpu["latency"].values(), *cpu["bandwidth"].values()]
        for figure in figures:
            assert ("source" in figure) != ("estimate" in figure), figure
            named |= (
                {figure["source"]}
                if "source" in figure
                else set(tables["sources"]).intersection(re.findall(r"\w+", figure["estimate"]))
            )
    assert named == set(tables["sources"])


@pytest.mark.parametrize("name", catalog.cpus())
def test_what_is_farther_takes_no_less_time(name: str) -> None:
    latency = catalog.cpus()[name].latency
    for order in (
        ("l2", "own_l3", "other_chiplet", "near_cache", "far_cache", "far_memory"),
        ("own_l3", "local_memory", "memory", "near_memory", "far_memory"),
    ):
        found = [latency[where] for where in order]
        assert found == sorted(found)
