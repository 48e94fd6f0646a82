"""The runtime's arrays and allocators lie where they were asked to, judged by numa_maps, in a guest
with four nodes. The program is native/tests/runtime/guests/memory.cpp.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from atoll.guest.guest import Guest
from tests.vm.looks import Answer, read
from tests.vm.native import program
from tests.vm.proof import ROOM, STILL

pytestmark = pytest.mark.parametrize("guest", ["milan4:runtime-memory"], indirect=True)
MIB = 1 << 20
# As in the program: the node of each rank. No two neighbours on one, so that the kernel shows each
# part as a mapping of its own.
BEFORE, AFTER = (3, 1, 0, 2, 1, 3), (2, 1, 2, 0, 2, 3)
POOL = "/sys/devices/system/node/node{}/hugepages/hugepages-2048kB/nr_hugepages"
THP = "/sys/kernel/mm/transparent_hugepage/enabled"


def write(guest: Guest, files: Mapping[str, str]) -> None:
    script = "\n".join(f"echo '{text}' >{path} || exit 1" for path, text in files.items())
    done = guest.run(["sh", "-c", script])
    assert done.returncode == 0, done.stderr


def ask(guest: Guest, *words: str, before: str = "true") -> Answer:
    """The program on a CPU of node 0, after a line of shell."""
    argv = [
        "sh",
        "-c",
        f'{before} && exec taskset -c 0 "$@"',
        "sh",
        program("runtime-memory-guest"),
        *words,
    ]
    done = guest.run(argv, timeout_s=120)
    assert done.returncode == 0, (done.returncode, done.stdout[-2000:], done.stderr)
    return read(done.stdout)


@pytest.fixture(autouse=True)
def still(guest: Guest) -> None:
    write(guest, STILL)


def room(guest: Guest) -> None:
    done = guest.run(["sh", "-c", ROOM])
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("node", [0, 1, 2, 3])
def test_local_is_on_its_node(guest: Guest, node: int) -> None:
    answer = ask(guest, "local", str(node), "3")
    (shown,) = answer.looks
    assert shown.nodes("local") == {node: 3 * MIB}
    assert answer.said == ["why ", f"huge 0 absent 0 N{node} {3 * MIB}"]


def test_local_without_a_node_is_on_the_callers(guest: Guest) -> None:
    (shown,) = ask(guest, "here").looks
    assert shown.nodes("here") == {0: MIB}
    assert shown.words("here")[0].startswith("prefer:0")


def test_interleaved_takes_turns(guest: Guest) -> None:
    (shown,) = ask(guest, "interleaved").looks
    assert shown.nodes("all") == dict.fromkeys(range(4), MIB)
    assert shown.nodes("two") == {1: 2 * MIB, 3: 2 * MIB}


@pytest.mark.parametrize("pages", ["", "-transparent"])
def test_partitions_follow_their_ranks(guest: Guest, pages: str) -> None:
    if pages:
        room(guest)
        write(guest, {THP: "madvise"})
    answer = ask(guest, "rehomed" + pages)
    before, after = answer.looks
    sizes = [end - begin for _, begin, end in before.ranges]
    unit = 4 * MIB if pages else MIB
    assert sum(sizes) == 6 * unit + 12_345
    whole = [-(-size // 4096) * 4096 for size in sizes]
    if pages:  # the tail of the last huge page is there as well
        whole = [-(-size // (2 * MIB)) * 2 * MIB for size in sizes]
    for rank, node in enumerate(BEFORE):
        expected = {node: whole[rank]} if rank != 5 else {}
        assert before.nodes(f"rank{rank}") == expected, f"rank {rank}"
    for rank, node in enumerate(AFTER):
        assert after.nodes(f"rank{rank}") == {node: whole[rank]}, f"rank {rank}"
    moved = sum(whole[rank] for rank in (0, 2, 3, 4))
    assert answer.said[0] == "reader right"
    assert answer.said[1].split()[:8] == (
        f"moved {moved} already {whole[1]} absent {whole[5]} failed 0".split()
    ), answer.said
    again = f"moved 0 already {sum(whole)} absent 0 failed 0"
    assert answer.said[2].strip() == again


def test_every_node_has_its_copy(guest: Guest) -> None:
    (shown,) = ask(guest, "replicated").looks
    for node in range(4):
        assert shown.nodes(f"copy{node}") == {node: MIB}
    copies = {begin: label for label, begin, _ in shown.ranges[:4]}
    (near,) = [begin for label, begin, _ in shown.ranges if label == "near"]
    assert copies[near] == "copy0"


def test_containers_are_on_the_node_of_their_resource(guest: Guest) -> None:
    (shown,) = ask(guest, "resources").looks
    for node in (3, 1):
        assert shown.nodes(f"large{node}").keys() == {node}
        assert shown.nodes(f"large{node}")[node] >= 3 * MIB
        assert shown.nodes(f"small{node}").keys() == {node}


def test_transparent_huge_pages_by_choice(guest: Guest) -> None:
    assert "echo madvise" in ask(guest, "transparent", "1").fault  # the switch is at never
    room(guest)
    write(guest, {THP: "madvise"})
    answer = ask(guest, "transparent", "1")
    (shown,) = answer.looks
    assert shown.nodes("local") == {1: 8 * MIB}
    assert answer.said[1] == f"huge {8 * MIB} absent 0 N1 {8 * MIB}"
    assert "huge 0 " in ask(guest, "local", "1", "8").said[1]


def test_huge_pages_of_a_pool_by_choice(guest: Guest) -> None:
    assert "sysctl vm.nr_hugepages=N" in ask(guest, "huge2m", "2").fault
    room(guest)
    write(guest, {POOL.format(2): "2"})
    try:
        answer = ask(guest, "huge2m", "2")
        (shown,) = answer.looks
        assert shown.nodes("local") == {2: 4 * MIB}
        assert "huge" in shown.words("local")[0]
        assert answer.said[1] == f"huge {4 * MIB} absent 0 N2 {4 * MIB}"
        # The pool has two, but elsewhere: refused, not passed to node 2 and no SIGBUS.
        assert "too few on node 1" in ask(guest, "huge2m", "1").fault
    finally:
        write(guest, {POOL.format(2): "0"})


def test_a_full_node_passes_the_rest_to_its_neighbours(guest: Guest) -> None:
    (shown,) = ask(guest, "local", "2", "400").looks
    nodes = shown.nodes("local")
    assert sum(nodes.values()) == 400 * MIB
    assert nodes[2] > 150 * MIB and len(nodes) > 1


def test_a_node_outside_the_cpuset_is_refused(guest: Guest) -> None:
    cgroup = "/sys/fs/cgroup/runtime-memory"
    confine = (
        f"mkdir -p {cgroup} && echo 0-1 >{cgroup}/cpuset.mems && echo $$ >{cgroup}/cgroup.procs"
    )
    assert "cpuset.mems" in ask(guest, "local", "3", "1", before=confine).fault
    (shown,) = ask(guest, "local", "1", "1", before=confine).looks
    assert shown.nodes("local") == {1: MIB}


def test_where_mbind_is_forbidden_pages_lie_where_they_were_touched(guest: Guest) -> None:
    answer = ask(guest, "forbidden")
    (shown,) = answer.looks
    assert shown.nodes("rank0").keys() == {0}
    assert "CAP_SYS_NICE" in answer.said[0]
    assert f"failed {MIB}" in answer.said[1] and "CAP_SYS_NICE" in answer.said[1]
