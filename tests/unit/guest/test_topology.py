"""Topology files of the guest: what they mean, what is refused, and how they become QEMU's."""

from __future__ import annotations

import struct
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.guest import machine, seen, topology
from atoll.guest.topology import MAX_CPUS, Topology, TopologyRefused
from tests.vm import expected

MINIMAL = "packages = 2\ncores = 4\n"
BY_HAND = Path(expected.__file__).parent / "by_hand.toml"


def parse(text: str) -> Topology:
    return topology.parse(text, "t")


# ---- ours, held against what was worked out by hand ----------------------------------------------


def test_every_topology_of_ours_was_worked_out_by_hand() -> None:
    assert sorted(tomllib.loads(BY_HAND.read_text())) == topology.names()


@pytest.mark.parametrize("name", topology.names())
def test_a_topology_of_ours_is_what_was_worked_out_by_hand(name: str) -> None:
    hand: dict[str, Any] = tomllib.loads(BY_HAND.read_text())[name]
    built = topology.load(name)
    layout = expected.layout(built)

    def sets(key: str) -> list[frozenset[int]]:
        return [seen.cpu_list(text) for text in hand[key]]

    def by(owner: dict[int, int], count: int) -> list[frozenset[int]]:
        return [frozenset(cpu for cpu in owner if owner[cpu] == n) for n in range(count)]

    assert by(dict(layout.package_of), built.packages) == sets("packages")
    assert by(dict(layout.node_of), len(built.memory_mib)) == sets("nodes")
    assert sorted(map(sorted, layout.cores)) == sorted(map(sorted, sets("cores")))
    assert sorted(map(sorted, layout.chiplets)) == sorted(map(sorted, sets("chiplets")))
    assert layout.chiplet_source == hand["source"]
    nodes = range(len(built.memory_mib))
    assert [[built.distance(a, b) for b in nodes] for a in nodes] == hand["distances"]


# ---- files ---------------------------------------------------------------------------------------


def test_a_file_of_two_lines_has_defaults() -> None:
    built = parse(MINIMAL)
    assert (built.cpu, built.l3, built.threads, built.nodes) == ("EPYC-Milan", 1, 1, 1)
    assert built.memory_mib == (512, 512)
    assert built.numbering == tuple(range(8))


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        ("packages = 9", "packages: wants a whole number from 1 to 8"),
        ("packages = true", "packages: wants a whole number from 1 to 8"),
        ("cores = 64", "packages x l3 x cores x threads: 128, at most 64"),
        ("cores = '4'", "cores: wants a whole number from 1 to 64"),
        ("colour = 1", "colour: no such key"),
        ("missing = [0]", "missing: wants a whole number from 1 to 7"),
        ("missing = [3, 3]", "missing: names a number twice"),
        ("missing = 3", "missing: wants a list of whole numbers"),
        ("missing = [7]\noffline = [7]", "offline: wants a whole number from 1 to 6"),
        ("memory_mib = [512]", "memory_mib: has 1 numbers for 2 nodes"),
        ("memory_mib = 100", "memory_mib: 200 in all, wants 1024 to 32768"),
        ("memory_mib = [0, 2048]", "memory_mib: node 0 holds the kernel and wants at least 256"),
        ("nodes = 3", "nodes: wants a number that shares out a package's cores evenly"),
        ("nodes = 2", "nodes: Linux cuts an EPYC's L3 at a node; wants a divisor of l3"),
        ("dies = 2", "dies: wants 1, or as cpu one of SapphireRapids, GraniteRapids"),
        ("cpu = 'max'\nl3 = 2", "l3: with a CPU that is no EPYC, wants 1 or as many as dies"),
        ("cpu = 'a,b=c'", "cpu: wants the name of a CPU model of QEMU (EPYC-Milan)"),
        ("cpu = 'qemu32'", "cpu: qemu32 has no 64-bit mode"),
        ("hide_l3 = 1", "hide_l3: wants true or false"),
        ("nics = 2", "nics: wants true or false"),
        ("numbering = 'random'", "numbering: wants one of packed, threads-last, packages-in-turn"),
        ("numbering = [1, 0]", "numbering: wants every position that is not missing, once"),
        ("numbering = [1,0,2,3,4,5,6,7]", "numbering: wants position 0 first"),
        ('kernel = "a\\nb"', "kernel: wants one line"),
        ("distance_far = 10", "distance_far: wants a whole number from 11 to 254"),
        ("memory_only_nodes = 8\nnodes = 4\nl3 = 4\npackages = 3\ncores = 1", "at most 16"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(more: str, fault: str) -> None:
    given_keys = {line.partition(" ")[0] for line in more.splitlines()}
    kept = [line for line in MINIMAL.splitlines() if line.partition(" ")[0] not in given_keys]
    with pytest.raises(TopologyRefused) as raised:
        parse("\n".join([*kept, more]))
    assert fault in str(raised.value)
    assert "\n" not in str(raised.value) and str(raised.value).startswith("t: ")


def test_what_must_be_there_is_named() -> None:
    with pytest.raises(TopologyRefused, match="cores: missing"):
        parse("packages = 1")


def test_a_name_that_is_neither_ours_nor_a_file(tmp_path: Path) -> None:
    with pytest.raises(TopologyRefused, match=r"milan3: neither a topology of ours .*milan2"):
        topology.load("milan3")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(TopologyRefused, match="not a text file"):
        topology.load(str(tmp_path / "binary.toml"))
    with pytest.raises(TopologyRefused, match="directory"):
        topology.load(str(tmp_path))


@pytest.mark.parametrize(
    ("numbering", "cpus"),
    [
        ("packed", (0, 1, 2, 3, 4, 5, 6, 7)),
        ("threads-last", (0, 2, 4, 6, 1, 3, 5, 7)),
        ("packages-in-turn", (0, 4, 1, 5, 2, 6, 3, 7)),
        ("threads-last-packages-in-turn", (0, 4, 2, 6, 1, 5, 3, 7)),
    ],
)
def test_numberings(numbering: str, cpus: tuple[int, ...]) -> None:
    text = f"packages = 2\ncores = 2\nthreads = 2\nnumbering = '{numbering}'"
    assert parse(text).numbering == cpus
    assert parse(f"{text}\nmissing = [1, 4]").numbering == tuple(c for c in cpus if c not in (1, 4))


# ---- fuzz ----------------------------------------------------------------------------------------

KEYS = [line.partition(" ")[0] for line in MINIMAL.splitlines()] + [
    *("cpu", "about", "dies", "l3", "threads", "nodes", "memory_mib", "memory_only_nodes"),
    *("distance_near", "hide_l3", "missing", "numbering", "offline", "kernel", "other"),
]
small = st.integers(-1, 9)
values: st.SearchStrategy[Any] = st.one_of(
    small,
    st.lists(small, max_size=10),
    st.booleans(),
    st.text(max_size=8),
    st.sampled_from(["EPYC-Milan", "SapphireRapids", "packed", "threads-last", 512, 2048]),
    st.lists(st.one_of(small, st.text(max_size=2), st.lists(small, max_size=2)), max_size=3),
    st.floats(),
    st.dates(),
    st.dictionaries(st.sampled_from(KEYS), small, max_size=2),
)


def as_toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return (
            '"' + "".join(f"\\U{ord(c):08x}" for c in value if not 0xD800 <= ord(c) < 0xE000) + '"'
        )
    if isinstance(value, list):
        return f"[{', '.join(map(as_toml, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {as_toml(one)}" for key, one in value.items()) + "}"
    return str(value)


@given(st.dictionaries(st.sampled_from(KEYS), values))
def test_any_table_is_a_machine_or_refused_in_one_line(table: dict[str, Any]) -> None:
    keys = {"packages": 2, "cores": 2} | table
    _machine_or_one_line("".join(f"{key} = {as_toml(value)}\n" for key, value in keys.items()))


def test_a_key_cannot_steer_a_terminal() -> None:
    _machine_or_one_line('packages = 1\ncores = 1\nmemory_mib = 1024\n"a\\u001b[31m" = 1\n')


@given(st.text())
def test_any_text_is_refused_in_one_line_or_a_machine(text: str) -> None:
    _machine_or_one_line(text)


@given(
    st.sampled_from(topology.names()), st.integers(0, 400), st.text(max_size=4), st.integers(0, 9)
)
def test_a_file_of_ours_with_a_part_replaced(name: str, at: int, more: str, cut: int) -> None:
    text = (topology.FOLDER / f"{name}.toml").read_text()
    _machine_or_one_line(text[:at] + more + text[at + cut :])


def _machine_or_one_line(text: str) -> None:
    try:
        built = parse(text)
    except TopologyRefused as fault:
        said = str(fault)
    else:
        _check_machine(built, machine.madt(built))
        said = ""
    assert len(said) < 400 and said.isprintable()


def _check_machine(built: Topology, table: bytes) -> None:
    places = built.places()
    assert 1 <= len(built.numbering) <= len(places) <= MAX_CPUS
    assert len(set(built.numbering)) == len(built.numbering)
    assert {place.node for place in places} == set(range(built.cpu_nodes))
    assert all(built.package_of_node(place.node) == place.package for place in places)
    apics = [machine.apic_id(built, place) for place in places]
    assert apics == sorted(set(apics)) and apics[-1] < 255  # 255 is everybody's
    assert _apics(table) == [apics[position] for position in built.numbering]
    named = [tuple(machine.ids(built, place).items()) for place in places]
    assert len(set(named)) == len(named)
    nodes = range(len(built.memory_mib))
    assert all(built.distance(a, b) == built.distance(b, a) for a in nodes for b in nodes)


def _apics(table: bytes) -> list[int]:
    """The APIC ids of a MADT in their order, its checksum checked."""
    assert table[:4] == b"APIC" and sum(table) & 0xFF == 0
    assert struct.unpack_from("<I", table, 4) == (len(table),)
    found, at = [], 44
    while at < len(table):
        kind, length = table[at], table[at + 1]
        if kind == 0:
            found.append(table[at + 3])
        at += length
    assert at == len(table)
    return found


# ---- QEMU and Linux ------------------------------------------------------------------------------


def test_an_epyc_gets_its_l3_domains_from_modules() -> None:
    argv = machine.arguments(topology.load("milan2"), ["topoext", "pcid", "xsaves"])
    assert "q35,hpet=off,smp-cache.0.cache=l3,smp-cache.0.topology=module" in argv
    assert "EPYC-Milan,+topoext,x-force-features=on,-pcid,-xsaves" in argv
    assert "16,sockets=2,dies=1,modules=4,cores=2,threads=1" in argv
    assert "cpu,node-id=1,socket-id=1,module-id=2,core-id=1,thread-id=0" in argv


def test_dies_and_a_hidden_l3() -> None:
    argv = machine.arguments(topology.load("spr4"), ["avx512f"])
    assert "q35,hpet=off,smp-cache.0.cache=l3,smp-cache.0.topology=die" in argv
    assert "SapphireRapids" in argv
    argv = machine.arguments(topology.load("hidden"), ["topoext"])
    assert "EPYC-Milan,l3-cache=off" in argv


def test_apic_ids_leave_gaps_where_counts_are_no_powers_of_two() -> None:
    built = parse("packages = 2\nl3 = 3\ncores = 3\nthreads = 2")
    apics = [machine.apic_id(built, place) for place in built.places()]
    assert apics[:7] == [0, 1, 2, 3, 4, 5, 8]
    assert apics[18] == 32


SHOWN = """\
/sys/devices/system/cpu/cpu0/topology/package_cpus_list:0-1
/sys/devices/system/cpu/cpu1/topology/package_cpus_list:0-1
/sys/devices/system/cpu/cpu0/topology/core_cpus_list:0
/sys/devices/system/cpu/cpu1/topology/core_cpus_list:1
/sys/devices/system/cpu/cpu0/cache/index3/shared_cpu_list:0-1
/sys/devices/system/cpu/cpu1/cache/index3/shared_cpu_list:0-1
/sys/devices/system/node/node0/cpulist:0-1
/sys/devices/system/node/node1/cpulist:
/sys/devices/system/node/node0/distance:10 20
/sys/devices/system/node/node1/distance:20 10
"""
SMALL = "packages = 1\ncores = 2\nmemory_only_nodes = 1"


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("", "", ""),
        ("index3/shared_cpu_list:0-1", "index3/shared_cpu_list:0", "L3 domains 0 instead of 0,1"),
        ("node1/cpulist:", "node1/cpulist:1", "CPUs of node 1 1 instead of none"),
        ("node1", "node7", "no node 1"),
        ("distance:10 20", "distance:10 21", "distances of node 0 10 21"),
        ("core_cpus_list:1", "core_cpus_list:0", "cores 0 instead of 0 | 1"),
        ("cpu1/", "cpu2/", "online CPUs 0,2 instead of 0,1"),
        ("package_cpus_list:0-1", "package_cpus_list:0", "packages 0 instead of 0,1"),
    ],
)
def test_a_machine_that_linux_shows_otherwise_is_named(old: str, new: str, fault: str) -> None:
    said = SHOWN.replace(old, new) if old else SHOWN
    found = seen.differences(parse(SMALL), said)
    assert found == ([] if not fault else found) and fault in "; ".join(found)
