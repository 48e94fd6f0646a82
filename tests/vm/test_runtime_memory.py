"""The runtime's arrays and allocators lie where they were asked to, judged by numa_maps, in a guest
with four nodes. The program is native/tests/runtime_memory_guest.cpp.
"""

from __future__ import annotations

import functools
import os
import re
import subprocess
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from tests.vm.guest import Guest
from tests.vm.proof import ROOT, STILL

pytestmark = pytest.mark.parametrize("guest", ["milan4:runtime-memory"], indirect=True)
SOURCES = (
    ROOT / "native/tests/runtime_memory_guest.cpp",
    ROOT / "native/src/probe/smaps.cpp",
    *sorted((ROOT / "native/src/runtime/memory").glob("*.cpp")),
)
HEADERS = (
    *(ROOT / "native/include/atoll/runtime").glob("*.hpp"),
    *(ROOT / "native/src/runtime/memory").glob("*.hpp"),
)
MIB = 1 << 20
KIB = 1 << 10
# As in the program: the node of each rank. No two neighbours on one, so that the kernel shows each
# part as a mapping of its own.
BEFORE, AFTER = (3, 1, 0, 2, 1, 3), (2, 1, 2, 0, 2, 3)
POOL = "/sys/devices/system/node/node{}/hugepages/hugepages-2048kB/nr_hugepages"
THP = "/sys/kernel/mm/transparent_hugepage/enabled"

Nodes = dict[int, int]  # node to bytes


@dataclass
class Shown:
    """What the program printed up to one look at numa_maps."""

    ranges: list[tuple[str, int, int]] = field(default_factory=list)
    maps: list[tuple[int, str, Nodes]] = field(default_factory=list)  # begin, its words, bytes

    def words(self, label: str) -> list[str]:
        """Of the mappings that hold the range."""
        return [self.maps[index][1] for index in self._mappings(label)]

    def nodes(self, label: str) -> Nodes:
        """Of all mappings that the range overlaps."""
        total: Counter[int] = Counter()
        for index in self._mappings(label):
            total.update(self.maps[index][2])
        return dict(total)

    def _mappings(self, label: str) -> list[int]:
        ends = [begin for begin, _, _ in self.maps[1:]] + [1 << 64]
        wanted = [(begin, end) for name, begin, end in self.ranges if name == label]
        assert wanted, label
        return [
            index
            for index, (begin, _, _) in enumerate(self.maps)
            if any(begin < last and first < ends[index] for first, last in wanted)
        ]


@dataclass
class Answer:
    shown: list[Shown]
    said: list[str]
    fault: str


@functools.cache
def program() -> str:
    """Built for any x86-64: TCG has no AVX-512."""
    folder = ROOT / "build/vm"
    built = folder / "runtime-memory"
    newest = max(path.stat().st_mtime for path in (*SOURCES, *HEADERS))
    if not built.exists() or built.stat().st_mtime < newest:
        folder.mkdir(parents=True, exist_ok=True)
        flags = ["-std=c++20", "-O2", "-pthread", "-static-libstdc++", "-static-libgcc"]
        includes = ["-I", str(ROOT / "native/include")]
        fresh = folder / f"runtime-memory.{os.getpid()}"
        sources = [str(path) for path in SOURCES]
        subprocess.run(["g++", *flags, *includes, *sources, "-o", str(fresh)], check=True)
        fresh.rename(built)
    return str(built)


def read(out: str) -> Answer:
    answer = Answer([], [], "")
    shown = Shown()
    in_maps = False
    for line in out.splitlines():
        word, _, rest = line.partition(" ")
        if line == "end":
            answer.shown.append(shown)
            shown, in_maps = Shown(), False
        elif in_maps:
            size = re.search(r"kernelpagesize_kB=(\d+)", rest)
            kib = int(size[1]) if size else 4
            nodes = re.findall(r" N(\d+)=(\d+)", line)
            shown.maps.append(
                (int(word, 16), rest, {int(n): int(pages) * kib * KIB for n, pages in nodes})
            )
        elif line == "maps":
            in_maps = True
        elif word == "range":
            label, begin, end = rest.split()
            shown.ranges.append((label, int(begin, 16), int(end, 16)))
        elif word == "said":
            answer.said.append(rest)
        elif word == "fault":
            answer.fault = rest
        else:
            raise AssertionError(line)
    return answer


def write(guest: Guest, files: Mapping[str, str]) -> None:
    script = "\n".join(f"echo '{text}' >{path} || exit 1" for path, text in files.items())
    done = guest.run(["sh", "-c", script])
    assert done.returncode == 0, done.stderr


def ask(guest: Guest, *words: str, before: str = "true") -> Answer:
    """The program on a CPU of node 0, after a line of shell."""
    argv = ["sh", "-c", f'{before} && exec taskset -c 0 "$@"', "sh", program(), *words]
    done = guest.run(argv, timeout_s=120)
    assert done.returncode == 0, (done.returncode, done.stdout[-2000:], done.stderr)
    return read(done.stdout)


@pytest.fixture(autouse=True)
def still(guest: Guest) -> None:
    write(guest, STILL)


@pytest.mark.parametrize("node", [0, 1, 2, 3])
def test_local_is_on_its_node(guest: Guest, node: int) -> None:
    answer = ask(guest, "local", str(node), "3")
    (shown,) = answer.shown
    assert shown.nodes("local") == {node: 3 * MIB}
    assert answer.said == ["why ", f"huge 0 absent 0 N{node} {3 * MIB}"]


def test_local_without_a_node_is_on_the_callers(guest: Guest) -> None:
    (shown,) = ask(guest, "here").shown
    assert shown.nodes("here") == {0: MIB}
    assert shown.words("here")[0].startswith("prefer:0")


def test_interleaved_takes_turns(guest: Guest) -> None:
    (shown,) = ask(guest, "interleaved").shown
    assert shown.nodes("all") == dict.fromkeys(range(4), MIB)
    assert shown.nodes("two") == {1: 2 * MIB, 3: 2 * MIB}


@pytest.mark.parametrize("pages", ["", "-transparent"])
def test_partitions_follow_their_ranks(guest: Guest, pages: str) -> None:
    if pages:
        write(guest, {THP: "madvise"})
    answer = ask(guest, "rehomed" + pages)
    before, after = answer.shown
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
    (shown,) = ask(guest, "replicated").shown
    for node in range(4):
        assert shown.nodes(f"copy{node}") == {node: MIB}
    copies = {begin: label for label, begin, _ in shown.ranges[:4]}
    (near,) = [begin for label, begin, _ in shown.ranges if label == "near"]
    assert copies[near] == "copy0"


def test_containers_are_on_the_node_of_their_resource(guest: Guest) -> None:
    (shown,) = ask(guest, "resources").shown
    for node in (3, 1):
        assert shown.nodes(f"large{node}").keys() == {node}
        assert shown.nodes(f"large{node}")[node] >= 3 * MIB
        assert shown.nodes(f"small{node}").keys() == {node}


def test_transparent_huge_pages_by_choice(guest: Guest) -> None:
    assert "echo madvise" in ask(guest, "transparent", "1").fault  # the switch is at never
    write(guest, {THP: "madvise"})
    answer = ask(guest, "transparent", "1")
    (shown,) = answer.shown
    assert shown.nodes("local") == {1: 8 * MIB}
    assert answer.said[1] == f"huge {8 * MIB} absent 0 N1 {8 * MIB}"
    assert "huge 0 " in ask(guest, "local", "1", "8").said[1]


def test_huge_pages_of_a_pool_by_choice(guest: Guest) -> None:
    assert "sysctl vm.nr_hugepages=N" in ask(guest, "huge2m", "2").fault
    write(guest, {POOL.format(2): "2"})
    try:
        answer = ask(guest, "huge2m", "2")
        (shown,) = answer.shown
        assert shown.nodes("local") == {2: 4 * MIB}
        assert "huge" in shown.words("local")[0]
        assert answer.said[1] == f"huge {4 * MIB} absent 0 N2 {4 * MIB}"
        # The pool has two, but elsewhere: refused, not passed to node 2 and no SIGBUS.
        assert "too few on node 1" in ask(guest, "huge2m", "1").fault
    finally:
        write(guest, {POOL.format(2): "0"})


def test_a_full_node_passes_the_rest_to_its_neighbours(guest: Guest) -> None:
    (shown,) = ask(guest, "local", "2", "400").shown
    nodes = shown.nodes("local")
    assert sum(nodes.values()) == 400 * MIB
    assert nodes[2] > 150 * MIB and len(nodes) > 1


def test_a_node_outside_the_cpuset_is_refused(guest: Guest) -> None:
    cgroup = "/sys/fs/cgroup/runtime-memory"
    confine = (
        f"mkdir -p {cgroup} && echo 0-1 >{cgroup}/cpuset.mems && echo $$ >{cgroup}/cgroup.procs"
    )
    assert "cpuset.mems" in ask(guest, "local", "3", "1", before=confine).fault
    (shown,) = ask(guest, "local", "1", "1", before=confine).shown
    assert shown.nodes("local") == {1: MIB}


def test_where_mbind_is_forbidden_pages_lie_where_they_were_touched(guest: Guest) -> None:
    answer = ask(guest, "forbidden")
    (shown,) = answer.shown
    assert shown.nodes("rank0").keys() == {0}
    assert "CAP_SYS_NICE" in answer.said[0]
    assert f"failed {MIB}" in answer.said[1] and "CAP_SYS_NICE" in answer.said[1]
