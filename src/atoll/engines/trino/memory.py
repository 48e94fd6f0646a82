"""The limits of the memory that queries take, from an instance's heap. Pure.

Atoll's own configuration lets one query use everything. A user's limits stay as they are where they
fit the instance, also those that the user leaves at their defaults. A limit that does not fit, so
that the server would not start, becomes smaller and never larger.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence

from atoll.engines.explained import Setting
from atoll.engines.trino.family import Family
from atoll.schema.size import GIB, MIB, gib

HEADROOM = 0.3  # Trino's default of the heap's share that no query is charged for
_HEADROOM_NAME = "memory.heap-headroom-per-node"
_CLUSTER, _CLUSTER_TOTAL = "query.max-memory", "query.max-total-memory"
_DEFAULT_CLUSTER_BYTES = 20 * GIB  # Trino's and Presto's default of query.max-memory
_RESOURCES = "Trino's manual, Resource management properties"
_YOURS = "the user's limit, made smaller"
# io.airlift.units.DataSize, and HeapSizeParser of Trino 476 for a share of the heap.
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(B|kB|MB|GB|TB|PB|%)\s*")
_UNITS = {"B": 1, "kB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40, "PB": 1 << 50}


def own_limits(family: Family, heap_bytes: int, heaps: Sequence[int]) -> dict[str, Setting]:
    """`heaps`: of all workers."""
    per_node = _mib(_query_bytes(heap_bytes))
    return {
        **{
            name: Setting(per_node, limit.why.text, limit.why.source)
            for name, limit in family.per_node_limits.items()
        },
        _HEADROOM_NAME: Setting(
            _mib(int(heap_bytes * HEADROOM)),
            "30 % of the heap, the default, for what no query is charged for; the server starts "
            "only if this and query.max-memory-per-node fit the heap",
            _RESOURCES,
        ),
        _CLUSTER: Setting(
            _mib(sum(map(_query_bytes, heaps))),
            "the sum over all workers; the default, 20 GB, would stop queries on a large machine",
            _RESOURCES,
        ),
    }


def limits_to_change(
    family: Family, config: Mapping[str, str], heap_bytes: int, heaps: Sequence[int]
) -> dict[str, Setting]:
    """Those of the user's limits that do not fit, with a value that does. `config`: the user's.

    A value that cannot be read is the server's to refuse."""
    return {
        **_of_node(family, config, heap_bytes),
        **_of_cluster(config, sum(map(_query_bytes, heaps))),
    }


def _of_node(family: Family, config: Mapping[str, str], heap_bytes: int) -> dict[str, Setting]:
    headroom = _bytes(config.get(_HEADROOM_NAME), heap_bytes)
    takes: dict[str, int] = {}  # as the server would read them, the largest last
    last = 0
    for name, limit in family.per_node_limits.items():
        default = int(heap_bytes * limit.of_heap + last * limit.of_last)
        size = _bytes(config.get(name), heap_bytes)
        takes[name] = last = default if size is None else size
    beside = int(heap_bytes * HEADROOM) if headroom is None else headroom
    settings: dict[str, Setting] = {}
    if max(takes.values()) + beside > heap_bytes:
        if headroom is not None and headroom > heap_bytes * HEADROOM:
            beside = int(heap_bytes * HEADROOM)
            why = f"with it the limit of a query does not fit a heap of {gib(heap_bytes)}; {_YOURS}"
            settings[_HEADROOM_NAME] = Setting(_mib(beside), why, _RESOURCES)
        room = heap_bytes - beside - MIB
        for name, size in takes.items():
            if size > room:
                why = f"a heap of {gib(heap_bytes)} has no more for queries; {_YOURS}"
                settings[name] = Setting(_mib(room), why, _RESOURCES)
                takes[name] = room
    for smaller, larger in itertools.pairwise(takes):
        if takes[smaller] > takes[larger]:  # a default that grew with the heap
            why = f"not above {larger}, which is your limit"
            settings[smaller] = Setting(_mib(takes[larger]), why, _RESOURCES)
    return settings


def _of_cluster(config: Mapping[str, str], room_bytes: int) -> dict[str, Setting]:
    settings: dict[str, Setting] = {}
    limit, total = (_bytes(config.get(name), 0) for name in (_CLUSTER, _CLUSTER_TOTAL))
    why = f"all workers together have no more for queries; {_YOURS}"
    if limit is not None and limit > room_bytes:
        limit = room_bytes
        settings[_CLUSTER] = Setting(_mib(limit), why, _RESOURCES)
    # The server refuses a total below query.max-memory.
    most = max(room_bytes, _DEFAULT_CLUSTER_BYTES if limit is None else limit)
    if total is not None and total > most:
        settings[_CLUSTER_TOTAL] = Setting(_mib(most), why, _RESOURCES)
    return settings


def _bytes(text: str | None, whole_bytes: int) -> int | None:
    """None if it is not set or not a size. `whole_bytes`: what a share is of."""
    match = _SIZE.fullmatch(text or "")
    if match is None or (match[2] == "%" and not whole_bytes):
        return None
    number = float(match[1])
    return int(number * (whole_bytes / 100 if match[2] == "%" else _UNITS[match[2]]))


def _query_bytes(heap_bytes: int) -> int:
    return heap_bytes - int(heap_bytes * HEADROOM) - MIB


def _mib(size_bytes: int) -> str:
    return f"{size_bytes // MIB}MB"
