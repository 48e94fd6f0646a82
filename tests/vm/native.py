"""C++ programs and libraries for guests, of the release build."""

from __future__ import annotations

import fcntl
import functools
import subprocess

from tests.vm.image import ROOT, NoImage

BUILD = ROOT / "build/release"


def program(name: str, room: str = "guests") -> str:
    """The path of `name` from native/tests/runtime/`room`, up to date."""
    return built(name, f"native/tests/runtime/{room}/{name}")


@functools.cache
def built(target: str, file: str) -> str:
    """The path of a target's file, up to date. Raises NoImage."""
    BUILD.mkdir(parents=True, exist_ok=True)
    with (BUILD / ".guests.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several processes of pytest share the build
        for command in (
            ["cmake", "--preset", "release"],
            ["cmake", "--build", "--preset", "release", "--target", target],
        ):
            try:
                done = subprocess.run(
                    command, cwd=ROOT, capture_output=True, text=True, check=False
                )
            except OSError as fault:
                raise NoImage(f"{command[0]}: {fault.strerror}; run make setup") from None
            if done.returncode != 0:
                said = done.stdout[-4000:] + done.stderr
                raise NoImage(f"{target}: not built: {said.strip()}")
    return str(BUILD / file)
