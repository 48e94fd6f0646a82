"""The request that the owner passes to the keeper, and the messages of owner and supervisor.

The request is a file in the run folder. The messages are lines on a socket pair. Its end of file
tells the supervisor that the owner is gone.
"""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass
from typing import Literal

from atoll.schema.base import Record
from atoll.schema.deployment import Access, ProcessSpec, UpOptions
from atoll.schema.plan import Plan

# Owner to supervisor.
READY, DETACH, STOP = "ready", "detach", "stop"
SUPERVISOR_LOG = "supervisor.log"  # in the log folder: the output of keeper and supervisor


class Request(Record):
    format: Literal["atoll/request"] = "atoll/request"
    version: Literal[1] = 1
    name: str
    id: str
    plan: Plan
    processes: tuple[ProcessSpec, ...]
    # Paths below the run folder and their content: see `atoll.engines.api.Layout`.
    files: dict[str, str]
    copies: dict[str, str]
    links: dict[str, str]
    endpoints: tuple[str, ...]
    access: tuple[Access, ...] = ()
    options: UpOptions | None = None
    run_dir: str
    scratch_dir: str
    log_dir: str
    launcher: str  # atoll-exec
    environment: dict[str, str]
    start_timeout_s: float
    grace_s: float  # from SIGTERM to SIGKILL


@dataclass(frozen=True, slots=True)
class Message:
    """From supervisor to owner: 'starts NAME', 'accepts NAME', 'accepting', 'ready',
    'failed ERROR', 'stopping'."""

    event: str
    detail: str = ""

    def encode(self) -> bytes:
        return json.dumps([self.event, self.detail]).encode() + b"\n"


class Lines:
    """Reads whole lines from a non-blocking socket."""

    def __init__(self, source: socket.socket) -> None:
        self._source = source
        self._rest = b""
        self.closed = False

    def read(self) -> list[str]:
        """The lines that have come in; sets `closed` at the end of file."""
        while not self.closed:
            try:
                block = self._source.recv(65536)
            except BlockingIOError:
                break
            except OSError:
                block = b""
            self.closed = not block
            self._rest += block
        *whole, self._rest = self._rest.split(b"\n")
        return [line.decode(errors="replace") for line in whole]


def decode(line: str) -> Message:
    event, detail = json.loads(line)
    return Message(event, detail)
