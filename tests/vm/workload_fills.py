"""The table of docs/simulated.md, Tab. 1 of ARCAS: its workloads under four approaches.

    python -m tests.vm.workload_fills [WORKLOAD ...]

All run in one guest with simulated caches (atoll-kernels, docs/workloads.md). Counts are of the
last timed run: an approach had the one before to settle in.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from atoll.guest import topology
from atoll.guest.guest import Guest
from atoll.guest.native import built
from atoll.schema.base import parse
from atoll.schema.kernel import KernelResult

MACHINE = Path(__file__).parent / "small_caches.toml"
QUANTUM_CYCLES = 10_000
TIMEOUT_S = 600.0
RUN = ("--workers", "8", "--interval-ms", "1", "--runs", "2")
GRAPH = ("--scale", "16")  # 8 MiB of neighbours, as much as the L3s of a node
WORKLOADS: Mapping[str, Sequence[str]] = {
    "bfs": GRAPH,
    "pr": GRAPH,
    "cc": GRAPH,
    "sssp": GRAPH,
    "graph500": GRAPH,
    "tc": ("--scale", "13"),
    "gups": ("--table-mib", "16"),
    "streamcluster": ("--points", "4096", "--chunk", "4096"),  # 2 MiB
    "sgd": ("--samples", "2048", "--features", "1024", "--epochs", "2"),  # 8 MiB
}
# SCHEDULER_TIMER, for which the paper prints no value, is as short as the runs here want it.
APPROACHES = ("static-local", "static-distributed", "adaptive", "arcas-2025-printed:300:2")
SOURCES = ("local_chiplet", "remote_chiplet", "remote_node", "memory_local", "memory_remote")
HEADINGS = ("own L3", "other chiplets", "other nodes", "local memory", "remote memory")
LAST = "other nodes, of caches"  # the share that Tab. 1 shows


def run(guest: Guest, workload: str, arguments: Sequence[str], approach: str) -> KernelResult:
    program = built("atoll-kernels", "native/workloads/atoll-kernels")
    argv = [program, workload, *arguments, *RUN, "--approach", approach]
    done = guest.run(argv, timeout_s=TIMEOUT_S)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(argv)}: {done.stderr}")
    return parse(KernelResult, done.stdout, where="atoll-kernels")


def row(found: KernelResult) -> str:
    assert found.fills is not None and found.fills.source == "simulated"
    lines = [found.fills.runs[-1][source] or 0 for source in SOURCES]
    shares = [f"{100 * each / sum(lines):.1f} %" for each in lines]
    shares.append(f"{100 * lines[2] / sum(lines[:3]):.1f} %")
    words = [found.workload, f"`{found.approach}`", str(found.fills.chiplets)]
    return f"| {' | '.join([*words, f'{sum(lines) / 1e6:.2f}', *shares])} |"


def main(wanted: Sequence[str]) -> None:
    columns = ["*simulated*", "approach", "chiplets", "million lines", *HEADINGS, LAST]
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}", flush=True)
    with Guest(topology.load(str(MACHINE)), quantum=QUANTUM_CYCLES) as guest:
        for workload in wanted or WORKLOADS:
            for approach in APPROACHES:
                print(row(run(guest, workload, WORKLOADS[workload], approach)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
