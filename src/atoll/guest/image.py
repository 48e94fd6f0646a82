"""What a guest boots from, in Atoll's cache: QEMU 10, Debian's kernel 6.12, an initramfs.

QEMU and the kernel come from bookworm-backports, once for all guests. QEMU 7.2 of bookworm itself
is not taken: its code patching raced, 1 boot in 5 panicked.
"""

from __future__ import annotations

import hashlib
import lzma
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path

from atoll.errors import DiskFull, DownloadFailed
from atoll.guest import initramfs
from atoll.guest.topology import TopologyRefused
from atoll.host import processes
from atoll.host.local import LocalHost
from atoll.install.client import runner
from atoll.install.debian import Order, fetch
from atoll.install.parts import MANIFEST
from atoll.install.progress import Lines
from atoll.store.files import write_atomic
from atoll.store.paths import cache_dir

INSIDE = Path(__file__).resolve().parent / "inside"
SUITE = "bookworm-backports"
DAY_S = 86400
QEMU_TIMEOUT_S = 300


class NoImage(DownloadFailed):
    """What a guest lacks on this machine, and what to do."""


@dataclass(frozen=True, slots=True)
class Image:
    qemu: Path  # the folder that its packages are unpacked in
    kernel: Path
    initrd: Path

    def qemu_argv(self, preload: str = "") -> list[str]:
        """QEMU with its own libraries and firmware, and nothing that the host configures."""
        share = self.qemu / "usr/share"
        libraries = ":".join(f"{self.qemu}/{part}lib/x86_64-linux-gnu" for part in ("", "usr/"))
        return [
            *("env", f"LD_LIBRARY_PATH={libraries}", f"LD_PRELOAD={preload}"),
            str(self.qemu / "usr/bin/qemu-system-x86_64"),
            *("-L", str(share / "seabios"), "-L", str(share / "qemu")),
            *("-nodefaults", "-no-user-config", "-display", "none"),
        ]


def ensure() -> Image:
    """Fetch and build what is not in the cache yet. Raises NoImage, NotPermitted, DiskFull."""
    if os.uname().machine != "x86_64":
        raise NoImage(
            f"the guest runs the host's own programs, and wants x86_64 for it, not "
            f"{os.uname().machine}"
        )
    cache = cache_dir("guest")
    qemu, debian = cache / "qemu", cache / "kernel"
    _fetch(qemu, Order(("qemu-system-x86",), SUITE, depending="*"))
    kernel = ("linux-image-amd64", "busybox-static")
    _fetch(debian, Order(kernel, SUITE, depending="linux-image-*"))
    kernels = sorted(debian.glob("boot/vmlinuz-*"))
    if not (kernels and (debian / "bin/busybox").is_file()):
        lost = "busybox" if kernels else "kernel"
        raise NoImage(f"{debian}: holds no {lost}; remove it and try again")
    return Image(qemu, kernels[-1], _initrd(cache, debian, kernels[-1]))


def _fetch(into: Path, order: Order) -> None:
    if (into / MANIFEST).is_file():
        return
    try:
        fetch(order, into, tell=Lines("guest"), run=runner(LocalHost()))
    except DiskFull:
        raise
    except DownloadFailed as fault:
        raise NoImage(
            f"{order.packages[0]} of {SUITE}: {fault}; the guest wants Debian 12 with its archive, "
            f"or the packages unpacked in {into}"
        ) from None


def _initrd(cache: Path, debian: Path, kernel: Path) -> Path:
    version = kernel.name.removeprefix("vmlinuz-")
    busybox, init = (debian / "bin/busybox").read_bytes(), (INSIDE / "init.sh").read_bytes()
    code = Path(initramfs.__file__).read_bytes()
    key = hashlib.sha256(busybox + init + code).hexdigest()[:16]
    path = cache / f"initrd-{version}-{key}.img"
    if not path.is_file():
        for old in cache.glob("initrd-*.img"):
            # A guest of another checkout may be about to read a young one.
            if time.time() - old.stat().st_mtime > DAY_S:
                old.unlink()
        try:
            modules = initramfs.read_modules(debian / "lib/modules" / version)
        except (KeyError, lzma.LZMAError) as fault:
            raise NoImage(f"{debian}: module {fault}; remove it and try again") from None
        write_atomic(path, initramfs.build(busybox, init, modules), mode=0o600)
    return path


def lacking(image: Image, model: str) -> list[str]:
    """The features of a CPU model that QEMU's TCG does not have.

    Raises TopologyRefused and NoImage.
    """
    argv = [*image.qemu_argv(), "-machine", "q35", "-accel", "tcg", "-cpu", model, "-S"]
    told_to_quit = ["sh", "-c", 'exec "$@" <<end\nquit\nend', "sh", *argv, "-monitor", "stdio"]
    try:
        done = processes.run(told_to_quit, timeout_s=QEMU_TIMEOUT_S)
    except TimeoutError:
        raise NoImage(
            f"QEMU: no answer in {QEMU_TIMEOUT_S} s; try again on a quieter host"
        ) from None
    if done.returncode != 0:
        said = (done.stderr.splitlines() or ["no message"])[-1]
        if done.returncode in (126, 127):  # it is gone, or packages that it relied on
            raise NoImage(f"QEMU: {said}; remove {image.qemu} and try again")
        raise TopologyRefused(f"cpu: QEMU: {said.rpartition('qemu-system-x86_64: ')[2]}")
    return re.findall(r"support requested feature: \S+?\.([\w.-]+) \[bit", done.stderr)
