"""Lists the mallocs that can be loaded here; the list is atoll-exec's, which preloads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from atoll.errors import UsageError
from atoll.host.api import Host
from atoll.host.caller import clean_environment
from atoll.host.programs import find_program

_TIMEOUT_S = 10.0
SYSTEM = "system"  # atoll-exec's name for the C library's own malloc


@dataclass(frozen=True, slots=True)
class Malloc:
    name: str
    library: str  # the library to preload; empty: the C library's own malloc


def loadable_mallocs(
    host: Host, launcher: str | None = None, *, env: Mapping[str, str] | None = None
) -> list[Malloc]:
    """The C library's own malloc first, then those that atoll-exec can preload.

    Raises OSError if atoll-exec is not installed or does not answer.
    """
    program = launcher or _launcher()
    try:
        done = host.run([program, "--list-mallocs"], timeout_s=_TIMEOUT_S, env=env)
    except TimeoutError:
        raise OSError(f"{program} did not answer within {_TIMEOUT_S:.0f} s") from None
    if done.returncode != 0:
        raise OSError(f"{program} failed: {' '.join(done.stderr.split())}")
    lines = (line.partition("\t") for line in done.stdout.splitlines())
    return [Malloc(SYSTEM, ""), *(Malloc(name, path) for name, tab, path in lines if tab)]


def library_of(name: str, host: Host) -> str:
    """The library that a deployment preloads for a malloc; empty for the C library's own.

    Raises UsageError if it cannot be loaded on this machine.
    """
    if name == SYSTEM:
        return ""
    env = clean_environment()  # as an engine's processes have it: without LD_LIBRARY_PATH
    try:
        found = {malloc.name: malloc.library for malloc in loadable_mallocs(host, env=env)}
    except OSError as fault:
        raise UsageError(f"--malloc {name}: {fault}") from None
    if name not in found:
        raise UsageError(
            f"--malloc {name}: cannot be loaded here (loadable: {', '.join(found)}); "
            f"'atoll-exec --malloc {name} true' names the package to install"
        )
    return found[name]


def _launcher() -> str:
    path = find_program("atoll-exec")
    if path is None:
        raise OSError("atoll-exec is not installed; run 'make setup' or reinstall atoll")
    return path
