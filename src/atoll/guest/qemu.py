"""One QEMU process: its command line, the port to the guest inside, its end.

QEMU hangs on a keeper (keeper.py), which ends it and removes its folder however this process
ends. The port is a socket pair, so it has no name that could be in use, too long or left over.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from atoll.errors import GuestFailed
from atoll.guest import image, initramfs, machine, native, simulated
from atoll.guest.topology import Topology, TopologyRefused
from atoll.host import processes
from atoll.host.caller import environment
from atoll.host.local import LocalHost
from atoll.host.procfs import parse_stat

CONSOLE_LINES = 30
KERNEL_HZ = 250  # CONFIG_HZ of Debian's kernels


class GuestDied(GuestFailed):
    """The guest ended, or fell silent, while it should have served."""


class KernelStuck(GuestDied):
    """The emulator has lost a virtual CPU's timer: the guest's kernel waits for an RCU grace period
    that does not end, or a nap does not. Nothing that runs in the guest can cause that."""


# Where in the kernel such a process waits (kernel/rcu/update.c and kernel/time/hrtimer.c, as the
# console prints it). The subject of the landing tests naps for 200 us at a time.
STUCK = re.compile(r"__wait_rcu_gp\+|\(subject\) thread \d+\n\[<0>\] hrtimer_nanosleep\+")


class Qemu:
    """Starts at once; `close` ends it. For one thread."""

    def __init__(
        self, topology: Topology, booted: image.Image, shares: Sequence[Path], quantum: int = 0
    ) -> None:
        self._name = topology.name
        self._buffer = b""
        try:
            lacking = image.lacking(booted, topology.cpu)
        except TopologyRefused as fault:
            raise TopologyRefused(f"{topology.name}: {fault}") from None
        table = machine.madt(topology)
        # It may have to be built. Until the keeper runs, kill -9 would leave the folder behind.
        plugin = native.plugin() if quantum else ""
        # 0700: what root in the guest writes is the caller's own business.
        self._folder = Path(tempfile.mkdtemp(prefix="atoll-guest-"))
        self._port, theirs = socket.socketpair()
        try:
            with theirs:
                self.jobs, self.share = self._folder / "jobs", self._folder / "share"
                self.jobs.mkdir()
                self.share.mkdir()
                writable = [self.jobs, self.share, *shares]
                initrd = self._folder / "initrd"
                first = _first_part(table, writable, topology.offline)
                initrd.write_bytes(first + booted.initrd.read_bytes())
                kernel = kernel_arguments(_tsc_khz(), simulated=bool(quantum))
                argv = [
                    *booted.qemu_argv(plugin),
                    *machine.arguments(topology, lacking, simulated.HIDDEN if quantum else ()),
                    *("-accel", "tcg,thread=multi,tb-size=256"),
                    *("-chardev", f"file,id=console,path={_quoted(self._folder / 'console')}"),
                    *("-no-reboot", "-serial", "chardev:console"),
                    *("-kernel", str(booted.kernel), "-initrd", str(initrd)),
                    *("-append", " ".join([*kernel, *topology.kernel])),
                    *("-chardev", f"socket,id=atoll,fd={theirs.fileno()}"),
                    *("-device", "virtio-serial-pci"),
                    *("-device", "virtserialport,chardev=atoll,name=atoll"),
                    *_nine_p("host", Path("/"), ",readonly=on"),
                ]
                for number, path in enumerate(writable):
                    argv += _nine_p(f"share{number}", path)
                if quantum:
                    argv += simulated.arguments(topology, quantum, self._folder)
                argv += machine.network(topology)
                self._keeper = self._start(theirs.fileno(), argv)
        except BaseException:
            self._port.close()
            shutil.rmtree(self._folder, ignore_errors=True)
            raise

    def _start(self, port: int, argv: Sequence[str]) -> processes.LocalChild:
        self._wanted, watched = socket.socketpair()
        words = [str(watched.fileno()), str(port), str(self._folder), *argv]
        with watched:
            return processes.start(
                [sys.executable, "-P", "-m", "atoll.guest.keeper", *words],
                env=environment(),
                log=str(self._folder / "qemu.err"),
                pass_fds=[watched.fileno(), port],
            )

    def cpu_s(self) -> float:
        """The CPU time of QEMU, the keeper's only child, so far."""
        keeper = self._keeper.pid
        qemu = LocalHost().read_text(f"/proc/{keeper}/task/{keeper}/children").split()[0]
        ticks = parse_stat(LocalHost().read_text(f"/proc/{qemu}/stat")).cpu_ticks
        return ticks / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        self._wanted.close()
        self._keeper.wait()
        self._port.close()
        # The keeper did it, unless it was killed.
        shutil.rmtree(self._folder, ignore_errors=True)

    def send(self, line: str) -> None:
        """Raises GuestDied."""
        try:
            self._port.sendall(f"{line}\n".encode())
        except OSError:
            raise self._died() from None

    def line(self, deadline: float) -> str | None:
        """The next line from the guest; None at the deadline (monotonic). Raises GuestDied."""
        while b"\n" not in self._buffer:
            left = max(deadline - time.monotonic(), 0)
            if not select.select([self._port], [], [], left)[0]:
                return None
            with contextlib.suppress(ConnectionResetError):
                if data := self._port.recv(4096):
                    self._buffer += data
                    continue
            raise self._died()
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.decode(errors="replace").strip()

    def tell(self, deadline: float) -> None:
        """Have the guest's kernel say on the console what is wrong, if it still can."""
        with contextlib.suppress(GuestDied):
            self.send("tell")
            while (line := self.line(deadline)) is not None and line != "told":
                pass  # of commands that end only now

    def told(self) -> str:
        """The console from the first word that was asked for; its end if the word is absent."""
        console = "\n".join(self._read("console"))
        _, asked, said = console.partition("sysrq: Show Memory")
        return asked + said or self.console_tail()

    def out_of_memory(self) -> list[str]:
        """Each process that the guest's kernel has killed when memory ran out, in a line."""
        return killed_for_memory("\n".join(self._read("console")))

    def _died(self) -> GuestDied:
        panics = [line for line in self._read("console") if "Kernel panic" in line]
        said = (panics or [self.complaint() or "without a word"])[0]
        return GuestDied(f"guest {self._name}: ended: {said}", self.console_tail())

    def complaint(self) -> str:
        """The last line that QEMU itself said on stderr; empty if none."""
        lines = [line for line in self._read("qemu.err") if "TCG doesn't support" not in line]
        return lines[-1].removeprefix("qemu-system-x86_64: ") if lines else ""

    def console_tail(self) -> str:
        return "\n".join(self._read("console")[-CONSOLE_LINES:])

    def _read(self, name: str) -> list[str]:
        with contextlib.suppress(OSError):
            return (self._folder / name).read_text(errors="replace").splitlines()
        return []


def killed_for_memory(console: str) -> list[str]:
    """mm/oom_kill.c prints them as errors, which `quiet` lets through."""
    pattern = r"(?:Out of memory|Memory cgroup out of memory): Killed process \d+ \([^)\n]*\)"
    return re.findall(pattern, console)


def kernel_arguments(tsc_khz: int, *, simulated: bool) -> list[str]:
    """`simulated`: the guest's time is the simulation's, which QEMU's devices follow. The TSC is
    the host's under TCG."""
    return [
        *("console=ttyS0", "quiet", "panic=-1", "nokaslr", "mitigations=off"),
        # The kernel gets its clock as an argument: measured on a loaded host it comes out wrong,
        # and timers with it.
        *(("notsc", "clocksource=acpi_pm") if simulated else ("tsc=reliable",)),
        *(f"tsc_early_khz={tsc_khz}", f"lpj={tsc_khz * 1000 // KERNEL_HZ}"),
        *("no_timer_check", "random.trust_cpu=on"),
        # A vCPU that the host does not run for half a minute is no lockup.
        *("nowatchdog", "rcupdate.rcu_cpu_stall_suppress=1"),
    ]


def _first_part(table: bytes, shares: Sequence[Path], offline: Sequence[int]) -> bytes:
    """What differs from boot to boot; the kernel looks for ACPI tables at the very start."""
    return initramfs.archive(
        [
            ("kernel/firmware/acpi/apic.aml", 0o100644, table),
            ("boot/shares", 0o100644, b"".join(os.fsencode(path) + b"\n" for path in shares)),
            ("boot/offline", 0o100644, "".join(f"{cpu}\n" for cpu in offline).encode()),
            ("boot/serve.sh", 0o100644, (image.INSIDE / "serve.sh").read_bytes()),
        ]
    )


def _quoted(path: Path) -> str:
    """QEMU splits its options at commas and takes two for one."""
    return str(path).replace(",", ",,")


def _nine_p(tag: str, path: Path, more: str = "") -> list[str]:
    # security_model=none is what an ordinary user can have too.
    model = f"security_model=none,multidevs=remap{more}"
    return [
        *("-fsdev", f"local,id={tag},path={_quoted(path)},{model}"),
        *("-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"),
    ]


def _tsc_khz() -> int:
    """The rate of the host's TSC: Linux reckons bogomips from it, 2 per MHz."""
    for line in LocalHost().read_text("/proc/cpuinfo").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "bogomips":
            return int(float(value) * 500)
    raise image.NoImage("/proc/cpuinfo: names no bogomips; the guest needs a Linux host on x86_64")
