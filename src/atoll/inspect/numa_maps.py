"""Parses /proc/PID/numa_maps: pages by mapping and node (numa(7); task_mmu.c, show_numa_map). Pure.

A line has the address, the policy, the kind and the counts:

    7f3a80000000 bind=static:0-1 anon=512 dirty=512 N0=256 N1=256 kernelpagesize_kB=4
    7f3a90000000 prefer (many):0-1 file=/mnt/a\\040b huge dirty=3 N0=3 kernelpagesize_kB=2048

Counts are in pages of the mapping: huge pages if it is hugetlb, otherwise small ones, even for
transparent huge pages. Spaces, tabs, newlines and '=' in file names are escaped.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from atoll.inspect.mappings import unescape

# Policy names that contain a space, up to the space.
_TWO_WORDS = ("weighted", "prefer")


@dataclass(frozen=True, slots=True)
class NumaLine:
    start: int
    policy: str  # 'default', 'bind=static:0-1', 'prefer (many):0,2', 'weighted interleave:0-3'
    file: str = ""
    heap: bool = False
    stack: bool = False
    hugetlb: bool = False
    bytes_by_node: dict[int, int] = field(default_factory=dict)


def parse_numa_maps(text: str) -> list[NumaLine]:
    """The lines by address. Malformed lines are skipped: a process may end during the read."""
    parsed = []
    for line in text.split("\n"):
        words = line.split(" ")
        try:
            if len(words) >= 2 and words[1]:
                parsed.append(_line(words))
        except ValueError:
            continue
    return parsed


def _line(words: list[str]) -> NumaLine:
    start = int(words[0], 16)
    policy, rest = words[1], words[2:]
    if policy in _TWO_WORDS and rest and rest[0].startswith(("interleave", "(many)")):
        policy, rest = f"{policy} {rest[0]}", rest[1:]
    pages: dict[int, int] = {}
    page_bytes = 0
    file = ""
    for word in rest:
        key, _, value = word.partition("=")
        if key == "file":
            file = unescape(value)
        elif key == "kernelpagesize_kB":
            page_bytes = int(value) << 10
        elif key[:1] == "N" and key[1:].isdecimal():
            pages[int(key[1:])] = int(value)
    return NumaLine(
        start=start,
        policy=policy,
        file=file,
        heap="heap" in rest,
        stack="stack" in rest,
        hugetlb="huge" in rest,
        bytes_by_node={node: count * page_bytes for node, count in pages.items()},
    )
