"""Runs `atoll-workload`, the native workloads of numa-query-tuning, under atoll-exec.

Where its threads and memory go and which malloc it has is atoll-exec's work alone: this module only
spells its flags.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence

from atoll.errors import CheckFailed, EngineFailed, UsageError
from atoll.host.api import Host
from atoll.host.programs import find_program
from atoll.plan.cores import usable_places
from atoll.plan.threads import thread_order
from atoll.schema.base import parse
from atoll.schema.cpulist import format_cpulist
from atoll.schema.machine import Machine
from atoll.schema.plan import Placement
from atoll.schema.workload import WorkloadResult

PROGRAM = "atoll-workload"
LAUNCHER = "atoll-exec"

# The memory policies of the paper (table IV) -> flags. 'preferred' does not say which node there.
MEMORY = {
    "first-touch": (),
    "interleave": ("-i", "all"),
    "local": ("-l",),
    "preferred": ("-p", "+0"),
}
_WRONG, _USAGE, _LAUNCHER_FAILED = 1, 2, 125


def launch_flags(
    *, cpus: str | None, memory: str, malloc: str | None, no_thp: bool
) -> tuple[str, ...]:
    """The flags of atoll-exec; `memory` is a key of MEMORY."""
    return (
        *(("-C", cpus) if cpus else ()),
        *MEMORY[memory],
        *(("--malloc", malloc) if malloc else ()),
        *(("--no-thp",) if no_thp else ()),
    )


def thread_places(
    machine: Machine, placement: str, *, threads: int | None, scheduler: str
) -> tuple[tuple[str, ...], str | None]:
    """The flags of atoll-workload that place its threads, and the CPUs that atoll-exec allows them.

    Sparse spreads threads over nodes, chiplets and cores; dense fills one after the other
    (numa-query-tuning III-B). Plain threads are bound one by one; Atoll's workers bind themselves.
    """
    order = thread_order(usable_places(machine, smt=True), Placement(placement))[:threads]
    if not order:
        return (), None
    if scheduler == "atoll":
        return (), format_cpulist(order)
    return ("--pin", ",".join(map(str, order))), None


def run_workload(host: Host, flags: Sequence[str], launch: Sequence[str]) -> WorkloadResult:
    """Run `atoll-workload FLAGS` to its end, under `atoll-exec LAUNCH` if there are such flags.

    Raises UsageError, CheckFailed (a wrong answer), EngineFailed.
    """
    argv = [_program(PROGRAM), *flags]
    if launch:
        argv = [_program(LAUNCHER), *launch, "--", *argv]
    done = host.run(argv, timeout_s=None, tied=True)
    words = " ".join(done.stderr.split())
    for name in (PROGRAM, LAUNCHER):
        words = words.removeprefix(f"{name}: ")
    if done.returncode in (_USAGE, _LAUNCHER_FAILED):
        raise UsageError(words)
    if done.returncode == _WRONG:
        raise CheckFailed(words)
    if done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        raise EngineFailed(f"{PROGRAM} was ended by {name}; 'dmesg' shows if memory ran out")
    if done.returncode != 0:
        raise EngineFailed(words or f"{PROGRAM} failed with exit status {done.returncode}")
    found = parse(WorkloadResult, done.stdout, where=PROGRAM, error=EngineFailed)
    return found.model_copy(update={"launch": tuple(launch)})


def _program(name: str) -> str:
    path = find_program(name)
    if path is None:
        raise EngineFailed(f"{name} is not installed; run 'make setup' or reinstall atoll")
    return path
