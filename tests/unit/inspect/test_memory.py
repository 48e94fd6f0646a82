"""Memory and page cache of made-up processes, and of a real one."""

from __future__ import annotations

import mmap
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from atoll.host.api import FilePages
from atoll.host.local import LocalHost
from atoll.inspect import memory, pagecache
from atoll.inspect.memory import cut_mappings, local_share, look_at_memory
from atoll.inspect.pagecache import look_at_page_cache
from atoll.schema.inspection import MappingKind, MemoryLook
from tests.parts.fake_host import FakeHost

GIB = 1 << 30
PAGE = 4096


def fake(files: Mapping[str, str], *, resident_kib: int = 64) -> FakeHost:
    proc = "/proc/7"
    return FakeHost(
        {
            f"{proc}/stat": "7 (x) S 1",
            f"{proc}/status": f"VmRSS:\t{resident_kib} kB\nRssAnon:\t8 kB\nRssFile:\t4 kB\n",
            f"{proc}/mountinfo": "26 24 0:42 / /mnt/huge rw - hugetlbfs none rw\n",
            f"{proc}/smaps_rollup": "AnonHugePages:   2048 kB\nFilePmdMapped:   4096 kB\n",
            **{f"{proc}/{name}": text for name, text in files.items()},
        }
    )


def look(
    host: FakeHost | LocalHost,
    pid: int = 7,
    cpu: Mapping[int, float] | None = None,
    own: frozenset[int] = frozenset({0}),
) -> MemoryLook:
    found, unknown = look_at_memory(
        host, pid, cpu_seconds_by_node={0: 1.0} if cpu is None else cpu, own_nodes=own
    )
    assert found is not None and unknown == [], unknown
    return found


COUNTED = {
    "maps": (
        "00400000-00500000 r-xp 00000000 fe:00 12                         /usr/bin/x\n"
        "01000000-02000000 rw-p 00000000 00:00 0                          [heap]\n"
        "7f0000000000-7f0040000000 rw-s 00000000 00:2a 3                  /mnt/huge/a b\n"
        "7f1000000000-7f1000001000 rw-p 00000000 00:00 0 \n"
    ),
    "numa_maps": (
        "00400000 default file=/usr/bin/x mapped=3 N1=3 kernelpagesize_kB=4\n"
        "01000000 default heap anon=30 dirty=30 N0=20 N1=10 kernelpagesize_kB=4\n"
        "7f0000000000 bind:1 file=/mnt/huge/a\\040b huge dirty=2 N1=2 kernelpagesize_kB=2048\n"
        "7f1000000000 default\n"
        "7f2000000000 default stack anon=1 dirty=1 N0=1 kernelpagesize_kB=4\n"  # made since
    ),
}


def test_counted() -> None:
    found = look(fake(COUNTED), cpu={0: 3.0, 1: 1.0}, own=frozenset({1}))
    assert (found.method, found.sampled_pages, found.share_error) == ("numa_maps", 0, 0)
    huge, small = 2 * (2 << 20), 4096
    assert found.bytes_by_node == {0: 21 * small, 1: 13 * small + huge}
    assert found.resident_bytes == 34 * small + huge
    assert found.bytes_by_kind == {
        MappingKind.FILE: {1: 3 * small},
        MappingKind.HEAP: {0: 20 * small, 1: 10 * small},
        MappingKind.HUGETLB: {1: huge},
        MappingKind.STACK: {0: small},
    }
    assert found.huge_bytes == 6 << 20
    assert [(m.name, m.policy, m.size_bytes) for m in found.mappings] == [
        ("/mnt/huge/a b", "bind:1", GIB),
        ("[heap]", "default", 16 << 20),
        ("/usr/bin/x", "default", 1 << 20),
        ("[stack]", "default", small),
    ]
    share = found.bytes_by_node[1] / found.resident_bytes
    assert found.own_nodes_share == pytest.approx(share)
    assert found.local_share == pytest.approx(0.75 * (1 - share) + 0.25 * share)


def test_shares_of_nothing_are_not_known() -> None:
    assert local_share({}, {0: 1.0}) is None
    assert local_share({0: 1}, {}) is None
    assert local_share({0: 1}, {1: 2.0}) == 0
    empty = look(fake({"maps": "", "numa_maps": ""}))
    assert (empty.resident_bytes, empty.local_share, empty.own_nodes_share) == (0, None, None)


def test_the_largest_mappings_and_those_that_are_named() -> None:
    lines = [f"{i:x}000 default N0={i} kernelpagesize_kB=4\n" for i in range(1, 31)]
    found = look(fake({"maps": "", "numa_maps": "".join(lines)}))
    assert len(found.mappings) == 30
    kept = [m.start >> 12 for m in cut_mappings(found, {0x2000}).mappings]
    assert kept == [*range(30, 10, -1), 2]


class Large(FakeHost):
    """64 GiB mapped of which one GiB in eight is there; of that, every fourth page on node 1."""

    START = 0x7F0000000000
    SIZE = 64 * GIB

    def __init__(self) -> None:
        text = (
            f"01000000-01010000 rw-p 00000000 00:00 0 [heap]\n"
            f"{self.START:x}-{self.START + self.SIZE:x} rw-p 00000000 00:00 0 \n"
            "7ffff0000000-7ffff0001000 r-xp 00000000 00:00 0 [vdso]\n"
        )
        base = fake({"maps": text, "numa_maps": ""}, resident_kib=8 * GIB // 1024 + 64)
        super().__init__(base.files)

    def page_nodes(self, pid: int, addresses: npt.NDArray[np.uint64]) -> npt.NDArray[np.int32]:
        a = addresses.astype(np.int64)
        inside = (a >= self.START) & ((a - self.START) // GIB % 8 == 0)
        nodes = np.where(a // PAGE % 4 == 0, 1, 0)
        return np.where(inside, nodes, np.where(a < self.START, 1, -2)).astype(np.int32)

    def huge_pages(self, pid: int, addresses: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        return addresses.astype(np.int64) % (8 * GIB) < GIB // 2


def test_sampled() -> None:
    found = look(Large(), own=frozenset({1}))
    assert found.method == "move_pages" and found.sampled_pages > 10_000
    assert 0 < found.share_error <= 0.01
    # How much is there is the kernel's own count.
    assert abs(found.resident_bytes - (8 * GIB + 65536)) <= 2 * PAGE
    assert found.own_nodes_share is not None
    assert abs(found.own_nodes_share - 0.25) <= 2 * found.share_error
    assert found.bytes_by_kind[MappingKind.HEAP] == {1: 65536}, "small mappings are whole"
    assert found.huge_bytes == pytest.approx(4 * GIB, rel=0.1)
    assert [m.policy for m in found.mappings] == ["", ""]


def test_the_stacks_of_many_threads_are_found_in_a_sample() -> None:
    """Each has 2 pages of 2,048, at its end, on node 1; all else is on node 0."""
    stacks = [0x7E0000000000 + i * (8 << 20) for i in range(500)]

    class Threads(Large):
        def __init__(self) -> None:
            super().__init__()
            self.files["/proc/7/maps"] += "".join(
                f"{start:x}-{start + (8 << 20):x} rw-p 00000000 00:00 0 \n" for start in stacks
            )

        def page_nodes(self, pid: int, addresses: npt.NDArray[np.uint64]) -> npt.NDArray[np.int32]:
            a = addresses.astype(np.int64)
            here = (a >= stacks[0]) & (a < stacks[-1] + (8 << 20))
            on_stack = (a - stacks[0]) % (8 << 20) >= (8 << 20) - 2 * PAGE
            there = np.where(super().page_nodes(pid, addresses) >= 0, 0, -2)
            return np.where(here, np.where(on_stack, 1, -2), there).astype(np.int32)

    found = look(Threads())
    by_start = {m.start: m.bytes_by_node for m in found.mappings}
    assert all(by_start.get(start) == {1: 2 * PAGE} for start in stacks)


def test_a_kernel_that_cannot_tell_huge_pages_of_a_large_process() -> None:
    class Old(Large):
        def huge_pages(self, pid: int, addresses: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
            raise OSError(25, "Inappropriate ioctl for device")

    found, unknown = look_at_memory(Old(), 7, cpu_seconds_by_node={}, own_nodes=())
    assert found is not None and found.huge_bytes is None
    assert len(unknown) == 1 and "Linux 6.7" in unknown[0]


def test_what_cannot_be_read_is_said() -> None:
    class Closed(FakeHost):
        def read_text(self, path: str) -> str:
            if path.endswith("maps"):
                raise PermissionError(13, "Permission denied", path)
            return super().read_text(path)

    found, unknown = look_at_memory(
        Closed(fake(COUNTED).files), 7, cpu_seconds_by_node={}, own_nodes=()
    )
    assert found is None and len(unknown) == 1 and "CAP_SYS_PTRACE" in unknown[0]

    class Container(Large):
        def page_nodes(self, pid: int, addresses: npt.NDArray[np.uint64]) -> npt.NDArray[np.int32]:
            raise PermissionError(1, "Operation not permitted")

    found, unknown = look_at_memory(Container(), 7, cpu_seconds_by_node={}, own_nodes=())
    assert found is None and "seccomp" in unknown[0]

    thread = FakeHost({"/proc/7/stat": "7 (kthreadd)", "/proc/7/status": "Name:\tx\n"})
    found, unknown = look_at_memory(thread, 7, cpu_seconds_by_node={}, own_nodes=())
    assert found is None and "kernel thread" in unknown[0]

    with pytest.raises(ProcessLookupError):
        look_at_memory(FakeHost(), 7, cpu_seconds_by_node={}, own_nodes=())


def test_a_kernel_without_numa_has_all_on_node_0() -> None:
    found, unknown = look_at_memory(fake({}), 7, cpu_seconds_by_node={0: 1.0}, own_nodes={0})
    assert found is not None and "no NUMA" in unknown[0]
    assert found.bytes_by_kind == {MappingKind.ANONYMOUS: {0: 8192}, MappingKind.FILE: {0: 4096}}
    assert (found.bytes_by_node, found.local_share) == ({0: 12288}, 1.0)


# ---- The page cache -----------------------------------------------------------------------


def test_page_cache_of_data_files() -> None:
    host = fake(
        {
            "maps": (
                "00400000-00500000 r-xp 00000000 fe:00 12 /usr/bin/x\n"
                "00500000-00600000 r--p 00000000 fe:00 12 /usr/bin/x\n"
                "7f0000000000-7f0040000000 r--s 00000000 fe:00 9 /data/mapped\n"
                "7f1000000000-7f1000001000 rw-s 00000000 00:01 9 /memfd:x (deleted)\n"
            )
        }
    )
    host.files |= {
        "/proc/7/fd/0": "/dev/null",
        "/proc/7/fd/1": "pipe:[77]",
        "/proc/7/fd/5": "/data/open (deleted)",
        "/proc/7/fd/6": "/data/closed",
        "/proc/7/fd/10": "/usr/bin/x",
    }
    nodes = np.array([0, 1, 1, 1], dtype=np.int32)
    host.cached = {
        "/proc/7/root/data/mapped": FilePages(10 * PAGE, 4, nodes),
        "/proc/7/fd/5": FilePages(100 * PAGE - 1, 100, nodes),
        "/proc/7/fd/10": FilePages(PAGE, 1, nodes[:1]),
    }
    found, unknown = look_at_page_cache(host, 7)
    assert unknown == []
    assert [(f.path, f.cached_bytes, f.bytes_by_node, f.sampled) for f in found] == [
        (
            "/data/open (deleted)",
            100 * PAGE - 1,
            {0: round((100 * PAGE - 1) / 4), 1: round((100 * PAGE - 1) * 3 / 4)},
            True,
        ),
        ("/data/mapped", 4 * PAGE, {0: PAGE, 1: 3 * PAGE}, False),
    ]


def test_page_cache_that_may_not_be_read() -> None:
    class Closed(FakeHost):
        def cached_nodes(self, path: str, *, most_pages: int) -> FilePages:
            raise PermissionError(1, "Operation not permitted")

        def file_size(self, path: str) -> int:
            return 1

    files = {f"/proc/7/fd/{i}": f"/data/{i}" for i in range(pagecache.MOST_FILES + 3)}
    found, unknown = look_at_page_cache(Closed(fake({"maps": ""}).files | files), 7)
    assert found == [] and len(unknown) == 2
    assert "16 largest of 19" in unknown[0] and "owner" in unknown[1]
    assert unknown[1].startswith("page cache of 16 files, for example /data/0: ")
    found, unknown = look_at_page_cache(FakeHost(), 7)
    assert found == [] and len(unknown) == 1


# ---- A real process -----------------------------------------------------------------------

# What is left out of core dumps is a mapping of its own: the kernel joins others to neighbours.
TARGET = """
import mmap, sys
held = mmap.mmap(-1, int(sys.argv[1]), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
held.madvise(mmap.MADV_DONTDUMP)
for offset in range(0, int(sys.argv[2]), 4096):
    held[offset] = 1
data = open(sys.argv[3], "rb")
print("ready", flush=True)
sys.stdin.read()
"""


LOOKS = 100  # at most: a page that the kernel moves at that moment (compaction) counts nowhere


@contextmanager
def target(mapped: int, touched: int, file: str = "/dev/null") -> Iterator[int]:
    process = subprocess.Popen(
        [sys.executable, "-c", TARGET, str(mapped), str(touched), file],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert process.stdout is not None and process.stdin is not None
        assert process.stdout.readline() == b"ready\n"
        yield process.pid
    finally:
        process.communicate()


def numastat_mib(pid: int) -> dict[int, float]:
    """MiB by node as `numastat -p` has them."""
    text = subprocess.run(
        ["numastat", "-p", str(pid)], capture_output=True, text=True, check=True
    ).stdout
    nodes = [int(node) for node in re.findall(r"Node (\d+)", text)]
    total = re.search(r"^Total\s+(.*)$", text, re.MULTILINE)
    assert total is not None, text
    return dict(zip(nodes, (float(word) for word in total[1].split()[:-1]), strict=True))


def test_a_real_process_equals_numastat() -> None:
    with target(64 << 20, 32 << 20) as pid:
        for _ in range(LOOKS):
            expected = numastat_mib(pid)
            found = look(LocalHost(), pid)
            whole = any(sum(m.bytes_by_node.values()) == 32 << 20 for m in found.mappings)
            if whole and numastat_mib(pid) == expected:
                break
    assert found.method == "numa_maps"
    for node, mib in expected.items():
        assert found.bytes_by_node.get(node, 0) / (1 << 20) == pytest.approx(mib, abs=0.02)
    assert whole


def test_a_real_process_sampled_equals_the_same_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    with target(1 << 30, 128 << 20) as pid:
        counted = look(LocalHost(), pid)
        monkeypatch.setattr(memory, "COUNT_BYTES", 0)
        sampled = look(LocalHost(), pid)
    assert (counted.method, sampled.method) == ("numa_maps", "move_pages")
    assert sampled.resident_bytes == pytest.approx(counted.resident_bytes, rel=0.01)
    biggest, same = counted.mappings[0], sampled.mappings[0]
    assert (biggest.start, biggest.kind) == (same.start, same.kind)
    assert sum(same.bytes_by_node.values()) == pytest.approx(128 << 20, rel=0.05)


def test_a_real_file(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(os.urandom(100 * mmap.PAGESIZE))
    with target(PAGE, PAGE, str(path)) as pid:
        for _ in range(LOOKS):
            found, _ = look_at_page_cache(LocalHost(), pid)
            (file,) = [file for file in found if file.path == str(path)]
            if file.cached_bytes == file.size_bytes:
                break
    assert file.cached_bytes == file.size_bytes == 100 * mmap.PAGESIZE
    assert sum(file.bytes_by_node.values()) == pytest.approx(file.cached_bytes, abs=9)
    assert not file.sampled
    assert not any(".so" in file.path for file in found)


def test_another_users_process_is_explained() -> None:
    if os.geteuid() == 0:
        program = (
            "import os; os.setuid(65534)\n"
            "from atoll.host.local import LocalHost\n"
            "from atoll.inspect.memory import look_at_memory\n"
            "from atoll.inspect.pagecache import look_at_page_cache\n"
            f"pid = {os.getpid()}\n"
            "print(look_at_memory(LocalHost(), pid, cpu_seconds_by_node={}, own_nodes=()))\n"
            "print(look_at_page_cache(LocalHost(), pid))\n"
        )
        # What it imports is loaded before it becomes another user.
        program = (
            "import atoll.inspect.memory, atoll.inspect.pagecache, atoll.host.local\n" + program
        )
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        )
        assert done.stdout.count("CAP_SYS_PTRACE") == 2, done.stdout
    else:
        found, unknown = look_at_memory(LocalHost(), 1, cpu_seconds_by_node={}, own_nodes=())
        assert found is None and "CAP_SYS_PTRACE" in unknown[0]
