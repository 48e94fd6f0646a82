"""The kernels of `atoll measure` beside the programs that people measure with, and beside nothing.

- Latency of a pair by compare-and-swap beside core-to-core-latency: the interval of the difference
  of medians lies within 5 % of the peer's, or within the peer's own spread (half of what 95 % of
  its runs span), and a pair takes less time: whole processes, and ours measures it with the line
  homed on either side, the peer once. By loads and stores the peer passes two lines to and fro and
  we one, so these two stand beside each other without a bar.
- Bandwidth beside likwid-bench, for the same kind of store, the same bytes counted the same way,
  on the same CPUs and the same kind of pages: at least 98 % of its best run. Of both the kernel
  that is the fastest here is taken.
- Null runs: every kernel without its memory operation, which is what the kernel itself costs.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from atoll.errors import AtollError
from atoll.host.local import LocalHost
from atoll.host.topology import read_machine
from atoll.probing.probe import Probe, find_probe
from atoll.probing.requests import (
    A_co,
    Answer,
    Chase,
    ChaseAnswer,
    Churn,
    ChurnAnswer,
    Load,
    LoadAnswer,
    Move,
    MoveAnswer,
    MoveOp,
    PairOp,
    Ping,
    PingAnswer,
    Pipe,
    PipeAnswer,
    Request,
    Sampling,
    Spin,
    SpinAnswer,
    Vector,
    VectorAnswer,
)
from atoll.schema.machine import Machine
from perf import probe_peers as peers
from perf.harness import (
    WrongAnswer,
    at_least,
    at_most,
    difference,
    interleave,
    median,
    no_slower,
    note,
    ratio,
)

PAIR_ROUNDS = 200  # in a virtual machine the latency of a pair wanders by a quarter
PAIR_BUDGET_S = 0.003  # what `atoll measure` gives a pair and home
PAIR_TARGET_PERCENT = 5.0
MOVE_ROUNDS = 10
MOVE_S = 0.2  # a run
MOVE_TRIES = 3  # of every kernel, to see which is the fastest; the best of them counts
MOVE_TARGET_PERCENT = 98.0
NULL_BUDGET_S = 0.05
NULL_BYTES = 1 << 20
NULL_OPERATIONS = 100_000
TIMEOUT_S = 60.0
# As `atoll measure`: until the interval is under 2 %.
SETTLING = Sampling(settle=0.02, samples=4096)
FOR_ALL_ITS_TIME = Sampling(settle=0.0, samples=1_000_000)

Level = Literal["L1", "L2", "L3", "memory"]
Operation = Literal["read", "write", "copy", "triad"]
Stores = Literal["temporal", "streaming"]
SIDES: tuple[Literal[0, 1], ...] = (0, 1)
OPERATIONS: tuple[MoveOp, ...] = ("read", "write", "copy", "scale", "add", "triad")
WAYS: tuple[Literal["write", "read"], ...] = ("write", "read")
# likwid-bench's triad has four arrays, its stream is STREAM's triad.
_PEERS_NAME: dict[Operation, str] = {
    "read": "load",
    "write": "store",
    "copy": "copy",
    "triad": "stream",
}


@dataclass(frozen=True, slots=True)
class Case:
    operation: Operation
    store: Stores
    level: Level
    threads: int
    bytes: int  # all arrays of all threads

    @property
    def name(self) -> str:
        return f"{self.operation}-{self.store}-{self.level.lower()}-{self.threads}t"

    def kernels(self, known: frozenset[str], isa: str) -> list[str]:
        """The peer's kernels that do this with our instructions or narrower ones."""
        stem = _PEERS_NAME[self.operation] + ("_mem" if self.store == "streaming" else "")
        suffixes = ["_sse"] if isa in ("sse2", "avx2", "avx512") else [""]
        suffixes += ["_avx", "_avx_fma"] if isa in ("avx2", "avx512") else []
        suffixes += ["_avx512", "_avx512_fma"] if isa == "avx512" else []
        return [stem + suffix for suffix in suffixes if stem + suffix in known]


def compare() -> None:
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        raise WrongAnswer("one CPU only: there is no pair to measure")
    pair = (cpus[0], cpus[1])
    try:
        machine, program = read_machine(), find_probe()
        _compare_latency(program, machine, pair, "cas")
        _compare_latency(program, machine, pair, "store")
        with Probe(LocalHost(), program) as probe:
            _say_null_runs(probe, pair)
            _compare_bandwidth(probe, machine)
    except AtollError as fault:
        raise WrongAnswer(str(fault)) from None


# ---- latency -------------------------------------------------------------------------------------


def _compare_latency(program: str, machine: Machine, pair: tuple[int, int], op: PairOp) -> None:
    peer = peers.core_to_core()
    # Its line is on its main thread's stack.
    home = next(core.node for core in machine.cores if pair[0] in core.pus)
    took_s: dict[str, list[float]] = {"ours": [], "peer": []}

    def ours() -> float:
        begin = time.perf_counter()
        with Probe(LocalHost(), program) as probe:
            first, _ = (
                _asked(
                    probe, Ping(cpus=pair, home=side, op=op, budget_s=PAIR_BUDGET_S), SETTLING
                ).one_way_ns
                for side in SIDES
            )
        took_s["ours"].append(time.perf_counter() - begin)
        return statistics.median(first)

    def theirs() -> float:
        begin = time.perf_counter()
        found = peers.pair_latency_ns(peer, pair, op, home if len(machine.nodes) > 1 else None)
        took_s["peer"].append(time.perf_counter() - begin)
        return found

    found = interleave({"ours": ours, "peer": theirs}, rounds=PAIR_ROUNDS)
    seconds = {name: np.array(taken[-PAIR_ROUNDS:]) for name, taken in took_s.items()}
    low, high = np.quantile(found["peer"], [0.025, 0.975])
    peer_ns, spread_ns = float(np.median(found["peer"])), float(high - low) / 2
    off = difference(found["ours"], found["peer"])
    for name, program_name in (("ours", "atoll-probe"), ("peer", peers.CRATE)):
        note(
            f"{op} {pair[0]}-{pair[1]}: {program_name} {median(found[name])} ns one way, "
            f"in {median(seconds[name]).scaled(1e3)} ms"
        )
    note(f"{op} {pair[0]}-{pair[1]}: ours less the peer's {off} ns, its spread {spread_ns:.3g} ns")
    if op == "cas":
        at_most(
            "probe-latency-cas-off-percent",
            100 * max(abs(off.low), abs(off.high)) / peer_ns,
            max(PAIR_TARGET_PERCENT, 100 * spread_ns / peer_ns),
        )
    no_slower(f"probe-latency-{op}-time-ratio", ratio(seconds["ours"], seconds["peer"]))


# ---- bandwidth -----------------------------------------------------------------------------------


def _compare_bandwidth(probe: Probe, machine: Machine) -> None:
    peer = peers.likwid_bench()
    known = peers.kernels_of(peer)
    order = peers.cpus_in_order(peer)
    for case in cases(_cache_bytes(machine, order[0]), min(2, len(order))):
        _compare_move(probe, peer, known, case, order[: case.threads])


def _cache_bytes(machine: Machine, cpu: int) -> dict[Level, int]:
    found: dict[Level, int] = {}
    names: dict[int, Level] = {1: "L1", 2: "L2", 3: "L3"}
    for cache in machine.caches:
        if cpu in cache.pus and cache.kind != "instruction" and cache.level in names:
            found[names[cache.level]] = cache.size_bytes
    if len(found) < len(names):
        raise WrongAnswer("the system does not show three levels of cache to choose sizes by")
    return found


def _pages_are_huge() -> bool:
    """Whether the peer gets huge pages: it does not ask for them."""
    switch = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    return switch.is_file() and "[always]" in switch.read_text()


def cases(caches: dict[Level, int], most: int) -> list[Case]:
    """Half of L1 and of L2, eight L2s in the L3, four L3s in memory; streaming stores in memory,
    where they are of use."""
    sizes: dict[Level, int] = {
        "L1": caches["L1"] // 2,
        "L2": caches["L2"] // 2,
        "L3": min(8 * caches["L2"], caches["L3"] // 2),
    }
    made = []
    for threads in sorted({1, most}):
        for operation in _PEERS_NAME:
            for level, size in sizes.items():
                made.append(Case(operation, "temporal", level, threads, size * threads))
            in_memory = 4 * caches["L3"]
            made.append(Case(operation, "temporal", "memory", threads, in_memory))
            if operation != "read":
                made.append(Case(operation, "streaming", "memory", threads, in_memory))
    return made


def _compare_move(
    probe: Probe, peer: peers.Peer, known: frozenset[str], case: Case, cpus: Sequence[int]
) -> None:
    widest = Move(
        cpus=tuple(cpus),
        node=None,
        bytes=case.bytes,
        op=case.operation,
        store=case.store,
        huge=_pages_are_huge(),
        budget_s=MOVE_S,
    )

    def ours(isa: str) -> float:
        answer = _asked(probe, replace(widest, isa=isa), FOR_ALL_ITS_TIME)
        if not answer.verified:
            raise WrongAnswer(f"{case.name}: what was written is not what was to be written")
        return statistics.median(answer.gbs)

    # The widest is not always the fastest: non-temporal stores of whole lines can be slower, and
    # copies that do not fit into L1.
    own_tries = {isa: max(ours(isa) for _ in range(MOVE_TRIES)) for isa in _isas(probe.hello.isa)}
    isa = max(own_tries, key=lambda name: own_tries[name])
    iterations = max(4, round(own_tries[isa] * 1e9 * MOVE_S / case.bytes))

    def theirs(kernel: str) -> float:
        return peers.move(peer, kernel, case.bytes, tuple(cpus), iterations).gbs

    tried = {
        kernel: max(theirs(kernel) for _ in range(MOVE_TRIES))
        for kernel in case.kernels(known, probe.hello.isa)
    }
    kernel = max(tried, key=lambda name: tried[name])
    found = interleave(
        {"ours": lambda: ours(isa), "peer": lambda: theirs(kernel)}, rounds=MOVE_ROUNDS, warmup=1
    )
    note(
        f"{case.name}, {case.bytes} B: {isa} {median(found['ours'])} GB/s, likwid-bench {kernel} "
        f"{median(found['peer'])} GB/s, of medians {ratio(found['ours'], found['peer'])}"
    )
    at_least(
        f"probe-{case.name}-percent-of-best",
        100 * float(found["ours"].max() / found["peer"].max()),
        MOVE_TARGET_PERCENT,
    )


def _isas(widest: str) -> tuple[str, ...]:
    ladder = ("sse2", "avx2", "avx512")
    return ladder[: ladder.index(widest) + 1] if widest in ladder else (widest,)


# ---- null runs -----------------------------------------------------------------------------------


def _say_null_runs(probe: Probe, pair: tuple[int, int]) -> None:
    """In ns of what each counts: a one-way trip, a load, a cache line of 64 B, an operation."""
    cpu, other = pair
    requests: dict[str, Request[Answer]] = {
        "ping cas": Ping(cpus=pair, home=0, op="cas", budget_s=NULL_BUDGET_S),
        "ping store": Ping(cpus=pair, home=0, op="store", budget_s=NULL_BUDGET_S),
        "pipe": Pipe(cpus=pair, home=0, bytes=NULL_BYTES, budget_s=NULL_BUDGET_S),
        "chase": Chase(cpu=cpu, node=None, bytes=NULL_BYTES, huge=False, budget_s=NULL_BUDGET_S),
        "load": Load(
            cpu=cpu, node=None, bytes=NULL_BYTES, loaders=(other,), gap=0, budget_s=NULL_BUDGET_S
        ),
    }
    for op in OPERATIONS:
        requests[f"move {op}"] = Move(
            cpus=(cpu,), node=None, bytes=NULL_BYTES, op=op, budget_s=NULL_BUDGET_S
        )
    for way in WAYS:
        requests[f"vector {way}"] = Vector(
            cpus=pair, bytes=NULL_BYTES, op=way, iterations=1000, budget_s=NULL_BUDGET_S
        )
    requests["spin"] = Spin(cpus=pair, budget_s=NULL_BUDGET_S)
    requests["churn"] = Churn(cpus=pair, operations=NULL_OPERATIONS, budget_s=NULL_BUDGET_S)
    for name, request in requests.items():
        whole_ns = _ns(_asked(probe, request, SETTLING))
        own_ns = _ns(_asked(probe, replace(request, null=True), SETTLING))
        note(f"null {name}: {own_ns:.3g} of {whole_ns:.3g} ns ({own_ns / whole_ns:.1%})")


def _ns(answer: Answer) -> float:
    match answer:
        case PingAnswer():
            return statistics.median(answer.one_way_ns)
        case ChaseAnswer() | LoadAnswer():
            return statistics.median(answer.load_ns)
        case PipeAnswer() | MoveAnswer() | VectorAnswer():
            return 64 / statistics.median(answer.gbs)
        case SpinAnswer():
            return statistics.median(answer.op_ns[0])
        case ChurnAnswer():
            return statistics.median(answer.wall_ns_samples) / NULL_OPERATIONS
    raise AssertionError(f"{type(answer).__name__} has no figure")


def _asked(probe: Probe, request: Request[A_co], sampling: Sampling) -> A_co:
    """The answer of kernels that ran where they were to run."""
    answer = probe.ask(request, sampling, most_s=request.budget_s, timeout_s=TIMEOUT_S)
    if answer.misplaced_threads or not answer.threads:
        raise WrongAnswer(f"{request.do}: it ran on other CPUs than asked for: {answer.threads}")
    return answer
