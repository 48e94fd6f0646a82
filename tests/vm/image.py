"""What a guest boots from, in Atoll's cache: QEMU 10, Debian's kernel 6.12, an initramfs.

QEMU and the kernel come from bookworm-backports through `tools.fetch_deb`, once for all guests.
QEMU 7.2 of bookworm itself is not taken: its code patching raced, 1 boot in 5 panicked.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import lzma
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from atoll.store.paths import cache_dir
from tests.vm import initramfs
from tests.vm.topology import TopologyRefused

ROOT = Path(__file__).resolve().parent.parent.parent
INSIDE = Path(__file__).resolve().parent / "inside"
SUITE = "bookworm-backports"
DAY_S = 86400
QEMU_TIMEOUT_S = 300


class NoImage(Exception):
    """One line: what a guest lacks on this machine, and what to do."""


@dataclass(frozen=True, slots=True)
class Image:
    qemu: Path  # the folder that its packages are unpacked in
    kernel: Path
    initrd: Path

    def qemu_argv(self) -> list[str]:
        """QEMU with its own libraries and firmware, and nothing that the host configures."""
        share = self.qemu / "usr/share"
        libraries = ":".join(f"{self.qemu}/{part}lib/x86_64-linux-gnu" for part in ("", "usr/"))
        return [
            *("env", f"LD_LIBRARY_PATH={libraries}"),
            str(self.qemu / "usr/bin/qemu-system-x86_64"),
            *("-L", str(share / "seabios"), "-L", str(share / "qemu")),
            *("-nodefaults", "-no-user-config", "-display", "none"),
        ]


def ensure() -> Image:
    """Fetch and build what is not in the cache yet. Raises NoImage."""
    if os.uname().machine != "x86_64":
        raise NoImage(
            f"the guest runs the host's own programs, and wants x86_64 for it, not "
            f"{os.uname().machine}"
        )
    cache = cache_dir("guest")
    qemu, debian = cache / "qemu", cache / "kernel"
    with _alone(cache / "lock", whole=_is_there(qemu) and _is_there(debian)):
        _fetch(qemu, "qemu-system-x86", "--with-depends")
        _fetch(
            debian, "linux-image-amd64", "busybox-static", "--with-depends-like", "linux-image-*"
        )
        kernels = sorted(debian.glob("boot/vmlinuz-*"))
        if not kernels:
            raise NoImage(f"{debian}: holds no kernel; remove it and try again")
        return Image(qemu, kernels[-1], _initrd(cache, debian, kernels[-1]))


@contextlib.contextmanager
def _alone(path: Path, *, whole: bool) -> Iterator[None]:
    """If the image is complete (`whole`), this takes a moment and prints nothing."""
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not whole:
                print("guest: waiting for another one's fetch", file=sys.stderr, flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _is_there(folder: Path) -> bool:
    return (folder / ".fetch_deb.json").is_file()


def _fetch(into: Path, *words: str) -> None:
    if _is_there(into):
        return
    tool = [sys.executable, "-m", "tools.fetch_deb", *words]
    done = subprocess.run(
        [*tool, "--suite", SUITE, "--into", str(into)], stdin=subprocess.DEVNULL, cwd=ROOT
    )
    if done.returncode != 0:
        raise NoImage(
            f"{words[0]} of {SUITE}: not fetched (see above); the guest wants Debian 12 with its "
            f"archive, or the packages unpacked in {into}"
        )


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
        with tempfile.NamedTemporaryFile(dir=cache, prefix=".initrd.", delete=False) as file:
            file.write(initramfs.build(busybox, init, modules))
        os.replace(file.name, path)
    return path


def lacking(image: Image, model: str) -> list[str]:
    """The features of a CPU model that QEMU's TCG does not have.

    Raises TopologyRefused and NoImage.
    """
    argv = [*image.qemu_argv(), "-machine", "q35", "-accel", "tcg", "-cpu", model, "-S"]
    try:
        done = subprocess.run(
            [*argv, "-monitor", "stdio"],
            input="quit\n",
            capture_output=True,
            text=True,
            timeout=QEMU_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        raise NoImage(
            f"QEMU: no answer in {QEMU_TIMEOUT_S} s; try again on a quieter host"
        ) from None
    if done.returncode != 0:
        said = (done.stderr.splitlines() or ["no message"])[-1]
        if "loading shared libraries" in said:  # packages that it relied on are gone
            raise NoImage(f"QEMU: {said}; remove {image.qemu} and try again")
        raise TopologyRefused(f"cpu: QEMU: {said.rpartition('qemu-system-x86_64: ')[2]}")
    return re.findall(r"support requested feature: \S+?\.([\w.-]+) \[bit", done.stderr)
