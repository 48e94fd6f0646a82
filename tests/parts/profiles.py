"""Synthetic profiles for tests and for the pictures of the docs. Every figure is made up: medians
as published for machines of the kind (olap-on-chiplets 2.3 and 2.4), noise from a seed."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from atoll.schema.profile import (
    CacheCurve,
    CacheLevel,
    CachePoint,
    ChurnRun,
    Environment,
    Expectation,
    Figure,
    Inference,
    Kind,
    Level,
    LoadedCurve,
    LoadedPoint,
    Mode,
    NodeMatrix,
    Notice,
    PairMatrix,
    Profile,
    Sharing,
    SharingPoint,
    StreamKernel,
    StreamRun,
    Watch,
)

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
Array = npt.NDArray[np.float64]
Groups = tuple[tuple[int, ...], ...]


def figure(value: float, spread: float = 0.01, settled: bool = True) -> Figure:
    return Figure(
        value=value, low=value * (1 - spread), high=value * (1 + spread), samples=40,
        settled=settled,
    )  # fmt: skip


def pair_matrix(values: Array, unsettled: tuple[tuple[int, int], ...] = ()) -> PairMatrix:
    """NaN stands for not measured; PUs are 0, 1, 2."""
    count = len(values)
    cells = tuple(
        tuple(None if i == j or np.isnan(values[i][j]) else round(float(values[i][j]), 2)
              for j in range(count))
        for i in range(count)
    )  # fmt: skip
    spreads = tuple(tuple(None if cell is None else 0.01 for cell in row) for row in cells)
    return PairMatrix(
        pus=tuple(range(count)), values=cells, spreads=spreads, unsettled=unsettled,
        samples=60, pair_ms=1.4,
    )  # fmt: skip


def member(groups: Groups, count: int) -> npt.NDArray[np.int64]:
    """The number of each PU's group; PUs of none have one each."""
    found = np.arange(count) + len(groups)
    for number, group in enumerate(groups):
        found[list(group)] = number
    return found


def noisy(values: Array, noise: float, seed: int) -> Array:
    return values * np.random.default_rng(seed).normal(1, noise, values.shape)


def profile(title: str, cpus: int, **parts: Any) -> Profile:
    """A profile with nothing measured but `parts`."""
    environment = Environment(
        hostname_hash="0" * 12, cpu_model=title, kernel="6.1.0", kernel_cmdline="quiet",
        microcode="0x1", virtualization="", thp_enabled="madvise", thp_defrag="madvise",
        numa_balancing="0", governor="performance", affinity=f"0-{cpus - 1}", cgroup="/",
        memory_bytes=512 * GIB, atoll_version="0",
    )  # fmt: skip
    whole: dict[str, Any] = {
        "created": "2026-01-01T00:00:00Z", "machine_id": f"synthetic-{title}",
        "machine_title": f"SYNTHETIC: {title}", "environment": environment, "mode": Mode.FULL,
        "emulated": False, "cpus": tuple(range(cpus)), "seconds": 212.0, "settle": 0.02,
        "clock": "tsc",
    }  # fmt: skip
    return Profile(**(whole | parts))


def epyc(packages: int = 2, chiplets: int = 8, cores: int = 6, seed: int = 1) -> Profile:
    """EPYC-like: SMT siblings 10 ns, a chiplet 23 ns, across 108 or by the home 200, 197 to the
    other package; quarters of the I/O die."""
    per_package = chiplets * cores
    total = packages * per_package
    threads = 2 * total
    smt = tuple((core, core + total) for core in range(total))
    islands = tuple(
        tuple(sorted(range(n * cores, (n + 1) * cores)))
        + tuple(range(total + n * cores, total + (n + 1) * cores))
        for n in range(packages * chiplets)
    )
    sockets = tuple(
        tuple(range(p * per_package, (p + 1) * per_package))
        + tuple(range(total + p * per_package, total + (p + 1) * per_package))
        for p in range(packages)
    )
    core, island, socket = (member(groups, threads) for groups in (smt, islands, sockets))
    quarter = island // 2

    def matrix(sibling: float, near: float, quarter_: float, far: float, other: float) -> Array:
        values = np.full((threads, threads), float(other))
        values[np.equal.outer(socket, socket)] = far
        values[np.equal.outer(quarter, quarter)] = quarter_
        values[np.equal.outer(island, island)] = near
        values[np.equal.outer(core, core)] = sibling
        return values

    latency = matrix(9.8, 22.7, 92, 108, 197)
    crossing = np.not_equal.outer(island, island) & np.equal.outer(socket, socket)
    latency[crossing & (socket[:, None] == 1)] *= 1.35  # the home is the second socket
    latency = noisy(latency, 0.02, seed)
    shaken = tuple((3, j) for j in range(threads // 2, threads // 2 + 20) if j < threads)
    bandwidth = noisy(matrix(18, 12, 6.6, 6, 3.4), 0.03, seed + 1)
    inference = Inference(
        chiplets=islands,
        packages=sockets if packages > 1 else (),
        smt=smt,
        levels=(
            Level(median=9.8, groups=smt),
            Level(median=22.7, groups=islands),
            Level(median=108, groups=sockets),
            Level(median=197, groups=(tuple(range(threads)),)),
        ),
        confidence=0.97,
        source="both",
        reasons=("latency has gaps at 15, 60 and 160 ns", "bandwidth agrees with latency"),
    )
    nodes = tuple(range(packages))
    size = 32 * MIB
    island_pus = islands[0][:cores]
    spread_pus = tuple(group[0] for group in islands[:cores])
    return profile(
        f"EPYC-like, {packages} packages of {chiplets} chiplets of {cores} cores",
        threads,
        core_latency_cas_ns=pair_matrix(latency, shaken),
        core_latency_store_ns=pair_matrix(noisy(latency * 0.83, 0.02, seed + 2)),
        core_bandwidth_gbs=pair_matrix(bandwidth),
        nodes=node_matrix(nodes, 96, 198, 182, 64),
        loaded=tuple(loaded_curve(0, node, 96 + 102 * node, 182 - 118 * node) for node in nodes),
        caches=(cache_curve(((32 * KIB, 1.2), (512 * KIB, 4), (size, 14)), 96),),
        stream=stream_runs(
            threads // 2,
            (("machine", 1, 0.55), ("node", packages, 0.8), ("chiplet", packages * chiplets, 1.0),
             ("core", total, 0.97)),
            memory=182.0 * packages,
            caches=(("L2", total * 512 * KIB, 20.0), ("L3", packages * chiplets * size, 8.0)),
        ),
        sharing=(
            sharing("write", island_pus, spread_pus, size, 4),
            sharing("read", island_pus, spread_pus, size, 5),
        ),
        churn=churn_runs(("glibc", "jemalloc", "mimalloc", "tcmalloc"), (1, 8, 32, total)),
        inference=inference,
        expectations=(
            Expectation(
                model="EPYC 7R13", figure="triad over all of memory", expected=410.0,
                measured=364.0, unit="GB/s", verdict="misconfigured?",
                reason="11 % under: channels without a module, or NPS set for capacity?",
                source="16 channels of DDR4-3200",
            ),
        ),
        watch=(
            Watch(kind=Kind.LATENCY, seconds=60, steal_share=0.0, others_share=0.03,
                  frequency_drift=0.04, involuntary_switches=12, misplaced_threads=0,
                  misplaced_pages=0),
        ),
        left_out=(Notice(code="no-huge-pages", message="1 GiB pages: none are set aside"),),
    )  # fmt: skip


def sapphire_rapids(seed: int = 5) -> Profile:
    """One package of 56 cores whose four tiles show in bandwidth alone."""
    tiles = tuple(tuple(range(n * 14, (n + 1) * 14)) for n in range(4))
    tile = member(tiles, 56)
    bandwidth = np.where(np.equal.outer(tile, tile), 12.5, 11.0)
    return profile(
        "SPR-like, 56 cores, four tiles that show in bandwidth alone",
        56,
        core_latency_cas_ns=pair_matrix(noisy(np.full((56, 56), 59.0), 0.05, seed)),
        core_bandwidth_gbs=pair_matrix(noisy(bandwidth, 0.02, seed + 1)),
        inference=Inference(
            chiplets=tiles, packages=(), smt=(),
            levels=(Level(median=12.5, groups=tiles),
                    Level(median=11.0, groups=(tuple(range(56)),))),
            confidence=0.91, source="bandwidth", reasons=("latency is flat",),
        ),
    )  # fmt: skip


def graviton(cores: int = 64, seed: int = 7) -> Profile:
    """Flat: no islands, no packages, no SMT."""
    return profile(
        f"Graviton-like, {cores} cores, flat",
        cores,
        core_latency_cas_ns=pair_matrix(noisy(np.full((cores, cores), 46.0), 0.04, seed)),
        core_bandwidth_gbs=pair_matrix(noisy(np.full((cores, cores), 7.9), 0.04, seed + 1)),
        inference=Inference(
            chiplets=(), packages=(), smt=(),
            levels=(Level(median=46.0, groups=(tuple(range(cores)),)),),
            confidence=0.95, source="none", reasons=("one mode, 8 % wide",),
        ),
    )  # fmt: skip


def one_cpu() -> Profile:
    """One CPU in an emulator: nearly all is left out."""
    return profile(
        "one CPU", 1, mode=Mode.QUICK, emulated=True,
        caches=(CacheCurve(cpu=0, huge_pages=False, levels=(), memory_latency_ns=None, points=(
            CachePoint(working_set_bytes=16 * KIB, latency_ns=figure(3, 0.2, False),
                       bandwidth_gbs=None),)),),
        left_out=(
            Notice(code="one-cpu", message="core-to-core latency and bandwidth need two CPUs"),
            Notice(code="one-node", message="no second node: no node matrix"),
        ),
    )  # fmt: skip


# ---- Parts ----------------------------------------------------------------------------------


def node_matrix(
    nodes: tuple[int, ...], near_ns: float, far_ns: float, near_gbs: float, far_gbs: float
) -> NodeMatrix:
    def cells(near: float, far: float) -> tuple[tuple[Figure, ...], ...]:
        return tuple(
            tuple(figure(near if i == j else far, settled=(i, j) != (1, 0)) for j in nodes)
            for i in nodes
        )

    return NodeMatrix(
        cpu_nodes=nodes, memory_nodes=nodes, working_set_bytes=GIB, huge_pages=True,
        latency_ns=cells(near_ns, far_ns), bandwidth_gbs=cells(near_gbs, far_gbs),
    )  # fmt: skip


def loaded_curve(cpu_node: int, memory_node: int, idle_ns: float, peak_gbs: float) -> LoadedCurve:
    shares = (0.0, 0.1, 0.25, 0.4, 0.55, 0.7, 0.8, 0.9, 0.96, 1.0)
    points = tuple(
        LoadedPoint(
            bandwidth_gbs=share * peak_gbs,
            latency_ns=figure(idle_ns * (1 + 0.12 * share / (1.04 - share)), 0.02),
        )
        for share in shares
    )
    return LoadedCurve(cpu_node=cpu_node, memory_node=memory_node, loaders=47, points=points)


def cache_curve(levels: tuple[tuple[int, float], ...], memory_ns: float) -> CacheCurve:
    sizes = [2 ** (12 + n / 2) for n in range(2 * 18)]

    def latency(size: float) -> float:
        lower, value = 0.0, 0.0
        for capacity, level_ns in (*levels, (1 << 62, memory_ns)):
            beyond = 1.0 if lower == 0 else max(0.0, 1 - lower / size)
            value += (level_ns - value) * beyond if size > lower else 0.0
            lower = capacity * 0.9
        return value

    points = tuple(
        CachePoint(
            working_set_bytes=int(size),
            latency_ns=figure(latency(size), 0.02),
            bandwidth_gbs=figure(160 / latency(size) ** 0.6, 0.03),
        )
        for size in sizes
    )
    found = tuple(
        CacheLevel(level=n + 1, capacity_bytes=int(capacity * 0.9), latency_ns=ns,
                   sysfs_bytes=capacity if n < 2 else None)
        for n, (capacity, ns) in enumerate(levels)
    )  # fmt: skip
    return CacheCurve(
        cpu=0, huge_pages=True, points=points, levels=found, memory_latency_ns=memory_ns
    )


def stream_runs(
    threads: int,
    spreads: tuple[tuple[Any, int, float], ...],
    memory: float,
    caches: tuple[tuple[str, int, float], ...],
) -> tuple[StreamRun, ...]:
    runs = []
    for kernel in StreamKernel:
        for per, processes, share in spreads:
            for step in range(12):
                size = int(0.8e6 * 2**step)
                level, best = next(
                    ((name, memory * gain) for name, most, gain in caches if size < most * 0.8),
                    ("memory", memory),
                )
                start = size / (size + 3e6 * share)  # the barrier costs a small array dear
                bandwidth = best * (share if level != "memory" else 0.9 + share / 10) * start
                runs.append(
                    StreamRun(kernel=kernel, processes=processes, per=per, threads=threads,
                              working_set_bytes=size, level=level,
                              bandwidth_gbs=figure(bandwidth, 0.02, settled=step != 4))
                )  # fmt: skip
    return tuple(runs)


def sharing(
    operation: Any, local: tuple[int, ...], spread: tuple[int, ...], l3: int, factor: float
) -> Sharing:
    points = []
    for step in range(32):
        size = 2 ** (6 + step)
        near = 30 * factor * size / (size + 20_000)
        far = 24 * factor * size / (size + 60_000)
        if size > l3:
            near = 45
        if size > len(spread) * l3:
            far = 110
        points.append(
            SharingPoint(vector_bytes=size, local_gbs=figure(near, 0.03),
                         distributed_gbs=figure(far, 0.03))
        )  # fmt: skip
    return Sharing(
        operation=operation, threads=len(local), local_pus=local, distributed_pus=spread,
        points=tuple(points), crossing_bytes=l3,
    )  # fmt: skip


def churn_runs(names: tuple[str, ...], counts: tuple[int, ...]) -> tuple[ChurnRun, ...]:
    return tuple(
        ChurnRun(
            allocator=name, library="" if n == 0 else f"lib{name}.so.2", threads=threads,
            operations=1_000_000 * threads,
            seconds=figure(0.05 * (1 + (0.06 if n == 0 else 0.004 * n) * threads), 0.03),
            overhead=1.1 + 0.08 * n + threads / 400,
        )
        for n, name in enumerate(names)
        for threads in counts
    )  # fmt: skip


MADE = {
    "epyc": epyc(2, 4, 3),
    "sapphire rapids": sapphire_rapids(),
    "graviton": graviton(16),
    "one CPU": one_cpu(),
    "nothing": profile("nothing", 2),
}
