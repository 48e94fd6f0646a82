"""C++ programs that run in guests, of the release build (native/tests/runtime)."""

from __future__ import annotations

import fcntl
import functools
import subprocess

from tests.vm.proof import ROOT

BUILD = ROOT / "build/release"


@functools.cache
def program(name: str, room: str = "guests") -> str:
    """The path of `name` from native/tests/runtime/`room`, up to date."""
    BUILD.mkdir(parents=True, exist_ok=True)
    with (BUILD / ".guests.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several processes of pytest share the build
        for command in (
            ["cmake", "--preset", "release"],
            ["cmake", "--build", "--preset", "release", "--target", name],
        ):
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    return str(BUILD / "native/tests/runtime" / room / name)
