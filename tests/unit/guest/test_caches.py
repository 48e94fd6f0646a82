"""The description of simulated caches that a topology gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from atoll.guest import machines, topology
from atoll.guest.caches import describe
from atoll.guest.topology import Topology, TopologyRefused

# The C++ tests read these files too.
MACHINES = "native/tests/cachesim/machines"
SCALED = ["epyc-7713x2", "xeon-8480x2-snc4"]
GIB = 1 << 30


def parse(text: str) -> Topology:
    return topology.parse(text, "t")


def memory_of(machine: Topology) -> list[tuple[int, int, int]]:
    lines = [line.split() for line in describe(machine, 1000).splitlines()]
    return [(int(a), int(b), int(c)) for key, a, b, c in (w for w in lines if w[0] == "memory")]


@pytest.mark.parametrize("name", ["milan2", "spr4", "smt", *SCALED])
def test_the_descriptions_are_those_that_the_simulation_reads(root: Path, name: str) -> None:
    built = machines.load(name) if name in SCALED else topology.load(name)
    assert describe(built, 1000) == (root / MACHINES / f"{name}.txt").read_text()


def test_sizes_are_the_cpus() -> None:
    text = describe(topology.load("milan2"), 1000)
    assert text.startswith("l1 64 8\nl2 1024 8\nl3 32768 16\n")


def test_an_l3_of_the_package_is_shared_out_to_its_dies() -> None:
    # 105 MiB of 15 ways in two dies; 57344 sets are 52.5 MiB.
    assert "\nl3 57344 15\n" in describe(topology.load("spr4"), 1000)


def test_another_cpus_caches_can_be_named() -> None:
    text = describe(parse('packages = 2\ncores = 4\ncaches = "Graviton3"\n'), 1000)
    assert text.startswith("l1 256 4\nl2 2048 8\nl3 32768 16\n")


@pytest.mark.parametrize("more", ['cpu = "EPYC-Rome"\n', 'caches = "Milan"\n'])
def test_unknown_caches_are_refused_with_those_that_are_known(more: str) -> None:
    with pytest.raises(TopologyRefused, match=r"not in the catalog.*EPYC-Milan"):
        describe(parse(f"packages = 2\ncores = 4\n{more}"), 1000)


def test_more_l3s_than_can_be_simulated_are_refused() -> None:
    with pytest.raises(TopologyRefused, match="l3: at most 63"):
        describe(parse("packages = 2\nl3 = 32\ncores = 1\n"), 1000)


def test_little_memory_lies_below_the_devices() -> None:
    machine = parse("packages = 2\ncores = 4\nmemory_mib = 512\n")
    assert memory_of(machine) == [(0, 0, GIB // 2), (1, GIB // 2, GIB // 2)]


def test_much_memory_goes_on_behind_the_devices() -> None:
    machine = parse("packages = 2\ncores = 4\nmemory_mib = [3072, 1024]\n")
    assert memory_of(machine) == [(0, 0, 2 * GIB), (0, 4 * GIB, GIB), (1, 5 * GIB, GIB)]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("l2_kib = 96", "l2_kib: wants 32 times a power of two"),
        ("l2_kib = 500", "l2_kib: wants 32 times a power of two"),
        ('caches = "Graviton3"\nl2_kib = 32', "l2_kib: wants at least 64, the L1"),
        ("l3_kib = 100", "l3_kib: wants a multiple of 64"),
        ('cpu = "SapphireRapids"\nl3_kib = 64', "l3_kib: wants a multiple of 60"),
    ],
)
def test_sizes_that_no_cache_has_are_refused(keys: str, said: str) -> None:
    with pytest.raises(TopologyRefused, match=said):
        describe(parse(f"packages = 2\ncores = 4\n{keys}\n"), 1000)


def test_a_topology_has_its_own_sizes() -> None:
    text = describe(parse("packages = 2\ncores = 4\nl2_kib = 32\nl3_kib = 192\n"), 1000)
    assert text.startswith("l1 64 8\nl2 64 8\nl3 192 16\n")


def test_bandwidths_are_those_of_the_cores_that_are_there() -> None:
    text = describe(topology.load("milan4"), 1000)
    # A tenth of 51.2 GB/s for 2 of 8 cores, and of 204.8 and 144 GB/s for 8 of 64, at 3675 MHz.
    # The package has two nodes.
    assert "\nbandwidth link 348\nbandwidth memory 348\nbandwidth interconnect 490\n" in text
    alone = describe(machines.load("graviton3", 64), 1000)
    assert [line for line in alone.splitlines() if line.startswith("bandwidth")] == [
        "bandwidth memory 11815"
    ]


def test_the_memory_of_a_package_that_is_one_node_is_farther_than_a_quarters() -> None:
    one, four = (
        describe(parse(f"packages = 2\nl3 = 4\ncores = 2\nnodes = {nodes}\n"), 1000)
        for nodes in (1, 4)
    )
    assert "\nlatency local_memory 448\n" in one  # 122 ns at 3675 MHz
    assert "\nlatency local_memory 415\n" in four  # 113 ns
