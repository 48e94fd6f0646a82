"""Finds threads that may run on the wrong CPUs and their most likely cause. Pure.

A mask shows where a thread may run, not who set it. The rules infer the cause from the mask
itself, from the masks of the other threads, and from the mapped libraries and the environment.
Where two causes look alike, the finding names both.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from atoll.inspect.clues import Clues
from atoll.inspect.expectation import Expectation, is_team
from atoll.inspect.rule_context import RuleContext
from atoll.schema.cpulist import format_cpulist, parse_cpulist
from atoll.schema.inspection import Finding, Severity, ThreadLook

_AGAIN = "restart the process in its place, or move all its threads: taskset -a -c -p {cpus} {pid}"
_THREAD = "move the thread back: taskset -c -p {cpus} {tid}"
# Threads that Atoll binds a moment after they start, so that these may be about to go.
PASSING = ("thread-narrower", "thread-unplaced")


def is_outside(thread: ThreadLook, expectation: Expectation) -> bool:
    return not cpus_of(thread) <= expectation.cpus


def thread_findings(threads: Sequence[ThreadLook], context: RuleContext) -> list[Finding]:
    """thread-outside, thread-unplaced, thread-narrower and cpuset-differs."""
    findings = []
    expectation = context.expectation
    may_be_narrower = expectation.seats_threads or (expectation.planned and not expectation.exact)
    for thread in threads:
        if is_outside(thread, expectation):
            findings.append(_outside(thread, threads, context))
        elif thread.tid in expectation.task_cpus:
            findings += _unplaced(thread, context)
        elif cpus_of(thread) < expectation.cpus and not may_be_narrower:
            findings.append(_narrower(thread, threads, context))
        findings += _cpuset(thread, threads, context)
    return findings


@cache
def _cpus(cpulist: str) -> frozenset[int]:
    return frozenset(parse_cpulist(cpulist))


def cpus_of(thread: ThreadLook) -> frozenset[int]:
    return _cpus(thread.cpus)


def _outside(thread: ThreadLook, threads: Sequence[ThreadLook], context: RuleContext) -> Finding:
    cause, remedy = _why_outside(thread, threads, context)
    place = format_cpulist(context.expectation.cpus)
    return context.finding(
        "thread-outside",
        Severity.DRIFT,
        thread=thread,
        expected=f"CPUs {place}",
        found=f"CPUs {thread.cpus}",
        cause=cause,
        remedy=remedy.format(cpus=place, pid=context.pid, tid=thread.tid),
    )


def _why_outside(
    thread: ThreadLook, threads: Sequence[ThreadLook], context: RuleContext
) -> tuple[str, str]:
    clues, place, found = context.clues, context.expectation.cpus, cpus_of(thread)
    if clues.pinning and len(found) == 1 and not thread.comm.startswith("atoll-"):
        return clues.pinning.cause, clues.pinning.remedy
    if thread.comm.startswith(("iou-wrk-", "iou-sqp-")):
        return (
            "io_uring workers follow the cpuset, not the mask of the thread that they work for",
            "confine the process with a cgroup cpuset, or set the workers' mask with "
            "IORING_REGISTER_IOWQ_AFF",
        )
    if gone := place - context.machine.online:
        return (
            f"CPUs {format_cpulist(gone)} went offline; the kernel moved threads that could "
            "run on no other CPU",
            "bring the CPUs online, or make a new plan and restart",
        )
    if clues.cpuset is not None and not place <= clues.cpuset:
        return (
            f"its cgroup {clues.cpuset_name} allows only CPUs {format_cpulist(clues.cpuset)}; a "
            "change of cpuset.cpus resets the masks",
            "widen cpuset.cpus and restart, or plan inside the cgroup",
        )
    if clues.openmp and len(found) < len(context.machine.online):
        return (
            f"the OpenMP runtime binds its threads ({clues.openmp})",
            f"unset {clues.openmp.partition('=')[0]}, or name places inside the mask",
        )
    if all(cpus_of(other) == found for other in threads):
        return (
            "the whole process was moved after its start (taskset -a, a change of its cpuset), or "
            "set its own mask at start",
            _AGAIN,
        )
    return _one_of_several(thread, threads, context)


def _one_of_several(
    thread: ThreadLook, threads: Sequence[ThreadLook], context: RuleContext
) -> tuple[str, str]:
    found, main = cpus_of(thread), next((one for one in threads if one.tid == context.pid), None)
    alone = main is not None and all(
        found == cpus_of(other) for other in threads if other is not main
    )
    if main is not None and thread is not main and alone and cpus_of(main) < found:
        return (
            "only the main thread was moved (taskset -p without -a) or pinned itself, after it had "
            "made the other threads; or they widened their masks themselves",
            "move all threads: taskset -a -c -p {cpus} {pid}",
        )
    if clues_of_kin := sum(cpus_of(other) == found for other in threads) - 1:
        return (
            f"it and {clues_of_kin} more set their own masks (sched_setaffinity), or were made by "
            "a thread that had; or another program moved them (taskset -p)",
            "turn off the program's own pinning, or " + _THREAD,
        )
    return (
        "the thread set its own mask (sched_setaffinity, pthread_setaffinity_np), or another "
        "program moved it (taskset -p)",
        "turn off the program's own pinning, or " + _THREAD,
    )


def _narrower(thread: ThreadLook, threads: Sequence[ThreadLook], context: RuleContext) -> Finding:
    expectation, place = context.expectation, format_cpulist(context.expectation.cpus)
    cause, remedy = (
        "the thread or its creator set a narrower mask (sched_setaffinity, taskset -p)",
        "turn off the program's own pinning, or " + _THREAD,
    )
    if context.clues.cpuset is not None and not expectation.cpus <= context.clues.cpuset:
        cause = (
            f"its cgroup {context.clues.cpuset_name} allows only CPUs "
            f"{format_cpulist(context.clues.cpuset)}"
        )
        remedy = "widen cpuset.cpus, or plan inside the cgroup"
    elif gone := expectation.cpus - context.machine.online:
        cause = f"CPUs {format_cpulist(gone)} went offline"
        remedy = "bring the CPUs online, or make a new plan and restart"
    elif not expectation.planned:
        cause = "the program pins its threads" if is_team(threads) else cause
        remedy = "none needed if this is intended; otherwise " + _THREAD
    return context.finding(
        "thread-narrower",
        Severity.DRIFT if expectation.planned else Severity.NOTE,
        thread=thread,
        expected=f"CPUs {place}",
        found=f"CPUs {thread.cpus}",
        cause=cause,
        remedy=remedy.format(cpus=place, pid=context.pid, tid=thread.tid),
    )


def _unplaced(thread: ThreadLook, context: RuleContext) -> list[Finding]:
    """A thread that runs tasks, under thread placement, and is not where its CPU is."""
    cpu = context.expectation.task_cpus[thread.tid]
    if cpus_of(thread) == {cpu}:
        return []
    cause = (
        "the thread is bound to another CPU"
        if len(cpus_of(thread)) == 1
        else "the thread is not bound to one CPU"
    )
    return [
        context.finding(
            "thread-unplaced",
            Severity.DRIFT,
            thread=thread,
            expected=f"CPU {cpu}",
            found=f"CPUs {thread.cpus}",
            cause=f"{cause}: Atoll's supervisor is stopped or may not bind it, or the program's "
            "OpenMP runtime ignores OMP_PLACES",
            remedy=f"see the deployment's supervisor.log, or: taskset -c -p {cpu} {thread.tid}",
        )
    ]


def _cpuset(
    thread: ThreadLook, threads: Sequence[ThreadLook], context: RuleContext
) -> list[Finding]:
    """A thread whose cpuset excludes nodes of its own memory policy or of the main thread's."""
    if not thread.memory_nodes:
        return []  # a kernel without cpusets
    allowed = _cpus(thread.memory_nodes)
    if context.expectation.planned:
        wanted, severity = context.expectation.nodes, Severity.DRIFT
    else:
        main = next((one for one in threads if one.tid == context.pid), thread)
        wanted, severity = _cpus(main.memory_nodes), Severity.NOTE
    if wanted <= allowed:
        return []
    return [
        context.finding(
            "cpuset-differs",
            severity,
            thread=thread,
            expected=f"memory of nodes {format_cpulist(wanted)}",
            found=f"nodes {thread.memory_nodes} allowed",
            cause=f"cpuset.mems of its cgroup{_name(context.clues)} closes the others",
            remedy="widen cpuset.mems, or plan inside the cgroup",
        )
    ]


def _name(clues: Clues) -> str:
    return f" {clues.cpuset_name}" if clues.cpuset_name else ""
