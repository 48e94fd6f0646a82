"""Which mallocs can be loaded here: atoll-exec's own list, for it is what preloads them."""

from __future__ import annotations

from dataclasses import dataclass

from atoll.host.api import Host
from atoll.host.programs import find_program

_TIMEOUT_S = 10.0
SYSTEM = "system"  # atoll-exec's word for the C library's own


@dataclass(frozen=True, slots=True)
class Malloc:
    name: str
    library: str  # what is preloaded; empty: the C library's own


def loadable_mallocs(host: Host, launcher: str | None = None) -> list[Malloc]:
    """The C library's own first, then what atoll-exec can preload.

    Raises OSError where atoll-exec is not installed or does not answer.
    """
    program = launcher or _launcher()
    try:
        done = host.run([program, "--list-mallocs"], timeout_s=_TIMEOUT_S)
    except TimeoutError:
        raise OSError(f"{program} did not answer within {_TIMEOUT_S:.0f} s") from None
    if done.returncode != 0:
        raise OSError(f"{program} failed: {' '.join(done.stderr.split())}")
    found = (line.partition("\t") for line in done.stdout.splitlines())
    return [Malloc(SYSTEM, ""), *(Malloc(name, path) for name, tab, path in found if tab)]


def _launcher() -> str:
    found = find_program("atoll-exec")
    if found is None:
        raise OSError("atoll-exec is not installed; run 'make setup' or reinstall atoll")
    return found
