"""Measures each node's CPUs against each node's memory: idle latency, bandwidth, loaded latency.

The matrices are those of Intel's Memory Latency Checker: a chain of dependent loads by one PU, in
huge pages if available, and reading by one PU of each core of the node. A node without CPUs
(memory behind CXL, HBM) is a column without a row. The loaded curve is what matters on a busy
server: how long one PU waits while the others of its node request more and more.

The data are several times the caches, so that memory is measured, and take a part of the node's
free memory. If a node has too little free, less is measured and a notice says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from atoll.probing.places import CpuGroup, all_cache_bytes, coarse_first, node_groups
from atoll.probing.requests import Chase, Load, Move
from atoll.probing.run import Run
from atoll.schema.profile import Figure, LoadedCurve, LoadedPoint, Mode, NodeMatrix
from atoll.schema.size import GIB, MIB, gib

_TIMES_CACHES = 4
_LEAST_WANTED_BYTES = 128 * MIB
_MOST_WANTED_BYTES = {Mode.QUICK: GIB, Mode.FULL: 4 * GIB}
# A node with less is left out: its figures would be those of a cache.
_LEAST_BYTES = 16 * MIB
_NODE_SHARE = 0.5  # of its free memory; `load` takes it twice
_PAGE_BYTES = 2 * MIB
# Spin steps between two lines of a loader; None: idle.
GAPS: dict[Mode, tuple[int | None, ...]] = {
    Mode.QUICK: (None, 1000, 200, 50, 0),
    Mode.FULL: (None, 4000, 2000, 1000, 500, 200, 100, 50, 20, 0),
}
_LOADED_SHARE = 0.4  # of the time
# The rest is for touching memory first.
_SAMPLING_SHARE = 0.5
_MOST_S = 0.5


@dataclass(frozen=True, slots=True)
class _Cell:
    cpu_node: int
    memory_node: int


def measure_nodes(run: Run) -> tuple[NodeMatrix | None, tuple[LoadedCurve, ...]]:
    """(None, ()) if the system shows no nodes, or no node has free memory."""
    groups = node_groups(run)
    size, memory_nodes = working_set(run, groups)
    if not groups or not memory_nodes:
        run.leave_out("no-nodes", "nodes: found no memory node with CPUs in use and free memory")
        return None, ()
    cells = [_Cell(cpu_node, memory_node) for cpu_node in groups for memory_node in memory_nodes]
    # Local memory first, so that it is known even if time runs out.
    cells.sort(key=lambda cell: cell.cpu_node != cell.memory_node)
    curves = loaded_cells(run, groups, cells)
    matrix = _matrix(run, groups, memory_nodes, cells, size, keep_s=_kept_s(run, curves))
    return matrix, tuple(_curves(run, groups, curves, size))


def working_set(run: Run, groups: dict[int, CpuGroup]) -> tuple[int, tuple[int, ...]]:
    """The size in bytes and the nodes to measure; reports those it leaves out."""
    caches = max((all_cache_bytes(run.machine, cpus) for cpus in groups.values()), default=0)
    wanted = min(max(_LEAST_WANTED_BYTES, _TIMES_CACHES * caches), _MOST_WANTED_BYTES[run.mode])
    size, nodes = wanted, []
    for node in run.machine.nodes:
        if node.memory_bytes == 0 or node.os_index not in run.machine.allowed.nodes:
            continue
        share = int(run.node_free_bytes(node.os_index) * _NODE_SHARE)
        if share < _LEAST_BYTES:
            run.leave_out(
                "memory",
                f"nodes: Atoll may use only {gib(share)} on node {node.os_index}, too little to "
                "measure memory",
            )
            continue
        nodes.append(node.os_index)
        size = min(size, share)
    size -= size % _PAGE_BYTES
    if nodes and size < min(wanted, 2 * caches):
        run.notice(
            "little-memory",
            f"nodes: measured over only {gib(size)} because no more memory is free; this includes "
            f"caches of {gib(caches)}, so the figures are better than memory's",
        )
    return size, tuple(nodes)


def loaded_cells(run: Run, groups: dict[int, CpuGroup], cells: Sequence[_Cell]) -> list[_Cell]:
    """The pairs measured under load: local memory; in full mode other nodes' memory too."""
    chosen = []
    for cell in cells:
        if cell.cpu_node != cell.memory_node and run.mode is Mode.QUICK:
            continue
        if len(groups[cell.cpu_node]) < 2:
            run.leave_out(
                "one-core",
                f"loaded latency of node {cell.cpu_node}: only one core of it may be used, which "
                "leaves none to load the memory",
            )
            continue
        chosen.append(cell)
    return chosen


def _kept_s(run: Run, curves: Sequence[_Cell]) -> float:
    return run.seconds_left() * _LOADED_SHARE if curves else 0.0


def _matrix(
    run: Run,
    groups: dict[int, CpuGroup],
    memory_nodes: tuple[int, ...],
    cells: Sequence[_Cell],
    size: int,
    *,
    keep_s: float,
) -> NodeMatrix | None:
    latency: dict[_Cell, Figure] = {}
    bandwidth: dict[_Cell, Figure] = {}
    huge: list[bool] = []
    for place, cell in enumerate(cells):
        what = f"node {cell.cpu_node} to memory of node {cell.memory_node}"
        left_s = run.seconds_left() - keep_s
        if left_s <= 0:
            run.cut_short("nodes", len(cells) - place, len(cells), "pairs of nodes")
            break
        run.report(place / len(cells) * (1 - _LOADED_SHARE), what)
        each_s = min(_MOST_S, _SAMPLING_SHARE * left_s / (len(cells) - place) / 2)
        cpus, node = groups[cell.cpu_node], cell.memory_node
        chase = Chase(cpu=cpus[0], node=node, bytes=size, huge=True, budget_s=each_s)
        walked = run.attempt(chase, f"latency of {what}")
        if walked is not None:
            latency[cell] = run.figure(walked.load_ns, walked, node=node)
            huge.append(walked.huge)
        move = Move(cpus=cpus, node=node, bytes=size, op="read", huge=True, budget_s=each_s)
        moved = run.attempt(move, f"bandwidth of {what}")
        if moved is None:
            continue
        if moved.verified:
            bandwidth[cell] = run.figure(moved.gbs, moved, node=node)
        else:
            run.leave_out(
                "unverified", f"bandwidth of {what}: the data read differ from the data written"
            )
    if not latency and not bandwidth:
        return None
    if huge and not all(huge):
        run.notice(
            "no-huge-pages",
            "nodes: not all of the data got huge pages, so the latencies include address "
            "translation; see /sys/kernel/mm/transparent_hugepage/enabled",
        )
    return NodeMatrix(
        cpu_nodes=tuple(groups),
        memory_nodes=memory_nodes,
        working_set_bytes=size,
        huge_pages=bool(huge) and all(huge),
        latency_ns=_table(groups, memory_nodes, latency),
        bandwidth_gbs=_table(groups, memory_nodes, bandwidth),
    )


def _table(
    groups: dict[int, CpuGroup], memory_nodes: tuple[int, ...], figures: dict[_Cell, Figure]
) -> tuple[tuple[Figure | None, ...], ...]:
    return tuple(
        tuple(figures.get(_Cell(cpu_node, memory_node)) for memory_node in memory_nodes)
        for cpu_node in groups
    )


def _curves(
    run: Run, groups: dict[int, CpuGroup], cells: Sequence[_Cell], size: int
) -> list[LoadedCurve]:
    gaps = GAPS[run.mode]
    curves = []
    for place, cell in enumerate(cells):
        chaser, *loaders = groups[cell.cpu_node]
        points: dict[int, LoadedPoint] = {}
        # Idle and full load first: a lack of time thins the curve and does not shorten it.
        for number, index in enumerate(coarse_first(len(gaps))):
            what = f"loaded latency of node {cell.cpu_node} to memory of node {cell.memory_node}"
            share = (place + number / len(gaps)) / len(cells)
            run.report(1 - _LOADED_SHARE + _LOADED_SHARE * share, what)
            asked = len(gaps) * (len(cells) - place) - number
            request = Load(
                cpu=chaser,
                node=cell.memory_node,
                bytes=size,
                loaders=tuple(loaders),
                gap=gaps[index],
                budget_s=min(_MOST_S, _SAMPLING_SHARE * run.seconds_left() / asked),
            )
            answer = run.attempt(request, what)
            if answer is None:
                break
            figure = run.figure(answer.load_ns, answer, node=cell.memory_node)
            points[index] = LoadedPoint(bandwidth_gbs=answer.gbs, latency_ns=figure)
        if points:
            curves.append(
                LoadedCurve(
                    cpu_node=cell.cpu_node,
                    memory_node=cell.memory_node,
                    loaders=len(loaders),
                    points=tuple(points[index] for index in sorted(points)),
                )
            )
    return curves
