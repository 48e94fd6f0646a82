"""A child process that answers line by line, with a limit on every wait.

The child has a session of its own, so a Ctrl-C at the terminal does not reach it. `close` ends it
whatever it does. Its stdin ends when this process ends, however it ends, because no other process
holds the pipe.
"""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence

_MOST_LINE_BYTES = 64 << 20
_LAST_WORDS_BYTES = 4096
_LONGEST_MS = 2**31 - 1  # that poll(2) can wait
# The time that a child gets to end by itself after its stdin has ended.
_FAREWELL_S = 0.2


class LocalConversation:
    """See `atoll.host.api.Conversation`."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str]) -> None:
        # A file and not a pipe: only its end is read, and a child must not block on a full pipe.
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  closed in close()
        try:
            self._child = subprocess.Popen(
                list(argv),
                env=dict(env),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                bufsize=0,
                start_new_session=True,
            )
        except BaseException:
            self._stderr.close()
            raise
        assert self._child.stdin is not None and self._child.stdout is not None
        self._to = self._child.stdin
        self._from = self._child.stdout
        self._rest = b""
        self._words = ""

    @property
    def pid(self) -> int:
        return self._child.pid

    def send(self, line: str) -> None:
        data = line.encode() + b"\n"
        try:
            while data:
                data = data[self._to.write(data) or 0 :]
        except ValueError:
            raise BrokenPipeError(32, "the conversation is closed") from None

    def receive(self, *, timeout_s: float) -> str:
        deadline = time.monotonic() + timeout_s
        pieces = [self._rest]
        size = len(self._rest)
        if self._from.closed:
            raise EOFError
        poll = select.poll()
        poll.register(self._from, select.POLLIN)
        while b"\n" not in pieces[-1]:
            left_ms = max(0, round((deadline - time.monotonic()) * 1000))
            if not poll.poll(min(left_ms, _LONGEST_MS)):
                self._rest = b"".join(pieces)
                raise TimeoutError(f"no answer within {timeout_s:.1f} s")
            piece = os.read(self._from.fileno(), 1 << 16)
            size += len(piece)
            if not piece or size > _MOST_LINE_BYTES:
                raise EOFError
            pieces.append(piece)
        line, _, self._rest = b"".join(pieces).partition(b"\n")
        return line.decode(errors="replace")

    def last_words(self) -> str:
        if not self._stderr.closed:
            size = os.fstat(self._stderr.fileno()).st_size
            start = max(0, size - _LAST_WORDS_BYTES)
            words = os.pread(self._stderr.fileno(), _LAST_WORDS_BYTES, start)
            self._words = words.decode(errors="replace")
        return self._words

    def close(self) -> int:
        if not self._to.closed:
            self._to.close()
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(_FAREWELL_S)
        finally:  # also after a Ctrl-C
            self._child.kill()  # does nothing if it has ended
            status = self._child.wait()
        self._from.close()
        self.last_words()
        self._stderr.close()
        return status
