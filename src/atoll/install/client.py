"""Running another's program that fetches: pip, mvn, apt. The seam that a test puts a fake into."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from atoll.host.processes import Finished
from atoll.host.tied import tied_argv

_TICK_S = 0.25
_GRACE_S = 5.0


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
        """Run to the end, output captured; `env` comes on top of ours. Raises FileNotFoundError
        where there is no such program."""
        ...


def run(
    argv: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    tick: Callable[[], None] = _no_tick,
) -> Finished:
    """See `Run`. `tick` is called four times a second. The program goes when we go, however
    that is; on Ctrl-C it is ended first."""
    if shutil.which(argv[0]) is None:
        raise FileNotFoundError(2, "not on this machine", argv[0])
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = subprocess.Popen(
            [*tied_argv(argv[0]), *argv[1:]],
            cwd=cwd,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
        )
        try:
            while True:
                try:
                    child.wait(_TICK_S)
                    break
                except subprocess.TimeoutExpired:
                    tick()
        finally:
            _end(child)
        out.seek(0)
        err.seek(0)
        return Finished(
            child.returncode,
            out.read().decode(errors="replace"),
            err.read().decode(errors="replace"),
        )


def _end(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is not None:
        return
    child.terminate()
    try:
        child.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
