"""Threads that may run elsewhere than they should, and why, most likely. Pure.

A mask says where a thread may run, not who set it. The cause is told from what the mask looks
like, from what the other threads have, and from what is mapped and set; where two causes look
alike both are named.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from atoll.inspect.expectation import Expectation, is_team
from atoll.inspect.scene import Scene
from atoll.inspect.surroundings import Clues
from atoll.schema.cpulist import format_cpulist, parse_cpulist
from atoll.schema.inspection import Finding, Severity, ThreadLook

_AGAIN = "restart the process in its place, or move all of it: taskset -a -c -p {cpus} {pid}"
_THREAD = "put the thread back: taskset -c -p {cpus} {tid}"


def is_outside(thread: ThreadLook, expectation: Expectation) -> bool:
    return not cpus_of(thread) <= expectation.cpus


def thread_findings(threads: Sequence[ThreadLook], scene: Scene) -> list[Finding]:
    """thread-outside, thread-narrower, cpuset-differs."""
    findings = []
    expectation = scene.expectation
    may_be_narrower = expectation.seats_threads or (expectation.planned and not expectation.exact)
    for thread in threads:
        if is_outside(thread, expectation):
            findings.append(_outside(thread, threads, scene))
        elif cpus_of(thread) < expectation.cpus and not may_be_narrower:
            findings.append(_narrower(thread, threads, scene))
        findings += _cpuset(thread, threads, scene)
    return findings


@cache
def _cpus(cpulist: str) -> frozenset[int]:
    return frozenset(parse_cpulist(cpulist))


def cpus_of(thread: ThreadLook) -> frozenset[int]:
    return _cpus(thread.cpus)


def _outside(thread: ThreadLook, threads: Sequence[ThreadLook], scene: Scene) -> Finding:
    cause, remedy = _why_outside(thread, threads, scene)
    place = format_cpulist(scene.expectation.cpus)
    return scene.finding(
        "thread-outside",
        Severity.DRIFT,
        thread=thread,
        expected=f"CPUs {place}",
        found=f"CPUs {thread.cpus}",
        cause=cause,
        remedy=remedy.format(cpus=place, pid=scene.pid, tid=thread.tid),
    )


def _why_outside(
    thread: ThreadLook, threads: Sequence[ThreadLook], scene: Scene
) -> tuple[str, str]:
    clues, place, found = scene.clues, scene.expectation.cpus, cpus_of(thread)
    if clues.pinning and len(found) == 1 and not thread.comm.startswith("atoll-"):
        return clues.pinning.cause, clues.pinning.remedy
    if thread.comm.startswith(("iou-wrk-", "iou-sqp-")):
        return (
            "io_uring's workers follow the cpuset, not the mask of the thread that they work for",
            "confine the process with a cgroup cpuset, or set the workers' mask with "
            "IORING_REGISTER_IOWQ_AFF",
        )
    if gone := place - scene.machine.online:
        return (
            f"CPUs {format_cpulist(gone)} went offline; the kernel moved what could run nowhere "
            "else",
            "bring them online, or plan anew and restart",
        )
    if clues.cpuset is not None and not place <= clues.cpuset:
        return (
            f"its cgroup {clues.cpuset_name} allows CPUs {format_cpulist(clues.cpuset)} only; a "
            "change of cpuset.cpus resets the masks",
            "widen cpuset.cpus and restart, or plan inside the cgroup",
        )
    if clues.openmp and len(found) < len(scene.machine.online):
        return (
            f"the OpenMP runtime binds its threads ({clues.openmp})",
            f"unset {clues.openmp.partition('=')[0]}, or name places inside the mask",
        )
    if all(cpus_of(other) == found for other in threads):
        return (
            "the whole process was moved after its start (taskset -a, a change of its cpuset), or "
            "set its mask itself as it began",
            _AGAIN,
        )
    return _one_of_several(thread, threads, scene)


def _one_of_several(
    thread: ThreadLook, threads: Sequence[ThreadLook], scene: Scene
) -> tuple[str, str]:
    found, main = cpus_of(thread), next((one for one in threads if one.tid == scene.pid), None)
    alone = main is not None and all(
        found == cpus_of(other) for other in threads if other is not main
    )
    if main is not None and thread is not main and alone and cpus_of(main) < found:
        return (
            "the main thread alone was moved (taskset -p without -a), or pinned itself, after the "
            "others were made; or they widened their masks themselves",
            "move all of it: taskset -a -c -p {cpus} {pid}",
        )
    if clues_of_kin := sum(cpus_of(other) == found for other in threads) - 1:
        return (
            f"it and {clues_of_kin} more set their masks themselves (sched_setaffinity), or were "
            "made by a thread that had; or somebody moved them (taskset -p)",
            "turn the program's own pinning off, or " + _THREAD,
        )
    return (
        "the thread set its mask itself (sched_setaffinity, pthread_setaffinity_np), or somebody "
        "moved it (taskset -p)",
        "turn the program's own pinning off, or " + _THREAD,
    )


def _narrower(thread: ThreadLook, threads: Sequence[ThreadLook], scene: Scene) -> Finding:
    expectation, place = scene.expectation, format_cpulist(scene.expectation.cpus)
    cause, remedy = (
        "the thread or who made it set a narrower mask (sched_setaffinity, taskset -p)",
        "turn the program's own pinning off, or " + _THREAD,
    )
    if scene.clues.cpuset is not None and not expectation.cpus <= scene.clues.cpuset:
        cause = (
            f"its cgroup {scene.clues.cpuset_name} allows CPUs "
            f"{format_cpulist(scene.clues.cpuset)} only"
        )
        remedy = "widen cpuset.cpus, or plan inside the cgroup"
    elif gone := expectation.cpus - scene.machine.online:
        cause = f"CPUs {format_cpulist(gone)} went offline"
        remedy = "bring them online, or plan anew and restart"
    elif not expectation.planned:
        cause = "the program pins its threads" if is_team(threads) else cause
        remedy = "none needed if that is wanted; else " + _THREAD
    return scene.finding(
        "thread-narrower",
        Severity.DRIFT if expectation.planned else Severity.NOTE,
        thread=thread,
        expected=f"CPUs {place}",
        found=f"CPUs {thread.cpus}",
        cause=cause,
        remedy=remedy.format(cpus=place, pid=scene.pid, tid=thread.tid),
    )


def _cpuset(thread: ThreadLook, threads: Sequence[ThreadLook], scene: Scene) -> list[Finding]:
    """A thread whose cpuset closes nodes that its memory policy, or the main thread, has."""
    if not thread.memory_nodes:
        return []  # a kernel without cpusets
    allowed = _cpus(thread.memory_nodes)
    if scene.expectation.planned:
        wanted, severity = scene.expectation.nodes, Severity.DRIFT
    else:
        main = next((one for one in threads if one.tid == scene.pid), thread)
        wanted, severity = _cpus(main.memory_nodes), Severity.NOTE
    if wanted <= allowed:
        return []
    return [
        scene.finding(
            "cpuset-differs",
            severity,
            thread=thread,
            expected=f"memory of nodes {format_cpulist(wanted)}",
            found=f"nodes {thread.memory_nodes} allowed",
            cause=f"cpuset.mems of its cgroup{_name(scene.clues)} closes the others",
            remedy="widen cpuset.mems, or plan inside the cgroup",
        )
    ]


def _name(clues: Clues) -> str:
    return f" {clues.cpuset_name}" if clues.cpuset_name else ""
