"""Running another's program that fetches: pip, mvn, apt. Tests put a fake in place of `Run`."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from atoll.host.api import Host
from atoll.host.caller import environment
from atoll.host.processes import Finished


def _no_tick() -> None:
    pass


class Run(Protocol):
    def __call__(
        self,
        argv: Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        tick: Callable[[], None] = _no_tick,
    ) -> Finished:
        """Run to the end, output captured.

        `env` is added to the environment of this process. `tick` is called four times a second.
        The program ends when this process ends, however it ends. Raises FileNotFoundError if there
        is no such program.
        """
        ...


def runner(host: Host) -> Run:
    """A `Run` that starts real programs."""

    def run(
        argv: Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        tick: Callable[[], None] = _no_tick,
    ) -> Finished:
        if shutil.which(argv[0]) is None:
            raise FileNotFoundError(2, "not on this machine", argv[0])
        return host.run(
            argv,
            timeout_s=None,
            env={**environment(), **(env or {})},
            cwd=None if cwd is None else str(cwd),
            tied=True,
            tick=tick,
        )

    return run
