"""Runs `atoll-workload` (W1 to W4 of numa-query-tuning) and `atoll-kernels` (those of ARCAS)
under atoll-exec.

Where their threads and memory go and which malloc they have is atoll-exec's work alone: this module
only spells its flags.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from typing import TypeVar

from pydantic import ValidationError

from atoll.errors import CheckFailed, EngineFailed, UsageError
from atoll.host.api import Host
from atoll.host.programs import find_program
from atoll.plan.cores import usable_places
from atoll.plan.threads import thread_order
from atoll.schema.base import parse, what_is_wrong
from atoll.schema.cpulist import format_cpulist
from atoll.schema.kernel import KernelResult, Kernels
from atoll.schema.machine import Machine
from atoll.schema.plan import Placement
from atoll.schema.workload import WorkloadResult

PROGRAM = "atoll-workload"
KERNELS = "atoll-kernels"
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


def run_workload(
    host: Host,
    flags: Sequence[str],
    launch: Sequence[str],
    *,
    tick: Callable[[], None] | None = None,
) -> WorkloadResult:
    """Run `atoll-workload FLAGS` to its end, under `atoll-exec LAUNCH` if there are such flags.

    `tick` is called now and then. Raises UsageError, CheckFailed (a wrong answer), EngineFailed.
    """
    return _run(host, WorkloadResult, PROGRAM, flags, launch, tick)


def run_kernel(
    host: Host,
    flags: Sequence[str],
    launch: Sequence[str],
    *,
    tick: Callable[[], None] | None = None,
) -> KernelResult:
    """As `run_workload`, with `atoll-kernels`."""
    return _run(host, KernelResult, KERNELS, flags, launch, tick)


def kernels(host: Host) -> Kernels:
    """The workloads of `atoll-kernels` and their flags. Raises EngineFailed."""
    text = _output(host, KERNELS, ["--describe"], (), None)
    try:
        return Kernels.model_validate_json(text)
    except ValidationError as fault:
        raise EngineFailed(f"{KERNELS} --describe: {what_is_wrong(fault)}") from None


R = TypeVar("R", WorkloadResult, KernelResult)


def _run(
    host: Host,
    kind: type[R],
    program: str,
    flags: Sequence[str],
    launch: Sequence[str],
    tick: Callable[[], None] | None,
) -> R:
    found = parse(
        kind, _output(host, program, flags, launch, tick), where=program, error=EngineFailed
    )
    return found.model_copy(update={"launch": tuple(launch)})


def _output(
    host: Host,
    program: str,
    flags: Sequence[str],
    launch: Sequence[str],
    tick: Callable[[], None] | None,
) -> str:
    argv = [_path(program), *flags]
    if launch:
        argv = [_path(LAUNCHER), *launch, "--", *argv]
    done = host.run(argv, timeout_s=None, tied=True, tick=tick)
    words = " ".join(done.stderr.split())
    for name in (program, LAUNCHER):
        words = words.removeprefix(f"{name}: ")
    # The flags and the help that the user knows.
    words = words.replace(f"see {program} --help", f"see 'atoll workload run {flags[0]} --help'")
    words = words.replace("--physcpubind", "--cpus")
    if done.returncode in (_USAGE, _LAUNCHER_FAILED):
        raise UsageError(words)
    if done.returncode == _WRONG:
        raise CheckFailed(words)
    if done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        memory = "; 'dmesg' shows if memory ran out" if name == "SIGKILL" else ""
        raise EngineFailed(f"{program} was ended by {name}{memory}")
    if done.returncode != 0:
        raise EngineFailed(words or f"{program} failed with exit status {done.returncode}")
    return done.stdout


def _path(name: str) -> str:
    path = find_program(name)
    if path is None:
        raise EngineFailed(f"{name} is not installed; run 'make setup' or reinstall atoll")
    return path
