"""Reads the mappings of a process from /proc/PID/maps (proc(5)) and classifies them. Pure.

The kind follows from the names that the kernel gives (fs/proc/task_mmu.c, show_map_vma), from
those that glibc gives its heaps and stacks (PR_SET_VMA_ANON_NAME), and from the file system.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from atoll.schema.inspection import MappingKind

# The kernel's own tmpfs, for memfd, System V and shared anonymous memory. A mapping with such a
# name on another device is on the kernel's hugetlbfs (memfd with MFD_HUGETLB, SHM_HUGETLB).
_SHMEM_DEVICE = "00:01"
_SHMEM_NAMES = ("/memfd:", "/SYSV", "/dev/zero (deleted)")
_STACKS = ("[stack", "[anon: glibc: pthread stack", "[anon:stack_and_tls")
_HEAPS = ("[heap]", "[anon: glibc: malloc")
_FILE_SYSTEMS = {"tmpfs": MappingKind.SHARED, "hugetlbfs": MappingKind.HUGETLB}
_OCTAL = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class Vma:
    """A mapping; the kernel calls it a virtual memory area."""

    start: int
    end: int
    executable: bool
    device: str  # 'MAJOR:MINOR' in hexadecimal
    name: str  # path, '[heap]', or empty

    @property
    def size_bytes(self) -> int:
        return self.end - self.start


def parse_maps(text: str) -> list[Vma]:
    """The mappings by address. Malformed lines are skipped: a process may end during the read."""
    vmas = []
    for line in text.split("\n"):  # splitlines() would also split odd file names
        fields = line.split(None, 5)
        if len(fields) < 5:
            continue
        first, dash, last = fields[0].partition("-")
        try:
            start, end = int(first, 16), int(last, 16)
        except ValueError:
            continue
        if dash and start < end:
            name = unescape(fields[5]) if len(fields) == 6 else ""
            vmas.append(Vma(start, end, "x" in fields[1], fields[3], name))
    return vmas


def unescape(name: str) -> str:
    r"""Decodes \012 and the like: a newline, and in numa_maps also a space, a tab and '='."""
    return _OCTAL.sub(lambda octal: chr(int(octal[1], 8)), name) if "\\" in name else name


def kind_of(vma: Vma, file_systems: Mapping[str, str]) -> MappingKind:
    """The kind of a mapping. `file_systems`: by device, see `parse_mountinfo`."""
    name = vma.name
    if name.startswith(_STACKS):
        return MappingKind.STACK
    if name.startswith(_HEAPS):
        return MappingKind.HEAP
    if name.startswith("[anon_shmem"):
        return MappingKind.SHARED
    if not name or name.startswith("[anon"):
        return MappingKind.ANONYMOUS
    if not name.startswith("/"):  # [vdso], [vvar], anon_inode:[io_uring]
        return MappingKind.KERNEL
    if name.startswith("/anon_hugepage"):
        return MappingKind.HUGETLB
    if name.startswith(_SHMEM_NAMES):
        return MappingKind.SHARED if vma.device == _SHMEM_DEVICE else MappingKind.HUGETLB
    return _FILE_SYSTEMS.get(file_systems.get(vma.device, ""), MappingKind.FILE)


def parse_mountinfo(text: str) -> dict[str, str]:
    """The file-system type of each device; devices are written as in /proc/PID/maps."""
    types = {}
    for line in text.split("\n"):
        fields = line.split(" ")
        try:
            major, minor = map(int, fields[2].split(":"))
            types[f"{major:02x}:{minor:02x}"] = fields[fields.index("-") + 1]
        except (ValueError, IndexError):
            continue
    return types
