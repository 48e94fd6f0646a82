"""A Linux guest that is the machine of a topology file and runs the host's own programs.

    with Guest(topology.load("milan2")) as guest:
        done = guest.run(["numactl", "--hardware"])

QEMU emulates every instruction (TCG), so a guest needs no rights and tells nothing about speed.
Its root is the host's, read-only over virtio-9p with a tmpfs over it; `share` and the `shares`
given are writable and have the same paths on both sides. Commands run as root, many to a boot,
each in a session of its own. Whatever ends this process ends QEMU and removes its folder.
"""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, NoReturn

from atoll.errors import GuestFailed
from atoll.guest import image, seen
from atoll.guest.output import Output
from atoll.guest.qemu import STUCK, GuestDied, KernelStuck, Qemu
from atoll.guest.topology import Topology, TopologyRefused
from atoll.host.caller import environment
from atoll.host.processes import Finished

__all__ = ["BootFailed", "CommandTimedOut", "Guest", "GuestDied", "KernelStuck"]

# Idle, 16 CPUs take 6 s; on a host with ten busy processes that was 40 s.
BOOT_TIMEOUT_S_PER_CPU = 15.0
# A race of QEMU's own ends some boots (an assertion in iotlb_to_section), more with a plugin.
BOOT_TRIES = 3
REMEDY = "try again on a quieter host"
ANSWER_TIMEOUT_S = 120.0  # for what the guest does itself: kill a command, list its CPUs
TELL_TIMEOUT_S = 120.0
FOLLOW_S = 0.1
SIGKILLED = 128 + 9


class BootFailed(GuestFailed):
    """The guest did not come up."""


class CommandTimedOut(GuestFailed):
    """A command was killed at its time limit; `output` is its stdout until then."""

    def __init__(self, command: str, timeout_s: float, output: bytes) -> None:
        super().__init__(f"{command}: killed in the guest, after {timeout_s:g} s")
        self.output = output


class Guest:
    """A context manager; entering it boots. For the thread that made it: QEMU ends with it."""

    share: Path  # the writable folder, from `boot` on

    def __init__(
        self, topology: Topology, *, shares: Sequence[Path] = (), quantum: int = 0
    ) -> None:
        """`quantum`: simulate the caches, the CPUs kept together so closely, in cycles."""
        self.topology = topology
        self._quantum = quantum
        self.boot_s = 0.0
        self._shares = [Path(os.path.abspath(path)) for path in shares]
        self._boot_timeout_s = BOOT_TIMEOUT_S_PER_CPU * max(8, len(topology.numbering))
        self._running: Qemu | None = None
        self._commands = 0
        self._statuses: dict[int, int] = {}

    def __enter__(self) -> Guest:
        self.boot()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.close()

    def boot(
        self,
        *,
        tries: int = BOOT_TRIES,
        failed: Callable[[GuestFailed, int], None] = lambda fault, left: None,
    ) -> None:
        """Boot, and try again if the guest fails; `failed` gets the fault and the tries left.

        Raises GuestFailed, image.NoImage, and TopologyRefused where QEMU cannot build the machine
        or Linux shows another one. After a fault nothing is left."""
        for left in reversed(range(tries)):
            try:
                self._boot()
                break
            except GuestFailed as fault:
                failed(fault, left)
                if not left:
                    raise

    def _boot(self) -> None:
        booted = image.ensure()
        started = time.monotonic()
        self._running = Qemu(self.topology, booted, self._shares, self._quantum)
        self.share = self._running.share
        try:
            self._await_ready(self._running, booted, started + self._boot_timeout_s)
            self.boot_s = time.monotonic() - started
            self._check_machine()
        except BaseException:
            self.close()
            raise

    @property
    def is_on(self) -> bool:
        """Whether it was booted and not closed since; it may have died."""
        return self._running is not None

    def cpu_s(self) -> float:
        """The CPU time that QEMU has taken of the host."""
        return self._qemu().cpu_s()

    def close(self) -> None:
        """Power off at once; what the guest wrote outside its shares is gone."""
        if self._running is not None:
            self._running.close()
            self._running = None

    # ---- commands ----------------------------------------------------------------------------

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float = 60,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
    ) -> Finished:
        """Run to the end, by default with the host's environment and in the host's folder.

        The status is a shell's: 126 and 127 for a command that cannot be run, 128 and the number
        for a signal; where the guest ran out of memory meanwhile, stderr ends with that. Raises
        CommandTimedOut after the command's process group was killed, and GuestDied.
        """
        killed = len(self.out_of_memory())
        number = self.start(argv, env=env, cwd=cwd)
        status = self.wait(number, timeout_s)
        if status is None:
            self.kill(number)
        out, err = (self.output(number, kind).read_all() for kind in ("out", "err"))
        if status is None:
            raise CommandTimedOut(argv[0], timeout_s, out)
        said = err.decode(errors="replace") + self._why_killed(status, killed)
        return Finished(status, out.decode(errors="replace"), said)

    def follow(
        self,
        argv: Sequence[str],
        out: BinaryIO,
        err: BinaryIO,
        *,
        timeout_s: float,
        env: Mapping[str, str] | None = None,
    ) -> int:
        """As `run`, in the host's folder; what the command prints is passed on as it comes."""
        deadline, killed = time.monotonic() + timeout_s, len(self.out_of_memory())
        number = self.start(argv, env=env)
        streams = [(self.output(number, "out"), out), (self.output(number, "err"), err)]
        status = None
        while status is None:
            left_s = max(deadline - time.monotonic(), 0)
            status = self.wait(number, min(FOLLOW_S, left_s))
            timed_out = status is None and left_s == 0
            if timed_out:
                self.kill(number)
            for output, stream in streams:
                running = status is None and not timed_out
                stream.write(output.read_new() if running else output.read_all())
                stream.flush()
            if timed_out:
                raise CommandTimedOut(argv[0], timeout_s, b"")
        err.write(self._why_killed(status, killed).encode())
        err.flush()
        return status

    def start(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
    ) -> int:
        """Start a command and give back its number. Raises GuestDied."""
        self._commands += 1
        number = self._commands
        given = environment() if env is None else env
        pairs = [f"{name}={value}" for name, value in given.items()]
        where = shlex.quote(os.fspath(cwd if cwd is not None else Path.cwd()))
        # A shell's background process, which the command descends from, ignores these two.
        clean = ["/usr/bin/env", "--default-signal=INT,QUIT", "-i", "--", *pairs]
        command = shlex.join([*clean, *argv])
        script = os.fsencode(f"cd {where} || exit 126\nexec {command}\n")
        (self._qemu().jobs / f"{number}.sh").write_bytes(script)
        self._qemu().send(f"run {number}")
        return number

    def wait(self, number: int, timeout_s: float) -> int | None:
        """The command's exit status; None if it still runs then. Raises GuestDied."""
        deadline = time.monotonic() + timeout_s
        while number not in self._statuses:
            line = self._qemu().line(deadline)
            if line is None:
                return None
            ended, status = line.removeprefix("done ").split(" ")
            self._statuses[int(ended)] = int(status)
        return self._statuses[number]

    def kill(self, number: int) -> None:
        """Kill the command's whole process group and wait for its end. Raises GuestDied."""
        self._qemu().send(f"kill {number}")
        if self.wait(number, ANSWER_TIMEOUT_S) is None:
            self.give_up("a killed command does not end")

    def give_up(self, why: str) -> NoReturn:
        """Switch off a guest that does not do what it should. Raises GuestDied with
        `why` and what the OOM killer ended; its console has what memory there is and where in the
        kernel each process waits. KernelStuck, if a timer was lost there."""
        running = self._qemu()
        running.tell(time.monotonic() + TELL_TIMEOUT_S)
        lines = [f"guest {self.topology.name}: lost: {why}", *running.out_of_memory()]
        line, told = "; ".join(lines), running.told()
        self.close()
        raise (KernelStuck if STUCK.search(f"{line}\n{told}") else GuestDied)(line, told)

    def output(self, number: int, kind: str) -> Output:
        """The command's stdout (`out`) or stderr (`err`), from its beginning."""
        return Output(self._qemu().jobs / f"{number}.{kind}")

    def out_of_memory(self) -> list[str]:
        """Each process that the OOM killer ended since the boot, in a line."""
        return self._qemu().out_of_memory()

    def _why_killed(self, status: int, before: int) -> str:
        """What the OOM killer ended since it had ended `before`; empty if nothing was killed."""
        lines = self.out_of_memory()[before:] if status == SIGKILLED else []
        return "".join(f"{line}\n" for line in lines)

    # ---- booting -----------------------------------------------------------------------------

    def _qemu(self) -> Qemu:
        if self._running is None:
            raise GuestDied(f"guest {self.topology.name}: is off")
        return self._running

    def _await_ready(self, running: Qemu, booted: image.Image, deadline: float) -> None:
        name = self.topology.name
        try:
            line = running.line(deadline)
        except GuestDied as died:
            said = running.complaint()
            if not said or died.console or "Assertion" in said:
                raise BootFailed(f"{died}; {REMEDY}", died.console) from None
            if "plugin" in said:  # of an interface that this QEMU lacks, or damaged
                raise image.NoImage(f"QEMU: {said}; remove {booted.qemu} and try again") from None
            raise TopologyRefused(f"{name}: QEMU: {said}") from None
        if line != "ready":
            raise BootFailed(
                f"guest {name}: not up after {self._boot_timeout_s:g} s; {REMEDY}",
                running.console_tail(),
            )

    def _check_machine(self) -> None:
        """Kernel arguments may change what Linux shows, so with them there is no saying."""
        if self.topology.kernel:
            return
        number = self.start(["/run/guest/busybox", "sh", "-c", seen.SCRIPT], env={}, cwd="/")
        if self.wait(number, ANSWER_TIMEOUT_S) != 0:
            raise BootFailed(
                f"guest {self.topology.name}: its /sys cannot be read",
                self.output(number, "err").read_all().decode(errors="replace"),
            )
        said = self.output(number, "out").read_all().decode(errors="replace")
        found = seen.differences(self.topology, said)
        if found:
            raise TopologyRefused(
                f"{self.topology.name}: Linux does not show this machine with a CPU "
                f"{self.topology.cpu}: {'; '.join(found)}"
            )
