"""Locates the pages of a live process: by node, by kind, by mapping.

The kernel counts them in /proc/PID/numa_maps but holds the process's mmap_lock meanwhile: about
5 ms for each GiB of small pages. Page faults that need the lock wait that long, and so do mmap and
munmap. A process with more than COUNT_BYTES resident is therefore sampled with move_pages(2), which
takes the lock for 16 pages at a time (see `sampling` for method and error).
"""

from __future__ import annotations

import errno
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from atoll.host.api import Host
from atoll.host.procfs import status_field
from atoll.inspect.mappings import Vma, kind_of, parse_maps, parse_mountinfo
from atoll.inspect.numa_maps import NumaLine, parse_numa_maps
from atoll.schema.inspection import MappingKind, MappingLook, MemoryLook

if TYPE_CHECKING:
    from atoll.inspect.sampling import Sample

# numa_maps took 4.5 ns per page (2.2 GHz Sapphire Rapids, 8 GiB in 40 ms), smaps_rollup the same.
COUNT_BYTES = 1 << 30
LARGEST_MAPPINGS = 20
_PAGE_BYTES = 4096
_END_PAGES = 16
_THP_LOOKS = 4096  # pages queried, each a system call of about 1 us
_THP_FIELDS = ("AnonHugePages", "ShmemPmdMapped", "FilePmdMapped")
_STATUS_FIELDS = {
    "RssAnon": MappingKind.ANONYMOUS,
    "RssFile": MappingKind.FILE,
    "RssShmem": MappingKind.SHARED,
}


@dataclass(frozen=True, slots=True)
class _Found:
    """The result of either method."""

    mappings: list[MappingLook]
    by_kind: Mapping[MappingKind, Mapping[int, int]]
    huge_bytes: int | None = None
    sampled_pages: int = 0
    share_error: float = 0.0


def look_at_memory(
    host: Host,
    pid: int,
    *,
    cpu_seconds_by_node: Mapping[int, float],
    own_nodes: Collection[int],
) -> tuple[MemoryLook | None, list[str]]:
    """The memory with every mapping that has pages, and what remains unknown and why.

    `cut_mappings` keeps only the largest mappings. `cpu_seconds_by_node`: CPU time of the process's
    threads on the nodes where they run. `own_nodes`: nodes with CPUs that the threads may use.
    Raises ProcessLookupError if there is no such process.
    """
    unknown: list[str] = []
    try:
        status = host.read_text(f"/proc/{pid}/status")
        resident = _kib(status, "VmRSS")  # excludes hugetlb
        if resident is None:
            return None, ["memory: it has none of its own (a kernel thread, or it is ending)"]
        if not host.exists(f"/proc/{pid}/numa_maps"):
            unknown.append("memory by mapping: this kernel has no NUMA support; all is on node 0")
            pages = _on_node_0(status)
        elif resident > COUNT_BYTES:
            pages = _sample(host, pid, resident, unknown)
        else:
            pages = _count(host, pid, unknown)
    except OSError as fault:
        if not host.exists(f"/proc/{pid}/stat"):
            raise ProcessLookupError(errno.ESRCH, "no such process", str(pid)) from None
        return None, [f"memory: {_why(fault)}"]
    return _summary(pages, cpu_seconds_by_node, own_nodes), unknown


def cut_mappings(look: MemoryLook, named: Collection[int] = ()) -> MemoryLook:
    """Keeps the largest mappings, and those whose start is in `named`."""
    kept = tuple(
        mapping
        for rank, mapping in enumerate(look.mappings)
        if rank < LARGEST_MAPPINGS or mapping.start in named
    )
    return look.model_copy(update={"mappings": kept})


def shares(bytes_by_node: Mapping[int, float]) -> dict[int, float]:
    """Each node's share of the total; empty if the total is 0."""
    total = sum(bytes_by_node.values())
    return {node: size / total for node, size in bytes_by_node.items()} if total else {}


def local_share(
    bytes_by_node: Mapping[int, int], cpu_seconds_by_node: Mapping[int, float]
) -> float | None:
    """See MemoryLook.local_share; None if there are no pages or no thread has run."""
    pages, cpu = shares(bytes_by_node), shares(cpu_seconds_by_node)
    if not pages or not cpu:
        return None
    return sum(share * cpu.get(node, 0.0) for node, share in pages.items())


def _summary(
    found: _Found, cpu_seconds_by_node: Mapping[int, float], own_nodes: Collection[int]
) -> MemoryLook:
    total: Counter[int] = Counter()
    for sizes in found.by_kind.values():
        total.update(sizes)
    by_node = dict(sorted(total.items()))
    return MemoryLook(
        method="move_pages" if found.sampled_pages else "numa_maps",
        sampled_pages=found.sampled_pages,
        resident_bytes=sum(by_node.values()),
        bytes_by_node=by_node,
        bytes_by_kind={kind: dict(sorted(sizes.items())) for kind, sizes in found.by_kind.items()},
        share_error=found.share_error,
        huge_bytes=found.huge_bytes,
        mappings=tuple(
            sorted(found.mappings, key=lambda m: (-sum(m.bytes_by_node.values()), m.start))
        ),
        local_share=local_share(by_node, cpu_seconds_by_node),
        own_nodes_share=(
            sum(share for node, share in shares(by_node).items() if node in own_nodes)
            if by_node
            else None
        ),
    )


# ---- Counted by the kernel ----------------------------------------------------------------


def _count(host: Host, pid: int, unknown: list[str]) -> _Found:
    lines = parse_numa_maps(host.read_text(f"/proc/{pid}/numa_maps"))
    vmas = {vma.start: vma for vma in parse_maps(host.read_text(f"/proc/{pid}/maps"))}
    file_systems = parse_mountinfo(host.read_text(f"/proc/{pid}/mountinfo"))
    mappings = [
        _counted(line, vmas.get(line.start), file_systems)
        for line in lines
        if any(line.bytes_by_node.values())
    ]
    return _Found(mappings, _by_kind(mappings), _huge_counted(host, pid, unknown))


def _counted(line: NumaLine, vma: Vma | None, file_systems: Mapping[str, str]) -> MappingLook:
    if vma is None:  # unmapped, or mapped, between the two reads; numa_maps has most of it
        size = sum(line.bytes_by_node.values())
        name = line.file or "[heap]" * line.heap or "[stack]" * line.stack
        vma = Vma(line.start, line.start + size, False, "", name)
    return MappingLook(
        start=line.start,
        size_bytes=vma.size_bytes,
        kind=MappingKind.HUGETLB if line.hugetlb else kind_of(vma, file_systems),
        name=vma.name,
        policy=line.policy,
        bytes_by_node=line.bytes_by_node,
    )


def _huge_counted(host: Host, pid: int, unknown: list[str]) -> int | None:
    try:
        text = host.read_text(f"/proc/{pid}/smaps_rollup")
    except FileNotFoundError:
        unknown.append("transparent huge pages in use: this kernel has no smaps_rollup")
        return None
    return sum(_kib(text, name) or 0 for name in _THP_FIELDS)


# ---- Sampled ------------------------------------------------------------------------------


def _sample(host: Host, pid: int, resident: int, unknown: list[str]) -> _Found:
    import numpy as np  # late: importing it takes longer than inspecting a small process

    from atoll.inspect.sampling import take_sample

    file_systems = parse_mountinfo(host.read_text(f"/proc/{pid}/mountinfo"))
    vmas = [
        (vma, kind)
        for vma in parse_maps(host.read_text(f"/proc/{pid}/maps"))
        if (kind := kind_of(vma, file_systems)) is not MappingKind.KERNEL
    ]
    # (index in vmas, first address, pages). The end is separate: a thread's stack has its pages
    # there.
    strata = []
    for index, (vma, _) in enumerate(vmas):
        pages = vma.size_bytes // _PAGE_BYTES
        end_pages = _END_PAGES if pages > 2 * _END_PAGES else 0
        strata.append((index, vma.start, pages - end_pages))
        if end_pages:
            strata.append((index, vma.end - end_pages * _PAGE_BYTES, end_pages))
    owner, starts, sizes_pages = np.array(strata, dtype=np.int64).reshape(-1, 3).T
    sample = take_sample(
        starts, sizes_pages, _PAGE_BYTES, lambda addresses: host.page_nodes(pid, addresses)
    )
    hugetlb = np.array([kind is MappingKind.HUGETLB for _, kind in vmas], dtype=bool)[owner]
    # The kernel gives the resident size (without hugetlb); the sample gives only its distribution.
    scale = np.ones(len(owner))
    scaled = ~hugetlb & ~sample.whole
    rest = resident / _PAGE_BYTES - float(sample.pages[~hugetlb & sample.whole].sum())
    estimated = float(sample.pages[scaled].sum())
    if estimated > 0 and rest > 0:
        scale[scaled] = rest / estimated
    pages_by_vma = np.zeros((len(vmas), len(sample.nodes)))
    np.add.at(pages_by_vma, owner, sample.pages * scale[:, None])
    sizes = np.rint(pages_by_vma).astype(np.int64) * _PAGE_BYTES
    mappings = [
        MappingLook(
            start=vma.start,
            size_bytes=vma.size_bytes,
            kind=kind,
            name=vma.name,
            policy="",
            bytes_by_node={
                node: int(size) for node, size in zip(sample.nodes, row, strict=True) if size
            },
        )
        for (vma, kind), row in zip(vmas, sizes, strict=True)
        if row.any()
    ]
    huge = _huge_sampled(host, pid, sample, scale * ~hugetlb, unknown)
    return _Found(mappings, _by_kind(mappings), huge, sample.probes, sample.share_error)


def _huge_sampled(
    host: Host, pid: int, sample: Sample, scale: object, unknown: list[str]
) -> int | None:
    """Queries some of the found pages; each stands for as many pages as in the sample."""
    import numpy as np

    weights = sample.weights * np.asarray(scale)[sample.rows]
    if len(weights) == 0:
        return 0
    chosen = np.linspace(0, len(weights) - 1, min(len(weights), _THP_LOOKS)).astype(np.int64)
    try:
        huge = host.huge_pages(pid, sample.addresses[chosen])
    except OSError as fault:
        if fault.errno not in (errno.ENOTTY, errno.EINVAL):
            raise
        unknown.append(
            "transparent huge pages in use: the process is too large to count them, and this "
            "kernel has no PAGEMAP_SCAN (Linux 6.7) to sample them"
        )
        return None
    share = float((weights[chosen] * huge).sum() / max(float(weights[chosen].sum()), 1e-9))
    return round(share * float(weights.sum())) * _PAGE_BYTES


# ---- Helpers ------------------------------------------------------------------------------


def _by_kind(mappings: list[MappingLook]) -> dict[MappingKind, Counter[int]]:
    by_kind: defaultdict[MappingKind, Counter[int]] = defaultdict(Counter)
    for mapping in mappings:
        by_kind[mapping.kind].update(mapping.bytes_by_node)
    return dict(by_kind)


def _on_node_0(status: str) -> _Found:
    """All that a kernel without NUMA support reports cheaply."""
    sizes = {kind: _kib(status, name) for name, kind in _STATUS_FIELDS.items()}
    return _Found([], {kind: {0: size} for kind, size in sizes.items() if size})


def _kib(text: str, name: str) -> int | None:
    """'VmRSS:    12 kB' in bytes."""
    match = re.fullmatch(r"(\d+) kB", status_field(text, name))
    return int(match[1]) << 10 if match else None


def _why(fault: OSError) -> str:
    if fault.errno in (errno.EPERM, errno.EACCES):
        return (
            "not permitted: run as its user or as root (CAP_SYS_PTRACE); in a container, "
            "allow move_pages and ptrace in its seccomp profile"
        )
    if fault.errno == errno.ENOSYS:
        return "this kernel has no move_pages (CONFIG_MIGRATION)"
    return fault.strerror or str(fault)
