"""Measures STREAM by one process, by one per node, chiplet or core, and by n processes.

Follows olap-on-chiplets 2.5: copy, scale, add and triad over 0.8 MB to 1.5 GB in total, divided
among processes that start together. That paper's 7,297 GB/s comes from caches, so every figure here
comes with its working set and the level that each thread's share of it sits in
(atoll.probing.working_set). Bytes are counted as STREAM does, without write-allocate.
If two divisions of the machine coincide (one node, one chiplet per node), only one is measured.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from atoll.errors import ProbeMissing
from atoll.probing.errors import ProbeFault
from atoll.probing.places import CpuGroup, chiplet_groups, core_cpus, node_groups
from atoll.probing.probe import Probe
from atoll.probing.requests import Move, MoveAnswer
from atoll.probing.run import Run
from atoll.probing.working_set import Reach, reaches, sits_in
from atoll.schema.profile import CacheCurve, Figure, Mode, StreamKernel, StreamRun
from atoll.schema.size import gib, percent
from atoll.schema.text import plural

Per = Literal["machine", "node", "chiplet", "core", "n"]

KERNELS = {
    Mode.QUICK: (StreamKernel.TRIAD, StreamKernel.COPY),
    Mode.FULL: (StreamKernel.TRIAD, StreamKernel.COPY, StreamKernel.SCALE, StreamKernel.ADD),
}
# Bytes of all arrays of all processes; the paper's range.
SIZES = {
    Mode.QUICK: (800_000, 24_000_000, 192_000_000, 1_500_000_000),
    Mode.FULL: (
        800_000,
        3_000_000,
        8_000_000,
        24_000_000,
        48_000_000,
        96_000_000,
        192_000_000,
        384_000_000,
        768_000_000,
        1_500_000_000,
    ),
}
_ARRAYS = 3
# `move` needs at least one line of each array per thread.
_LEAST_THREAD_BYTES = _ARRAYS * 64
_PAGE_BYTES = 4096
_SAMPLING_SHARE = 0.5
_MOST_S = 0.4
_LEAST_S = 0.002
# The estimated cost of a figure besides its sampling on an idle machine: for each byte of a
# thread, first touch page by page, then the warm-up passes and at least three samples.
_BEGIN_S = 0.03
_TOUCH_NS_PER_BYTE = 1.0
_PASSES_NS_PER_BYTE = 2.0
_SLICES = 12
# Processes that ran simultaneously for less of their time did not quite run together; below the
# second limit, they did not run together at all.
_LEAST_COMMON = 0.8
_LEAST_COMMON_AT_ALL = 0.5


class Pace:
    """The duration of figures, learnt from earlier ones: a busy machine takes many times as
    long."""

    def __init__(self) -> None:
        self._slowness = 1.0

    def lead_s(self, thread_bytes: float) -> float:
        """The time until all processes have touched their memory and warmed up."""
        return (_BEGIN_S + thread_bytes * _TOUCH_NS_PER_BYTE / 1e9) * self._slowness

    def seconds(self, thread_bytes: float, sampling_s: float) -> float:
        return self._guess_s(thread_bytes) * self._slowness + sampling_s

    def took(self, thread_bytes: float, sampling_s: float, seconds: float) -> None:
        """Records a duration. The worst counts: overrunning costs more than skipping a figure."""
        beside_s = seconds - sampling_s
        self._slowness = max(self._slowness, beside_s / self._guess_s(thread_bytes))

    def _guess_s(self, thread_bytes: float) -> float:
        return _BEGIN_S + thread_bytes * (_TOUCH_NS_PER_BYTE + _PASSES_NS_PER_BYTE) / 1e9


@dataclass(frozen=True, slots=True)
class Division:
    """A division of the machine's cores among processes."""

    per: Per
    processes: tuple[CpuGroup, ...]

    @property
    def threads(self) -> int:
        return sum(map(len, self.processes))

    @property
    def title(self) -> str:
        by = "" if self.per == "n" else f" (one per {self.per})"
        return f"{plural(len(self.processes), 'process')}{by}"


def measure_stream(run: Run, curves: Sequence[CacheCurve] = ()) -> tuple[StreamRun, ...]:
    """`curves` locate a working set, if the cache curve was measured before."""
    pace = Pace()
    reach = reaches(run.machine, core_cpus(run), curves)
    ways = divisions(run)
    runs: list[StreamRun] = []
    for place, division in enumerate(ways):
        if run.out_of_time(f"STREAM by {division.title}"):
            continue
        ends_s = run.elapsed_s() + run.seconds_left() / (len(ways) - place)
        try:
            with ExitStack() as stack:
                probes = [
                    stack.enter_context(run.another_probe()) for _ in range(len(division.processes))
                ]
                runs += _by(run, division, probes, reach, pace, ends_s, (place, len(ways)))
        except ProbeMissing as fault:
            run.leave_out("processes", f"STREAM by {division.title}: {fault}")
    return tuple(runs)


# ---- choosing what to measure: pure except for the run's state --------------------------------


def divisions(run: Run) -> list[Division]:
    """The divisions, each once; reports those that coincide."""
    cores = core_cpus(run)
    wanted = [
        Division("machine", (cores,)),
        Division("node", tuple(node_groups(run).values())),
        Division("chiplet", chiplet_groups(run)),
        Division("core", tuple((cpu,) for cpu in cores)),
    ]
    if run.mode is Mode.FULL:
        powers = (1 << power for power in range(1, len(cores).bit_length()))
        wanted += [Division("n", parts(cores, count)) for count in powers if count <= len(cores)]
    kept: dict[frozenset[CpuGroup], Division] = {}
    for division in wanted:
        if not division.processes:
            run.leave_out(f"no-{division.per}s", f"STREAM: no {division.per}s are known")
            continue
        before = kept.setdefault(frozenset(division.processes), division)
        if before is not division and division.per != "n":
            run.leave_out(
                "same-division",
                f"STREAM: one process per {division.per} equals one per {before.per} here; "
                "measured once",
            )
    return list(kept.values())


def parts(cores: CpuGroup, count: int) -> tuple[CpuGroup, ...]:
    """Neighbouring cores together, in parts as equal as possible."""
    bounds = [len(cores) * index // count for index in range(count + 1)]
    return tuple(cores[begin:end] for begin, end in pairwise(bounds))


def working_sets(run: Run, division: Division) -> list[int]:
    """The mode's sizes that fit the memory and give each thread a line of each array."""
    free = run.free_bytes()
    fit = [size for size in SIZES[run.mode] if size <= free]
    for size in SIZES[run.mode][len(fit) :]:
        run.leave_out("memory", f"STREAM over {gib(size)}: only {gib(free)} of memory may be used")
    least = _LEAST_THREAD_BYTES * division.threads
    return [size for size in fit if size >= least]


def shares(division: Division, size: int) -> list[int]:
    """Bytes per process, in proportion to its threads."""
    return [size * len(cpus) // division.threads for cpus in division.processes]


# ---- measuring --------------------------------------------------------------------------------


def _by(
    run: Run,
    division: Division,
    probes: Sequence[Probe],
    reach: dict[int, Reach],
    pace: Pace,
    ends_s: float,
    turn: tuple[int, int],
) -> Iterator[StreamRun]:
    sizes = working_sets(run, division)
    # By rising size, so that the pace is known before a size that may take too long.
    todo = [(kernel, size) for size in sizes for kernel in KERNELS[run.mode]]
    for number, (kernel, size) in enumerate(todo):
        left_s = ends_s - run.elapsed_s()
        if left_s <= 0:
            missing = len(todo) - number
            run.cut_short(f"STREAM by {division.title}", missing, len(todo), "figures")
            return
        what = f"STREAM {kernel} over {gib(size)} by {division.title}"
        run.report((turn[0] + number / len(todo)) / turn[1], what)
        each_s = max(_LEAST_S, min(_MOST_S, _SAMPLING_SHARE * left_s / (len(todo) - number)))
        thread_bytes = size / division.threads
        if pace.seconds(thread_bytes, each_s) > left_s:
            run.leave_out(
                "no-time", f"{what}: would take longer than the {left_s:.1f} s that are left"
            )
            continue
        begin_s = run.elapsed_s()
        requests = [
            Move(cpus=cpus, node=None, bytes=share, op=kernel.value, budget_s=each_s)
            for cpus, share in zip(division.processes, shares(division, size), strict=True)
        ]
        try:
            bandwidth = (
                _alone(run, probes[0], requests[0], what)
                if len(requests) == 1
                else _together(run, probes, requests, pace, what)
            )
        except ProbeFault as fault:
            run.leave_out(fault.code, f"{what}: {fault}")
            if not all(probe.usable for probe in probes):
                return
            continue
        pace.took(thread_bytes, each_s, run.elapsed_s() - begin_s)
        if bandwidth is not None:
            yield StreamRun(
                kernel=kernel,
                processes=len(division.processes),
                per=division.per,
                threads=division.threads,
                working_set_bytes=size,
                level=sits_in(reach, division.processes, thread_bytes),
                bandwidth_gbs=bandwidth,
            )


def _alone(run: Run, probe: Probe, request: Move, what: str) -> Figure | None:
    answer = run.ask(request, probe=probe)
    return run.figure(answer.gbs, answer) if _verified(run, [answer], what) else None


def _together(
    run: Run, probes: Sequence[Probe], requests: Sequence[Move], pace: Pace, what: str
) -> Figure | None:
    thread_bytes = max(request.bytes / len(request.cpus) for request in requests)
    # Several passes, so that no process runs alone for long at the end.
    run_s = max(requests[0].budget_s, thread_bytes * _PASSES_NS_PER_BYTE / 1e9)
    start_ns = int((run.host.monotonic() + pace.lead_s(thread_bytes)) * 1e9)
    timed = [
        Move(
            cpus=request.cpus,
            node=None,
            bytes=request.bytes,
            op=request.op,
            start_ns=start_ns,
            run_ns=int(run_s * 1e9),
            budget_s=run_s,
        )
        for request in requests
    ]
    answers = run.together(list(zip(probes, timed, strict=True)))
    if not _verified(run, answers, what):
        return None
    common = common_share(answers)
    if common < _LEAST_COMMON_AT_ALL:
        run.leave_out(
            "not-together",
            f"{what}: its processes ran simultaneously for only {percent(common)} of their "
            "time: no figure",
        )
        return None
    if common < _LEAST_COMMON:
        run.notice(
            "not-together",
            f"{what}: its processes ran simultaneously for only {percent(common)} of their time; "
            "the figure is not settled",
        )
    measured = run.figure(summed_samples(answers), *answers)
    total = moved_gbs(answers)
    # The figure is the bytes moved over the time; the slices show how even it was.
    inside = measured.low <= total <= measured.high
    return Figure(
        value=total,
        low=min(total, measured.low),
        high=max(total, measured.high),
        samples=measured.samples,
        settled=measured.settled and inside and common >= _LEAST_COMMON,
    )


def _verified(run: Run, answers: Sequence[MoveAnswer], what: str) -> bool:
    if all(answer.verified for answer in answers):
        return True
    run.leave_out("unverified", f"{what}: an element differs from the value that the kernel gives")
    return False


# ---- combining several processes: pure ---------------------------------------------------------


def common_share(answers: Sequence[MoveAnswer]) -> float:
    """The part of the longest run in which all processes ran."""
    common = min(answer.end_ns for answer in answers) - max(answer.begin_ns for answer in answers)
    longest = max(answer.end_ns - answer.begin_ns for answer in answers)
    return max(0.0, common / longest) if longest > 0 else 0.0


def moved_gbs(answers: Sequence[MoveAnswer]) -> float:
    """The sum of what each moved in its own time; over the common window that is the total."""
    return sum(answer.moved_bytes / max(1, answer.end_ns - answer.begin_ns) for answer in answers)


def summed_samples(answers: Sequence[MoveAnswer]) -> list[float]:
    """The sum over the processes in each slice of time. Samples of one process follow each other,
    so equal parts of the samples are about equal parts of the time."""
    slices = min(_SLICES, *(len(answer.gbs) for answer in answers))
    sums = [0.0] * slices
    for answer in answers:
        count = len(answer.gbs)
        for index in range(slices):
            part = answer.gbs[count * index // slices : count * (index + 1) // slices]
            sums[index] += statistics.harmonic_mean(part)  # equal bytes in unequal times
    return sums
