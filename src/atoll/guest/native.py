"""The native parts of simulated caches: the plugin that QEMU loads, and the guest's `atoll-fills`.

An installed Atoll has them beside its other programs and libraries. In a checkout they are built
when they are first used, in its release build.
"""

from __future__ import annotations

import functools
from importlib.util import find_spec
from pathlib import Path

from atoll.guest.image import NoImage
from atoll.host import processes
from atoll.host.programs import find_program
from atoll.store.locks import locked

CHECKOUT = Path(__file__).resolve().parents[3]
BUILD = CHECKOUT / "build/release"
PLUGIN = "libatoll-cachesim-plugin.so"


def plugin() -> str:
    """The path of the plugin. Raises NoImage."""
    found = find_spec("atoll._native")  # where pip puts libraries
    installed = Path(found.origin).parent / "cachesim" / PLUGIN if found and found.origin else None
    if installed is not None and installed.is_file():
        return str(installed)
    return built("atoll-cachesim-plugin", f"native/src/cachesim/{PLUGIN}")


def fills() -> str:
    """The path of `atoll-fills`. Raises NoImage."""
    return find_program("atoll-fills") or built("atoll-fills", "native/src/cachesim/atoll-fills")


@functools.cache
def built(target: str, file: str) -> str:
    """The path of a target's file in the checkout's build, up to date. Raises NoImage."""
    if not (CHECKOUT / "CMakePresets.json").is_file():
        raise NoImage(f"{target}: this Atoll was installed without it; run Atoll from a checkout")
    BUILD.mkdir(parents=True, exist_ok=True)
    build = ["cmake", "--build", "--preset", "release", "--target", target]
    with locked(BUILD / ".guests.lock"):
        for command in (["cmake", "--preset", "release"], build):
            try:
                done = processes.run(command, cwd=str(CHECKOUT))
            except FileNotFoundError:
                raise NoImage("cmake: not on this machine; run make setup") from None
            if done.returncode != 0:
                raise NoImage(f"{target}: not built; see what this says: {' '.join(command)}")
    return str(BUILD / file)
