"""Which threads of a task manager run which operator. Pure.

Flink names the thread of a subtask after the task: 'home page (1/1)#0', the last number being the
attempt. Threads that serve a subtask alone have its name behind a prefix. The kernel cuts names at
15 bytes, so they come from the JVM's thread dump.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from atoll.engines.flink.documents import Vertex
from atoll.inspect.tasks import Thread

_SUBTASK = re.compile(r"(.*) \((\d{1,5})/(\d{1,5})\)#\d+", re.DOTALL)
# Threads that work for one subtask and have its name: those that flush its output, fire its timers
# and fetch for a source.
_SERVANT = re.compile(
    r"(?:OutputFlusher for|Time Trigger for|System Time Trigger for|Legacy Source Thread -"
    r"|Source Data Fetcher for|Channel state writer) "
)


class Named(NamedTuple):
    task: str
    subtask: int  # from 0
    of: int  # how many
    serves: bool  # it is not the subtask's own thread


def parse_name(name: str) -> Named | None:
    """None for a thread of the JVM or of the task manager itself."""
    servant = _SERVANT.match(name)
    found = _SUBTASK.fullmatch(name[servant.end() :] if servant else name)
    if found is None:
        return None
    number, of = int(found[2]), int(found[3])
    return Named(found[1], number - 1, of, servant is not None) if 1 <= number <= of else None


def operator_ids(vertices: Sequence[Vertex]) -> dict[str, tuple[str, ...]]:
    """Vertex -> the id of the operator that each of its subtasks is.

    It is the vertex's name; of tasks with the same name, with the beginning of the vertex's id.
    """
    alike = defaultdict(list)
    for vertex in vertices:
        alike[vertex.name].append(vertex)
    found = {}
    for vertex in vertices:
        name = vertex.name if len(alike[vertex.name]) == 1 else f"{vertex.name} {vertex.id[:8]}"
        found[vertex.id] = tuple(
            name if vertex.parallelism == 1 else f"{name} ({number}/{vertex.parallelism})"
            for number in range(1, vertex.parallelism + 1)
        )
    return found


def threads_of(
    vertices: Sequence[Vertex],
    names: Mapping[Thread, str],
    cpu_s: Mapping[Thread, float],
) -> dict[str, tuple[Thread, ...]]:
    """Operator -> its threads, its subtask's own first. Operators without a thread here are left
    out.

    Of tasks with the same name, the one that was busier by Flink's count gets the thread that had
    more CPU time (`cpu_s`); threads that only serve them belong to none. If such a name has
    another number of threads than tasks (another job uses it too), none is given away.
    """
    own: dict[tuple[str, int, int], list[Thread]] = defaultdict(list)
    serving: dict[tuple[str, int, int], list[Thread]] = defaultdict(list)
    for thread, text in sorted(names.items()):
        if named := parse_name(text):
            (serving if named.serves else own)[named[:3]].append(thread)
    ids = operator_ids(vertices)
    alike: dict[tuple[str, int, int], list[Vertex]] = defaultdict(list)
    for vertex in vertices:
        for number in range(vertex.parallelism):
            alike[vertex.name, number, vertex.parallelism].append(vertex)
    found = {}
    for key, tasks in alike.items():
        threads = own[key]
        if len(threads) != len(tasks):
            continue
        if len(tasks) == 1:
            found[ids[tasks[0].id][key[1]]] = (*threads, *serving[key])
            continue
        busiest = sorted(tasks, key=lambda task: _rank(task.counts.busy_ms))
        by_time = sorted(threads, key=lambda thread: cpu_s.get(thread, 0.0))
        for task, thread in zip(busiest, by_time, strict=True):
            found[ids[task.id][key[1]]] = (thread,)
    return found


def same_names(vertices: Iterable[Vertex]) -> tuple[str, ...]:
    """Names that several tasks have."""
    counts = Counter(vertex.name for vertex in vertices)
    return tuple(sorted(name for name, count in counts.items() if count > 1))


def _rank(busy_ms: float) -> float:
    return busy_ms if busy_ms == busy_ms else float("inf")  # NaN: a source that never waits
