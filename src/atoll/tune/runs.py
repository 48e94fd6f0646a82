"""Runs the command with a setting, and says what is wrong with a run. `EngineRuns` runs queries."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import sys
from collections.abc import Mapping, Sequence
from typing import Protocol

from atoll.errors import EngineFailed, UsageError
from atoll.host.api import Conversation, Host
from atoll.host.caller import environment
from atoll.host.measured import descendants, end_descendants
from atoll.host.programs import find_program
from atoll.host.reaper import become_subreaper
from atoll.schema.text import first_line, one_line
from atoll.supervise.interrupts import shielded
from atoll.tune.factors import Recipe, parted
from atoll.tune.metric import Ran
from atoll.tune.runner import MOST_OUTPUT_BYTES

EMPTY = os.devnull
_ANSWER_S = 30.0  # longer than the runner needs to end a command
_LAST_WORDS = 200


class RunFault(Exception):
    """A run that cannot be counted, with the reason."""


class NoEnd(RunFault):
    """A run that took longer than it may."""


class Differs(RunFault):
    """A run whose answer differs from the right one."""


class Runs(Protocol):
    def run(self, recipe: Recipe, *, limit_s: float) -> Ran:
        """Raises RunFault."""
        ...

    def end(self) -> None:
        """End all that was started."""
        ...


def start_runner(host: Host, knobs_folder: str = "") -> Conversation:
    """`knobs_folder`: of the journal whose switches it restores if this process is killed."""
    argv = [sys.executable, "-P", "-m", "atoll.tune.runner"]
    return host.converse([*argv, *filter(None, [knobs_folder])], env=environment())


class CommandRuns:
    """The `Runs` of a command. Each ends by itself with status 0 and leaves nothing behind.

    Until `end`, this process is a subreaper: what the command has started becomes its child if the
    runner is killed, and `end` ends it.
    """

    def __init__(
        self, host: Host, command: Sequence[str], *, stdin: str, knobs_folder: str = ""
    ) -> None:
        self._own, self._command = parted(command)
        self._stdin = stdin
        self._launcher = _launcher()
        self._own[:1] = [self._launcher] if self._own else []
        self._not_ours = descendants()
        become_subreaper()
        self._runner = start_runner(host, knobs_folder)

    def run(self, recipe: Recipe, *, limit_s: float) -> Ran:
        added = dict(pair.split("=", 1) for pair in recipe.environment)
        request = {
            # Also without flags, so that every setting pays for the same start.
            "argv": [*self._own, self._launcher, *recipe.flags, "--", *self._command],
            "env": environment() | added,
            "stdin": self._stdin,
            "limit_s": limit_s,
        }
        try:
            self._runner.send(json.dumps(request))
            answer = json.loads(self._runner.receive(timeout_s=limit_s + _ANSWER_S))
        except (EOFError, BrokenPipeError, TimeoutError):
            raise EngineFailed(
                f"the process that runs the command has died: {self._said()}; start again"
            ) from None
        return _checked(answer, limit_s)

    def end(self) -> None:
        with shielded():
            # It may have been killed, or be stopped.
            with contextlib.suppress(EOFError, BrokenPipeError, TimeoutError):
                self._runner.send("{}")
                # An answer to the interrupted run comes first.
                while self._runner.receive(timeout_s=_ANSWER_S) != "{}":
                    pass
            self._runner.close()
            end_descendants(self._not_ours)  # also a runner that outlives its guard
            become_subreaper(wanted=False)

    def _said(self) -> str:
        return one_line(self._runner.last_words()[-_LAST_WORDS:]) or "it was killed"


def stdin_path() -> tuple[str, str]:
    """What every run reads from its start, and a caution. It is the file that is redirected to this
    process; otherwise nothing, since a pipe or a terminal can be read only once."""
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        mode = 0
    if stat.S_ISREG(mode):
        return f"/proc/{os.getpid()}/fd/0", ""
    if stat.S_ISFIFO(mode):
        return EMPTY, "stdin is a pipe, which can be read only once: every run had an empty one"
    return EMPTY, ""


def _checked(answer: Mapping[str, object], limit_s: float) -> Ran:
    stderr = str(answer.get("stderr", ""))
    if answer.get("fault") == "no end":
        raise NoEnd(f"no end within {limit_s:.0f} s{_last_words(stderr)}")
    if answer.get("fault") == "too much output":
        raise RunFault(
            f"it prints more than {MOST_OUTPUT_BYTES >> 20} MiB, which Atoll would keep in memory; "
            "let a shell send its output to a file or to /dev/null"
        )
    status, left = answer["status"], answer["left"]
    assert isinstance(status, int) and isinstance(left, list)
    if status == -9:
        raise RunFault("it was killed (signal 9), as the kernel does when memory is short")
    if status:
        how = f"signal {-status}" if status < 0 else f"exit status {status}"
        raise RunFault(f"it fails ({how}){_last_words(stderr)}")
    if left:
        raise RunFault(
            f"it ends and leaves {', '.join(map(str, left))} running, so its time is not that of "
            "its work; use the option that keeps it in the foreground"
        )
    return Ran(
        seconds=float(str(answer["seconds"])),
        cpu_s=float(str(answer["cpu_s"])),
        rss_bytes=int(str(answer["rss_bytes"])),
        digest=str(answer["digest"]),
        output=f"{answer['stdout']}\n{stderr}",
    )


def _last_words(stderr: str) -> str:
    lines = [line for line in stderr.splitlines() if line.strip()]
    return f": {first_line(lines[-1])[:_LAST_WORDS]}" if lines else ""


def _launcher() -> str:
    path = find_program("atoll-exec")
    if path is None:
        raise UsageError("atoll-exec is not installed; run 'make setup' or reinstall atoll")
    return path
