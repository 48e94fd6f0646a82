"""What a controller and a host say to each other over one ssh channel, a line of JSON each.

    host        {"atoll": VERSION}
    controller  {"argv": [...], ...}          Request
    host        {"unix_s": ...}               at once, by its clock
    both        an empty line every BEAT_S    silence for SILENCE_S means that the other is gone
    host        {"exit_code": ..., ...}       Reply
    controller  {"keep": true}                only for Request.confirm; without it the host undoes
    host        {"kept": true}

Dataclasses without pydantic, which would be most of what a host does for a short command. The
controller checks what it hears against their types; a host believes its controller, who may run
anything there.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import ClassVar

BEAT_S = 5.0
SILENCE_S = 20.0
LARGEST_LINE = 64 << 20
LARGEST_ANSWER = 16 << 20  # without results; reading it takes up to 2 s, and the others wait

FILE, SECRET = "{file}", "{secret}"  # stand in argv for a path


@dataclass(frozen=True)
class Message:
    # For pydantic, in the controller.
    __pydantic_config__: ClassVar[dict[str, object]] = {"extra": "forbid", "allow_inf_nan": False}


@dataclass(frozen=True)
class Hello(Message):
    atoll: str


@dataclass(frozen=True)
class Request(Message):
    argv: tuple[str, ...]  # of `atoll`
    document: str | None = None  # the text of the file that stands in argv as FILE
    secret: str | None = None  # that of SECRET
    results: str | None = None  # the name of a results file that the command writes to `-o`
    limit_s: float | None = None  # None: the command limits itself
    confirm: str | None = None  # the deployment that it starts, ended if nobody confirms


@dataclass(frozen=True)
class Time(Message):
    unix_s: float


@dataclass(frozen=True)
class Reply(Message):
    exit_code: int
    stdout: str
    stderr: str
    results: str | None = None


@dataclass(frozen=True)
class Keep(Message):
    keep: bool = True


@dataclass(frozen=True)
class Kept(Message):
    kept: bool = True


def line(message: Message) -> bytes:
    return json.dumps(asdict(message)).encode() + b"\n"
