"""A Linux guest that is the machine of a topology file and runs the host's own programs.

    with Guest(topology.load("milan2")) as guest:
        done = guest.run(["numactl", "--hardware"])

QEMU emulates every instruction (TCG), so a guest needs no rights and tells nothing about speed.
Its root is the host's, read-only over virtio-9p with a tmpfs over it; `share` and the `shares`
given are writable and have the same paths on both sides. Commands run as root, many to a boot,
each in a session of its own. Whatever ends this process ends QEMU and removes its folder.
"""

from __future__ import annotations

import contextlib
import os
import select
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from tests.vm import image, initramfs, machine
from tests.vm.topology import Topology

if TYPE_CHECKING:
    from atoll.host.api import Finished

KEEPER = Path(__file__).resolve().parent / "keeper.py"
BOOT_TIMEOUT_S = 180.0  # idle it takes a few seconds; a host with many busy processes, far more
CONSOLE_LINES = 30
# 1 ms of a 4 ms tick (HZ=250) is loops_per_jiffy / 4; under TCG a guest's TSC is the host's.
TICK_S = 1 / 250


class BootFailed(Exception):
    """The guest did not come up: what QEMU and its console said last."""


class GuestDied(Exception):
    """The guest ended while it should have served."""


class Guest:
    """A context manager; entering it boots."""

    def __init__(
        self,
        topology: Topology,
        *,
        shares: Sequence[Path] = (),
        boot_timeout_s: float = BOOT_TIMEOUT_S,
    ) -> None:
        self.topology = topology
        self.boot_s = 0.0
        self._shares = [Path(os.path.abspath(path)) for path in shares]
        self._boot_timeout_s = boot_timeout_s
        self._commands = 0
        self._statuses: dict[int, int] = {}
        self._buffer = b""

    def __enter__(self) -> Guest:
        self.boot()
        return self

    def boot(self) -> None:
        """Raises BootFailed, image.NoImage and TopologyRefused."""
        booted = image.ensure()
        lacking = image.lacking(booted, self.topology.cpu)
        self._folder = Path(tempfile.mkdtemp(prefix="atoll-guest-"))
        self.share = self._folder / "share"
        self._jobs = self._folder / "jobs"
        started = time.monotonic()
        try:
            self.share.mkdir()
            self._jobs.mkdir()
            self._start(booted, lacking)
            self._await_boot(started + self._boot_timeout_s)
        except BaseException:
            self.close()
            raise
        self.boot_s = time.monotonic() - started

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Power off at once; what the guest wrote outside its shares is gone."""
        if keeper := getattr(self, "_keeper", None):
            keeper.stdin.close()
            keeper.wait()
            self._port.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    # ---- commands ----------------------------------------------------------------------------

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float = 60,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
    ) -> Finished:
        """Run to the end; as `atoll.host.api.Host.run`, with the host's environment and folder.

        Status 126 and 127 mean what they mean to a shell. Raises subprocess.TimeoutExpired,
        after the command's process group was killed, and GuestDied.
        """
        from atoll.host.api import Finished  # the tool `python -m tests.vm` does without numpy

        number = self.start(argv, env=env, cwd=cwd)
        status = self.wait(number, timeout_s)
        if status is None:
            self.kill(number)
            out, err = self.output(number)
            raise subprocess.TimeoutExpired(list(argv), timeout_s, out, err)
        out, err = self.output(number)
        return Finished(status, out.decode(errors="replace"), err.decode(errors="replace"))

    def start(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
    ) -> int:
        """Start a command and give back its number."""
        self._commands += 1
        number = self._commands
        environment = os.environ if env is None else env
        pairs = [f"{name}={value}" for name, value in environment.items()]
        where = shlex.quote(os.fspath(cwd if cwd is not None else Path.cwd()))
        command = shlex.join(["/run/guest/busybox", "env", "-i", *pairs, *argv])
        script = f"cd {where} || exit 126\nexec {command}\n"
        (self._jobs / f"{number}.sh").write_bytes(os.fsencode(script))
        self._send(f"run {number}")
        return number

    def wait(self, number: int, timeout_s: float) -> int | None:
        """The command's exit status (128 and the signal's number); None: it still runs."""
        deadline = time.monotonic() + timeout_s
        while number not in self._statuses:
            line = self._line(deadline)
            if line is None:
                return None
            verb, _, rest = line.partition(" ")
            if verb == "done":
                ended, _, status = rest.partition(" ")
                self._statuses[int(ended)] = int(status)
        return self._statuses[number]

    def kill(self, number: int) -> None:
        """Kill the command's whole process group and wait for its end."""
        self._send(f"kill {number}")
        if self.wait(number, BOOT_TIMEOUT_S) is None:
            raise GuestDied("guest: does not answer any more")

    def output(self, number: int) -> tuple[bytes, bytes]:
        """Stdout and stderr so far."""
        paths = [self.output_path(number, kind) for kind in ("out", "err")]
        out, err = (path.read_bytes() if path.exists() else b"" for path in paths)
        return out, err

    def output_path(self, number: int, kind: str) -> Path:
        """The file that grows with the command's stdout (`out`) or stderr (`err`)."""
        return self._jobs / f"{number}.{kind}"

    # ---- the machine -------------------------------------------------------------------------

    def _start(self, booted: image.Image, lacking: Sequence[str]) -> None:
        initrd = self._folder / "initrd"
        initrd.write_bytes(self._first_part() + booted.initrd.read_bytes())
        ours, theirs = socket.socketpair()
        self._port = ours
        argv = [
            *booted.qemu_argv(),
            *machine.arguments(self.topology, lacking),
            *("-accel", "tcg,thread=multi,tb-size=256"),
            *("-no-reboot", "-serial", f"file:{self._folder / 'console'}"),
            *("-kernel", str(booted.kernel), "-initrd", str(initrd)),
            *("-append", " ".join(self._kernel_arguments())),
            *("-chardev", f"socket,id=atoll,fd={theirs.fileno()}"),
            *("-device", "virtio-serial-pci"),
            *("-device", "virtserialport,chardev=atoll,name=atoll"),
            *_nine_p("host", "/", ",readonly=on"),
        ]
        for number, path in enumerate([self._jobs, self.share, *self._shares]):
            argv += _nine_p(f"share{number}", str(path))
        keeper = [sys.executable, "-I", "-S", str(KEEPER), str(theirs.fileno()), str(self._folder)]
        with theirs, (self._folder / "qemu.err").open("wb") as said:
            self._keeper = subprocess.Popen(
                [*keeper, *argv],
                stdin=subprocess.PIPE,
                stdout=said,
                stderr=said,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )

    def _first_part(self) -> bytes:
        """What differs from boot to boot; the kernel looks for ACPI tables at the very start."""
        shares = "".join(f"{path}\n" for path in (self._jobs, self.share, *self._shares))
        offline = "".join(f"{cpu}\n" for cpu in self.topology.offline)
        return initramfs.archive(
            [
                ("kernel/firmware/acpi/apic.aml", 0o100644, machine.madt(self.topology)),
                ("boot/shares", 0o100644, os.fsencode(shares)),
                ("boot/offline", 0o100644, offline.encode()),
                ("boot/serve.sh", 0o100644, (image.INSIDE / "serve.sh").read_bytes()),
            ]
        )

    def _kernel_arguments(self) -> list[str]:
        khz = _tsc_khz()
        return [
            *("console=ttyS0", "quiet", "panic=-1", "nokaslr", "mitigations=off"),
            # The kernel is told its clock: what it measures on a loaded host is wrong.
            *("tsc=reliable", f"tsc_early_khz={khz}", f"lpj={int(khz * 1000 * TICK_S)}"),
            *("no_timer_check", "random.trust_cpu=on", *self.topology.kernel),
        ]

    # ---- the port ----------------------------------------------------------------------------

    def _await_boot(self, deadline: float) -> None:
        try:
            line = self._line(deadline)
        except GuestDied:
            line = ""
        if line != "ready":
            why = "took too long" if line is None else "ended"
            raise BootFailed(f"guest {self.topology.name}: the boot {why}\n{self.console_tail()}")

    def console_tail(self) -> str:
        """The last lines of QEMU's stderr and of the console."""
        found: list[str] = []
        for name in ("qemu.err", "console"):
            with contextlib.suppress(OSError):
                lines = (self._folder / name).read_text(errors="replace").splitlines()
                found += [line for line in lines if "TCG doesn't support" not in line][
                    -CONSOLE_LINES:
                ]
        return "\n".join(found)

    def _send(self, line: str) -> None:
        try:
            self._port.sendall(f"{line}\n".encode())
        except OSError:
            raise GuestDied(f"guest {self.topology.name}: has ended") from None

    def _line(self, deadline: float) -> str | None:
        """The next line from the guest; None at the deadline. Raises GuestDied."""
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._port], [], [], left)[0]:
                return None
            with contextlib.suppress(ConnectionResetError):
                if data := self._port.recv(4096):
                    self._buffer += data
                    continue
            raise GuestDied(f"guest {self.topology.name}: ended\n{self.console_tail()}")
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.decode(errors="replace").strip()


def _nine_p(tag: str, path: str, more: str = "") -> list[str]:
    # security_model=none is what an ordinary user can have too; a comma is doubled for QEMU.
    quoted = path.replace(",", ",,")
    model = f"security_model=none,multidevs=remap{more}"
    return [
        *("-fsdev", f"local,id={tag},path={quoted},{model}"),
        *("-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"),
    ]


def _tsc_khz() -> int:
    """The host's TSC: Linux reckons bogomips from it, 2 per MHz."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "bogomips":
            return int(float(value) * 500)
    raise image.NoImage("/proc/cpuinfo: names no bogomips")
