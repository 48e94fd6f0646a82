"""Reads what native/tests/runtime/guests/look.hpp prints about a process. Pure."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from atoll.guest.seen import cpu_list

KIB = 1 << 10
Nodes = dict[int, int]  # node to bytes


@dataclass(frozen=True)
class Task:
    """A thread."""

    cpus: frozenset[int]  # its mask
    cpu_ns: int  # that it ran
    policy: str  # of its memory, in the words of numa_maps


@dataclass
class Look:
    label: str = ""
    threads: dict[int, int] = field(default_factory=dict)  # of each worker, by rank
    tasks: dict[int, Task] = field(default_factory=dict)
    ranges: list[tuple[str, int, int]] = field(default_factory=list)
    maps: list[tuple[int, str, Nodes]] = field(default_factory=list)  # begin, its words, bytes

    @property
    def workers(self) -> list[Task]:
        """By rank."""
        return [self.tasks[self.threads[rank]] for rank in sorted(self.threads)]

    def words(self, label: str) -> list[str]:
        """Of the mappings that hold the range."""
        return [self.maps[index][1] for index in self._mappings(label)]

    def nodes(self, *labels: str) -> Nodes:
        """Of all mappings that the ranges overlap, each once."""
        total: Counter[int] = Counter()
        for index in {index for label in labels for index in self._mappings(label)}:
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
    looks: list[Look] = field(default_factory=list)
    said: list[str] = field(default_factory=list)  # what the program says of itself
    fault: str = ""


def read(out: str) -> Answer:
    answer = Answer()
    look = Look()
    in_maps = False
    for line in out.splitlines():
        word, _, rest = line.partition(" ")
        if line == "end":
            answer.looks.append(look)
            look, in_maps = Look(), False
        elif in_maps:
            size = re.search(r"kernelpagesize_kB=(\d+)", rest)
            kib = int(size[1]) if size else 4
            nodes = re.findall(r" N(\d+)=(\d+)", line)
            look.maps.append(
                (int(word, 16), rest, {int(n): int(pages) * kib * KIB for n, pages in nodes})
            )
        elif line == "maps":
            in_maps = True
        elif word == "look":
            look.label = rest
        elif word == "rank":
            rank, thread = rest.split()
            look.threads[int(rank)] = int(thread)
        elif word == "task":
            thread, mask, cpu_ns, policy = rest.split()
            look.tasks[int(thread)] = Task(cpu_list(mask), int(cpu_ns), policy)
        elif word == "range":
            label, begin, end = rest.split()
            look.ranges.append((label, int(begin, 16), int(end, 16)))
        elif word == "said":
            answer.said.append(rest)
        elif word == "fault":
            answer.fault = rest
        else:
            raise AssertionError(line)
    return answer
