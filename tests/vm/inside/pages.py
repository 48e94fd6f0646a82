"""Inside the guest: processes put pages onto nodes, move them, cache a file; and are looked at.

    python -m tests.vm.inside.pages FILE

Prints JSON: by case what Atoll says, counted and sampled, beside the kernel's and numastat's own
words. The host side judges. FILE lies on the host's root and nobody has read it yet.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from atoll.host.local import LocalHost
from atoll.inspect import memory, sampling
from atoll.inspect.memory import look_at_memory
from atoll.inspect.pagecache import look_at_page_cache

HOST = LocalHost()
MIB = 1 << 20
NUMA = ctypes.CDLL("libnuma.so.1", use_errno=True)
# linux/mempolicy.h
PREFERRED, BIND, INTERLEAVE, PREFERRED_MANY, WEIGHTED_INTERLEAVE = 1, 2, 3, 5, 6
STATIC_NODES = 1 << 15
MADV_HUGEPAGE, MADV_NOHUGEPAGE = 14, 15


def region(bytes_: int, mode: int, nodes: int, touched: int, advice: int) -> int:
    """A mapping of its own under a policy (none: 0); its address."""
    area = mmap.mmap(-1, bytes_ + 2 * MIB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    KEPT.append(area)
    first = ctypes.addressof(ctypes.c_char.from_buffer(area))
    start = (first + 2 * MIB - 1) & -(2 * MIB)
    area.madvise(advice)
    if mode and NUMA.mbind(
        ctypes.c_void_p(start), ctypes.c_ulong(bytes_), mode, _mask(nodes), ctypes.c_ulong(9), 0
    ):
        raise OSError(ctypes.get_errno(), f"mbind {mode}")
    for offset in range(start - first, start - first + touched, 4096):
        area[offset] = 1
    return start


KEPT: list[mmap.mmap] = []


def set_policy(mode: int, nodes: int) -> None:
    if NUMA.set_mempolicy(mode, _mask(nodes), ctypes.c_ulong(9)):
        raise OSError(ctypes.get_errno(), f"set_mempolicy {mode}")


def _mask(nodes: int) -> Any:
    return ctypes.byref(ctypes.c_ulong(nodes))


def bound() -> list[int]:
    set_policy(BIND, 0b10)
    return [region(16 * MIB, 0, 0, 16 * MIB, MADV_NOHUGEPAGE)]


def mixed() -> list[int]:
    return [
        region(64 * MIB, INTERLEAVE, 0b11, 24 * MIB, MADV_NOHUGEPAGE),
        region(4 * MIB, BIND | STATIC_NODES, 0b10, 4 * MIB, MADV_NOHUGEPAGE),
        region(2 * MIB, PREFERRED_MANY, 0b11, 2 * MIB, MADV_NOHUGEPAGE),
        region(2 * MIB, WEIGHTED_INTERLEAVE, 0b11, 2 * MIB, MADV_NOHUGEPAGE),
        region(16 * MIB, PREFERRED, 0b01, 16 * MIB, MADV_HUGEPAGE),
    ]


def on_node_0() -> list[int]:
    set_policy(PREFERRED, 0b01)
    return [region(16 * MIB, 0, 0, 16 * MIB, MADV_NOHUGEPAGE)]


@contextmanager
def child(work: Callable[[], list[int]]) -> Iterator[tuple[int, list[int]]]:
    """A fork that does the work and waits; its pid and the addresses."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(writing, json.dumps(work()).encode())
            signal.pause()
        finally:
            os._exit(1)
    os.close(writing)
    try:
        yield pid, json.loads(os.read(reading, 4096))
    finally:
        os.close(reading)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def look(pid: int, regions: list[int]) -> dict[str, Any]:
    def ours() -> dict[str, Any]:
        found, unknown = look_at_memory(HOST, pid, cpu_seconds_by_node={1: 1.0}, own_nodes={1})
        assert found is not None, unknown
        by_start = {mapping.start: mapping for mapping in found.mappings}
        return {
            **found.model_copy(update={"mappings": ()}).model_dump(mode="json"),
            "unknown": unknown,
            # The kernel may join a mapping to its neighbours, but not across policies.
            "regions": [
                by_start[start].model_dump(mode="json") if start in by_start else None
                for start in regions
            ],
        }

    # Pages may be moved, as those of the fork's parent, which the fork shares: until none is.
    for _ in range(10):
        numa_maps = HOST.read_text(f"/proc/{pid}/numa_maps")
        counted = ours()
        numastat = subprocess.run(["numastat", "-p", str(pid)], capture_output=True, text=True)
        if HOST.read_text(f"/proc/{pid}/numa_maps") == numa_maps:
            break
    memory.COUNT_BYTES = 0
    sampling.WHOLE_PROBES, sampling.ROUND_PROBES = 1024, 4096  # so that something is sampled
    try:
        sampled = ours()
    finally:
        memory.COUNT_BYTES = 1 << 30
    return {
        "counted": counted,
        "sampled": sampled,
        "numastat": numastat.stdout,
        "numa_maps": numa_maps,
    }


def cached(file: str) -> dict[str, Any]:
    """A file that a process on node 1 reads half of, the rest by nobody."""
    half = os.path.getsize(file) // 2
    bind = ["numactl", "--cpunodebind=1", "--membind=1"]
    subprocess.run([*bind, "head", "-c", str(half), file], stdout=subprocess.DEVNULL, check=True)
    with open(file, "rb"):
        files, unknown = look_at_page_cache(HOST, os.getpid())
    found = [one.model_dump(mode="json") for one in files if one.path == file]
    return {"found": found, "unknown": unknown}


def main() -> None:
    answers: dict[str, Any] = {"cached": cached(sys.argv[1])}
    for work in (bound, mixed):
        with child(work) as (pid, regions):
            answers[work.__name__] = look(pid, regions)
    with child(on_node_0) as (pid, regions):
        answers["before"] = look(pid, regions)
        subprocess.run(["migratepages", str(pid), "0", "1"], check=True)
        answers["migrated"] = look(pid, regions)
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
