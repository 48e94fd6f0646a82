"""The end of the conversation on a host: runs one command of Atoll for a controller.

It is no daemon: ssh starts it, and it ends with the connection. The command that it runs ends when
the controller is gone, whether it hung up or has been silent for too long; what a deployment's own
keeper has taken over stays, if the controller has confirmed that it knows of it.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Protocol, TypeVar

from atoll import __version__
from atoll.errors import EngineFailed, UsageError
from atoll.fleet.protocol import (
    BEAT_S,
    FILE,
    LARGEST_LINE,
    SECRET,
    SILENCE_S,
    Hello,
    Keep,
    Kept,
    Message,
    Reply,
    Request,
    Time,
    line,
)
from atoll.host.caller import environment
from atoll.host.memory_file import memory_file
from atoll.host.processes import Finished
from atoll.store.paths import state_dir

M = TypeVar("M", bound=Message)

_UNDO_LIMIT_S = 120.0
_WORDS = {FILE: "its plan", SECRET: "the cluster's secret"}
_TEMPORARY = "/run/user/"
_LINGERING = "/var/lib/systemd/linger"


class Run(Protocol):
    """See `atoll.host.processes.run`."""

    def __call__(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float | None = None,
        env: Mapping[str, str] | None = None,
        tied: bool = False,
        tick: Callable[[], None] | None = None,
    ) -> Finished: ...


class ControllerGone(Exception):
    """The controller hung up, or has been silent for SILENCE_S."""


class Controller:
    """Lines from `source`, a descriptor, and to `sink`."""

    def __init__(self, source: int, sink: int) -> None:
        self._source, self._sink = source, sink
        self._rest = bytearray()
        self._heard_s = self._beat_s = time.monotonic()

    def say(self, message: Message | None) -> None:
        """None: an empty line. Raises ControllerGone."""
        data = memoryview(line(message) if message else b"\n")
        try:
            while data:
                # So much is written without waiting, once the pipe is ready.
                if not select.select([], [self._sink], [], SILENCE_S)[1]:
                    raise ControllerGone
                data = data[os.write(self._sink, data[: select.PIPE_BUF]) :]
        except OSError:
            raise ControllerGone from None
        self._beat_s = time.monotonic()

    def hear(self) -> str:
        """The next line that is not empty. Raises ControllerGone."""
        while True:
            heard, end, rest = self._rest.partition(b"\n")
            if not end:
                self.check(wait_s=SILENCE_S)
                continue
            self._rest = rest
            if heard:
                return heard.decode(errors="replace")

    def check(self, wait_s: float = 0.0) -> None:
        """Take in what has come, and say a word when it is time. Raises ControllerGone."""
        if select.select([self._source], [], [], wait_s)[0]:
            data = os.read(self._source, 1 << 16)
            self._rest += data
            self._heard_s = time.monotonic()
            if not data or len(self._rest) > LARGEST_LINE:
                raise ControllerGone
        now_s = time.monotonic()
        if now_s - self._heard_s > SILENCE_S:
            raise ControllerGone
        if now_s - self._beat_s > BEAT_S:
            self.say(None)


def serve(controller: Controller, run: Run) -> None:
    """Greet the controller, run its request, answer. Raises UsageError for another language."""
    pending = None  # a deployment that nobody has confirmed
    try:
        controller.say(Hello(atoll=__version__))
        request = _parsed(Request, controller.hear())
        controller.say(Time(unix_s=time.time()))
        pending = request.confirm
        reply = _run(request, controller, run)
        if pending and reply.exit_code:
            _undo(pending, run, controller.check)
            pending = None
        controller.say(reply)
        if pending:
            _parsed(Keep, controller.hear())
            pending = None
            controller.say(Kept())
    except ControllerGone:
        pass
    finally:
        if pending:
            _undo(pending, run)


def _undo(deployment: str, run: Run, tick: Callable[[], None] | None = None) -> None:
    """End what may run of the deployment. If none of it does, `atoll down` says so to nobody."""
    with suppress(TimeoutError):
        argv = _atoll(["down", deployment])
        run(argv, timeout_s=_UNDO_LIMIT_S, env=_environment(), tick=tick)


def _run(request: Request, controller: Controller, run: Run) -> Reply:
    results = None
    with ExitStack() as stack:
        given = {FILE: request.document, SECRET: request.secret}
        paths = {
            word: stack.enter_context(memory_file(text))
            for word, text in given.items()
            if text is not None
        }
        argv = [paths.get(word, word) for word in request.argv]
        if request.results is not None:
            results = state_dir("results") / f"{request.results}.jsonl"
            argv += ["-o", str(results)]
        try:
            done = run(
                _atoll(argv),
                timeout_s=request.limit_s,
                env=_environment(),
                tied=True,
                tick=controller.check,
            )
        except TimeoutError:
            return Reply(
                exit_code=EngineFailed.exit_code,
                stdout="",
                stderr=f"atoll: 'atoll {argv[0]}' did not end within {request.limit_s} s",
            )
    return Reply(
        exit_code=done.returncode,
        stdout=done.stdout,
        stderr=_named(done.stderr, paths),
        results=_text(results),
    )


def _named(text: str, paths: Mapping[str, str]) -> str:
    """The text with what each memory file is in place of its path."""
    for word, path in paths.items():
        text = text.replace(path, _WORDS[word])
    return text


def _text(path: Path | None) -> str | None:
    try:
        return path.read_text("utf-8", "replace") if path else None
    except OSError:
        return None  # the command has written none, and its own words say why


def _atoll(argv: Sequence[str]) -> list[str]:
    return [sys.executable, "-P", "-m", "atoll", *argv]


def _environment() -> dict[str, str]:
    """This process's environment, without a folder that systemd removes when the session ends."""
    found = environment()
    folder = found.get("XDG_RUNTIME_DIR", "")
    if folder.startswith(_TEMPORARY) and not Path(_LINGERING, found.get("USER", "")).exists():
        del found["XDG_RUNTIME_DIR"]
    return found


def _parsed(kind: type[M], text: str) -> M:
    try:
        return kind(**json.loads(text))
    except (ValueError, TypeError, RecursionError):
        raise UsageError(f"{text[:40]!r}: not a controller of Atoll {__version__}") from None
