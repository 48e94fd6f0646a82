"""A toy part by each client, installed by a process that tests can kill.

python -m tests.parts.install_toy maven SHA256 SIZE | pip [SHA256] | apt
"""

from __future__ import annotations

import sys

from atoll.errors import AtollError
from atoll.host.local import LocalHost
from atoll.install import installing
from atoll.install.catalog import Artifact, Packages, Part, Wheel
from atoll.install.client import runner

# A small wheel without needs, any machine's.
WHEEL_SHA256 = "b6a85871a79d2e3b22d2d1b94ac2824226a63c6b741c88f7ae975f18b6778374"


def toy(kind: str, *words: str) -> Part:
    if kind == "maven":
        sha256, size = words
        artifact = Artifact("org.atoll.toys", "toy", "1", sha256, "toy-1")
        return Part("toy-1", "1", artifact, int(size), 10 * int(size), "MIT")
    if kind == "pip":
        hashes = dict.fromkeys(("x86_64", "aarch64"), words[0] if words else WHEEL_SHA256)
        wheel = Wheel("iniconfig", "2.0.0", hashes, "iniconfig")
        return Part("iniconfig-2", "2.0.0", wheel, 5892, 100_000, "MIT")
    return Part("numactl-2", "2", Packages(("numactl",), True), 40_000, 200_000, "GPL-2.0")


def tell(doing: str, done_bytes: int = 0, total_bytes: int = 0) -> None:
    print(doing, done_bytes, total_bytes, flush=True)


def main() -> int:
    try:
        installing.install([toy(*sys.argv[1:])], tell=tell, run=runner(LocalHost()))
    except AtollError as fault:
        print(fault, file=sys.stderr)
        return fault.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
