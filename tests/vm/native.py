"""C++ programs that run in guests, in a build of their own (native/tests/guest)."""

from __future__ import annotations

import fcntl
import functools
import subprocess

from tests.vm.proof import ROOT

BUILD = ROOT / "build/vm/native"


@functools.cache
def program(name: str) -> str:
    """The path of `name`, up to date. For any x86-64: TCG has no AVX-512."""
    BUILD.mkdir(parents=True, exist_ok=True)
    source, build = str(ROOT / "native/tests/guest"), str(BUILD)
    kind = "-DCMAKE_BUILD_TYPE=RelWithDebInfo"
    with (BUILD / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several processes of pytest share the build
        for command in (
            ["cmake", "-S", source, "-B", build, "-G", "Ninja", kind],
            ["cmake", "--build", build, "--target", name],
        ):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    return str(BUILD / name)
