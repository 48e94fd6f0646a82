"""Reads a situation: this machine, its kernel, what this user may do, and the program.

It changes nothing. A command is not started: `atoll-exec --dry-run` shows the place, the memory
policy and the preload with which it would start, whether they are inherited or its own flags.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from atoll.advice.process_rules import SYSTEM
from atoll.advice.situation import DEFAULT_POLICY, Situation, Subject
from atoll.errors import UsageError
from atoll.host.api import Host
from atoll.host.environment import virtualization
from atoll.host.procfs import status_field
from atoll.host.programs import ProgramFiles, find_program
from atoll.inspect.jvm import is_jvm
from atoll.inspect.malloc import look_at_malloc
from atoll.inspect.policy import plain, process_policy
from atoll.inspect.preload import effect_of, is_openmp, look_at_program
from atoll.inspect.processes import environment
from atoll.inspect.targets import find_processes, refuse_foreign
from atoll.inspect.thread_look import look_at_threads
from atoll.knobs.control import present
from atoll.probing.allocators import loadable_mallocs
from atoll.schema.advice import Preload, PreloadEffect, SubjectKind, Workload
from atoll.schema.cpulist import format_cpulist, parse_cpulist
from atoll.schema.machine import Machine
from atoll.schema.plan import (
    EngineTraits,
    HugePages,
    Malloc,
    MemoryPolicy,
    Placement,
    Plan,
    TaskThreads,
)
from atoll.schema.text import one_line, printable

if TYPE_CHECKING:
    from atoll.schema.profile import Profile

KNOBS = (
    *("numa-balancing", "thp-enabled", "thp-defrag", "zone-reclaim", "governor"),
    "weighted-interleave",
)
_FREQUENCY_DRIVER = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver"
_TIMEOUT_S = 10.0
_BINDINGS = {
    **dict.fromkeys(("spread", "true"), Placement.SPARSE),
    **dict.fromkeys(("close", "master", "primary"), Placement.DENSE),
}
# atoll-exec's words for a policy -> those of numa_maps.
_POLICIES = {"preferred": "prefer", "preferred-many": "prefer (many)"} | {
    "weighted-interleave": "weighted interleave"
}
_NO_OPENMP = "only OpenMP programs can be bound thread by thread from outside; this is none"


@dataclass(frozen=True, slots=True)
class Limits:
    """What this user may not do here, in words."""

    policy: str = ""
    knobs: str = ""
    other: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.policy, self.knobs, *self.other)))


def read_situation(
    host: Host,
    machine: Machine,
    subject: Subject,
    workload: Workload,
    *,
    mallocs: Mapping[str, str],
    limits: Limits,
    profile: Profile | None = None,
) -> Situation:
    return Situation(
        machine=machine,
        subject=subject,
        workload=workload,
        knobs=present(host, KNOBS),
        root=host.user_id() == 0,
        policy_fault=limits.policy,
        knobs_fault=limits.knobs,
        virtual=virtualization(host, _text(host, "/proc/cpuinfo")) not in ("", "none"),
        frequency_driver=_text(host, _FREQUENCY_DRIVER).strip(),
        mallocs=tuple(mallocs),
        churn_ns=churn_ns(profile) if profile is not None else {},
    )


def release(host: Host) -> str:
    return _text(host, "/proc/sys/kernel/osrelease").strip()


def churn_ns(profile: Profile) -> dict[str, float]:
    """By malloc: the time of an operation with the most threads that were measured."""
    most = max((run.threads for run in profile.churn), default=0)
    return {run.allocator: run.operation_ns.value for run in profile.churn if run.threads == most}


def loadable(host: Host) -> dict[str, str]:
    """Name -> library of the mallocs that can be preloaded; empty without atoll-exec."""
    try:
        return {each.name: each.library for each in loadable_mallocs(host) if each.library}
    except OSError:
        return {}


def read_limits(host: Host, machine: Machine) -> Limits:
    """What this user may not do, as the system itself answers."""
    other = []
    if host.user_id() != 0:
        other.append("not root: 'atoll apply' prints a script that root runs")
    if container := _container(host):
        other.append(f"in a container ({container}): its cgroup bounds CPUs and memory nodes")
    return Limits(_policy_fault(host, machine), _knobs_fault(host), tuple(other))


def _policy_fault(host: Host, machine: Machine) -> str:
    """Asks the kernel, by a dry run; with one node there is nothing to set."""
    nodes = machine.allowed.nodes
    if len(nodes) < 2:
        return ""
    try:
        done = host.run(
            [_launcher(), "--dry-run", "-i", format_cpulist(nodes), "--", "true"],
            timeout_s=_TIMEOUT_S,
        )
    except (OSError, TimeoutError, UsageError):
        return ""
    return f"no memory policy can be set here: {_said(done.stderr)}" if done.returncode else ""


def _knobs_fault(host: Host) -> str:
    """The file systems of the switches are mounted read-only, as in containers."""
    for line in _text(host, "/proc/self/mounts").splitlines():
        fields = line.split()
        if len(fields) > 3 and fields[1] in ("/proc/sys", "/sys") and "ro" in fields[3].split(","):
            return f"{fields[1]} is read-only here, as in a container: set knobs on its host"
    return ""


def _container(host: Host) -> str:
    if host.exists("/.dockerenv"):
        return "Docker"
    if host.exists("/run/.containerenv"):
        return "Podman"
    match = re.search(r"kubepods|docker|libpod|lxc", _text(host, "/proc/self/cgroup"))
    return match[0] if match else ""


# ---- a command ---------------------------------------------------------------------------------


def read_command(host: Host, command: Sequence[str], mallocs: Mapping[str, str]) -> Subject:
    """As it would be started from here. Without words: any program. Raises UsageError."""
    words = list(command)
    if words and words[0].rpartition("/")[2] == "atoll-exec":
        words[:1] = [_launcher(), "--dry-run"]
    else:
        words = [_launcher(), "--dry-run", "--", *(words or ["true"])]
    try:
        done = host.run(words, timeout_s=_TIMEOUT_S)
    except (OSError, TimeoutError) as fault:
        raise UsageError(f"{words[0]}: {fault}") from None
    if done.returncode:
        raise UsageError(_said(done.stderr))
    # An argument may contain lines that look like those above it.
    head, _, started = done.stdout.removesuffix("\n").partition("\ncommand  ")
    if not started:
        raise UsageError(f"{shlex.join(command)}: starts no program; name one to advise on")
    state = dict(line.split(maxsplit=1) for line in head.splitlines())
    preload = state["env"]
    if preload == "unchanged":
        preload = host.variable("LD_PRELOAD")
    subject = Subject(
        name=one_line(shlex.join(command)),
        cpus=frozenset(parse_cpulist(state["cpus"])),
        policy=_policy(state["memory"]),
        malloc=_malloc_in(preload),
        may_have_thp=state["thp"] != "disabled",
        threads=_BINDINGS.get(host.variable("OMP_PROC_BIND").lower(), Placement.NONE),
    )
    if not command:
        return replace(subject, binding_fault="name the program: OpenMP programs can be bound")
    files = ProgramFiles(_program(started, command), folders=host.variable("LD_LIBRARY_PATH"))
    program = look_at_program(host, files, library=_any(mallocs))
    unbound = "" if program.openmp else _NO_OPENMP
    return replace(subject, preload=program.preload, binding_fault=unbound)


def _any(mallocs: Mapping[str, str]) -> str:
    """The library of one of them: whether a preload is effective does not depend on which."""
    return next(iter(mallocs.values()), "")


def _program(started: str, command: Sequence[str]) -> str:
    """The program's path, which may contain blanks; atoll-exec prints its arguments behind it."""
    endings = ("".join(f" {word}" for word in command[at:]) for at in range(1, len(command)))
    return started.removesuffix(next(filter(started.endswith, endings), ""))


def _policy(text: str) -> str:
    """'interleave: 0-1' of atoll-exec as numa_maps writes it."""
    mode, _, nodes = text.partition(": ")
    if mode.startswith(("default", "unknown")):  # unknown: some containers refuse to tell
        return DEFAULT_POLICY
    mode = _POLICIES.get(mode, mode)
    return f"{mode}:{nodes}" if nodes else mode


def _malloc_in(preload: str) -> str:
    """The allocator among LD_PRELOAD's entries; the system's if there is none."""
    for entry in re.split(r"[ :]+", preload):
        if name := _malloc_of(entry.rpartition("/")[2]):
            return name
    return SYSTEM


def _malloc_of(library: str) -> str:
    names = (one.value for one in Malloc if one is not Malloc.SYSTEM)
    return next((name for name in names if library.startswith(f"lib{name}")), "")


# ---- a process ---------------------------------------------------------------------------------


def read_process(host: Host, pid: int) -> Subject:
    """Raises ProcessGone, NotPermitted."""
    find_processes(host, str(pid), uid=host.user_id())
    refuse_foreign(host, pid, uid=host.user_id())
    maps = _text(host, f"/proc/{pid}/maps")
    if not maps:
        raise UsageError(f"process {pid} has no memory: it is a kernel thread, or it has ended")
    jvm = is_jvm(maps)
    threads = look_at_threads(host, pid)
    masks = [frozenset(parse_cpulist(thread.cpus)) for thread in threads]
    openmp = any(is_openmp(line.rpartition("/")[2]) for line in maps.splitlines())
    status = _text(host, f"/proc/{pid}/status")
    malloc, preload = _malloc_look(host, pid, jvm=jvm)
    try:
        policy = plain(process_policy(host, pid)) or DEFAULT_POLICY
    except OSError:
        policy = DEFAULT_POLICY
    bound = environment(host, pid).get("OMP_PROC_BIND", "").lower()
    return Subject(
        kind=SubjectKind.PROCESS,
        name=printable(f"pid {pid} ({status_field(status, 'Name')})"),
        cpus=frozenset[int]().union(*masks),
        policy=policy,
        malloc=malloc,
        preload=preload,
        may_have_thp=status_field(status, "THP_enabled") != "0",
        threads=_BINDINGS.get(bound, Placement.NONE),
        binding_fault="" if openmp else _NO_OPENMP,
        is_bound=len({mask for mask in masks if len(mask) == 1}) > 1,
    )


def _malloc_look(host: Host, pid: int, *, jvm: bool) -> tuple[str, Preload]:
    try:
        look = look_at_malloc(host, pid)
    except OSError as fault:
        why = f"its memory cannot be read: {fault.strerror}"
        return SYSTEM, Preload(effect=PreloadEffect.UNKNOWN, why=why)
    return _malloc_of(look.reached or "") or SYSTEM, effect_of(look, jvm=jvm)


# ---- an engine ---------------------------------------------------------------------------------


def read_engine(
    host: Host,
    plan: Plan,
    traits: EngineTraits,
    files: ProgramFiles | None,
    mallocs: Mapping[str, str],
    machine: Machine,
) -> Subject:
    """As `atoll up` starts it by this plan. `files`: None if it is not installed, or does not name
    them."""
    slot = plan.slots[0]
    if files is not None:
        preload = look_at_program(host, files, library=_any(mallocs)).preload
    elif traits.jvm or traits.own_malloc:
        why = traits.own_malloc or "a JVM's heap is not allocated with malloc"
        preload = Preload(effect=PreloadEffect.PARTIAL, why=why)
    else:
        preload = Preload(effect=PreloadEffect.UNKNOWN, why="the engine was not found here")
    known = isinstance(traits.task_threads, TaskThreads)
    return Subject(
        kind=SubjectKind.ENGINE,
        name=traits.name,
        cpus=frozenset(machine.allowed.pus if slot.cpus is None else slot.cpus),
        instances=len(plan.slots),
        policy=_planned_policy(slot.memory_policy, slot.memory_nodes),
        malloc=plan.malloc.value,
        preload=preload,
        may_have_thp=plan.thp is not HugePages.NEVER,
        threads=plan.placement,
        binding_fault="" if known else str(traits.task_threads),
    )


def _planned_policy(policy: MemoryPolicy, nodes: Sequence[int]) -> str:
    if policy is MemoryPolicy.FIRST_TOUCH:
        return DEFAULT_POLICY
    mode = {MemoryPolicy.PREFERRED: "prefer"}.get(policy, policy.value.replace("-", " "))
    return f"{mode}:{format_cpulist(nodes)}" if nodes else mode


def _launcher() -> str:
    path = find_program("atoll-exec")
    if path is None:
        raise UsageError("atoll-exec is not installed; run 'make setup' or reinstall atoll")
    return path


def _said(stderr: str) -> str:
    return " ".join(stderr.split()).removeprefix("atoll-exec: ")


def _text(host: Host, path: str) -> str:
    try:
        return host.read_text(path)
    except OSError:
        return ""
