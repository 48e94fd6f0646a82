"""Measures what each malloc costs in time and memory, by threads (numa-query-tuning III-A8).

A process has one malloc, so each malloc is preloaded into its own atoll-probe, which allocates,
writes, hands over and frees. A malloc keeps freed memory, so each number of threads gets a fresh
process. Before a figure counts, the probe reports which file its malloc is in; a preload without
effect is reported and not counted. Overhead is peak resident over peak requested memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from atoll.errors import ProbeMissing
from atoll.probing.allocators import Malloc, loadable_mallocs
from atoll.probing.places import CpuGroup, core_cpus
from atoll.probing.requests import Churn, ChurnAnswer
from atoll.probing.run import Run
from atoll.schema.profile import ChurnRun, Figure, Mode
from atoll.schema.text import plural

# Per thread; takes a tenth of a second with a slow malloc.
OPERATIONS = {Mode.QUICK: 200_000, Mode.FULL: 1_000_000}
_OPERATIONS_EMULATED = 2_000
# The first run of a request is not timed.
_SAMPLING_SHARE = 0.6
_MOST_S = 1.0


def measure_churn(run: Run, *, launcher: str | None = None) -> tuple[ChurnRun, ...]:
    """Every malloc by every number of threads. `launcher`: a given path of atoll-exec."""
    try:
        mallocs = loadable_mallocs(run.host, launcher)
    except OSError as fault:
        run.leave_out("no-launcher", f"churn: cannot list the mallocs that can be loaded: {fault}")
        return ()
    if len(mallocs) == 1:
        run.leave_out(
            "system-malloc-only",
            "churn: no other malloc is installed for comparison; 'atoll-exec --help' lists those "
            "that it can load",
        )
    cores = core_cpus(run)
    teams = [cores[:count] for count in thread_counts(len(cores), run.mode)]
    runs: list[ChurnRun] = []
    for place, malloc in enumerate(mallocs):
        if run.out_of_time(f"{malloc.name}"):
            continue
        env = {"LD_PRELOAD": malloc.library} if malloc.library else {}
        try:
            runs += _of_one(run, env, malloc, teams, place, len(mallocs))
        except ProbeMissing as fault:
            reason = str(fault).removesuffix("; reinstall atoll")
            run.leave_out("malloc", f"churn: {malloc.name} cannot be preloaded: {reason}")
    return tuple(runs)


def thread_counts(cores: int, mode: Mode) -> list[int]:
    """1 and all; in full mode also the powers of two in between."""
    if mode is Mode.QUICK:
        return sorted({1, cores})
    return sorted({cores, *(1 << power for power in range(cores.bit_length()))})


def is_reached(malloc: Malloc, reached: str) -> bool:
    """Whether the probe calls the malloc that it should call."""
    if malloc.library:
        return reached == malloc.library
    # glibc's libc.so.6, musl's ld-musl-x86_64.so.1
    return reached.rpartition("/")[2].startswith(("libc.", "libc-", "ld-musl"))


def _of_one(
    run: Run,
    env: Mapping[str, str],
    malloc: Malloc,
    teams: Sequence[CpuGroup],
    place: int,
    mallocs: int,
) -> list[ChurnRun]:
    """Raises ProbeMissing."""
    operations = _OPERATIONS_EMULATED if run.emulated else OPERATIONS[run.mode]
    ends_s = run.elapsed_s() + run.seconds_left() / (mallocs - place)
    runs = []
    for number, cpus in enumerate(teams):
        what = f"churn of {malloc.name} by {plural(len(cpus), 'thread')}"
        left_s = ends_s - run.elapsed_s()
        if left_s <= 0:
            run.leave_out("no-time", f"{what}: no time left")
            break
        run.report((place + number / len(teams)) / mallocs, what)
        request = Churn(
            cpus=cpus,
            operations=operations,
            budget_s=min(_MOST_S, _SAMPLING_SHARE * left_s / (len(teams) - number)),
        )
        with run.another_probe(env) as probe:
            answer = run.attempt(request, what, probe=probe)
            if not probe.usable:
                break
        if answer is None:
            continue
        if not is_reached(malloc, answer.allocator_reached):
            wanted = malloc.library or "the C library's"
            run.leave_out(
                "preload-failed",
                f"churn: {malloc.name} is not counted: the probe's malloc is in "
                f"{answer.allocator_reached or 'no file'}, not in {wanted}; see /etc/ld.so.preload",
            )
            break
        if answer.requested_bytes <= 0:
            run.leave_out("no-figure", f"{what}: the probe requested no memory")
            continue
        runs.append(_churn_run(run, malloc, cpus, operations, answer))
    return runs


def _churn_run(
    run: Run, malloc: Malloc, cpus: CpuGroup, operations: int, answer: ChurnAnswer
) -> ChurnRun:
    seconds: Figure = run.figure([ns / 1e9 for ns in answer.wall_ns_samples], answer)
    return ChurnRun(
        allocator=malloc.name,
        library=malloc.library,
        threads=len(cpus),
        operations=operations * len(cpus),
        seconds=seconds,
        overhead=answer.resident_bytes / answer.requested_bytes,
    )
