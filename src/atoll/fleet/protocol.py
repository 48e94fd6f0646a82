"""What a controller and a host say to each other over one ssh channel, a line of JSON each.

host        {"atoll": VERSION}
controller  {"argv": [...], ...}          Request
host        {"unix_s": ...}               at once, by its clock
both        an empty line every BEAT_S    silence for SILENCE_S means that the other is gone
host        {"exit_code": ..., ...}       Reply
controller  {"keep": true}                only for Request.confirm; without it the host undoes
host        {"kept": true}
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from atoll.schema.base import Record
from atoll.schema.inventory import HostName

BEAT_S = 5.0
SILENCE_S = 20.0
LARGEST_LINE = 64 << 20


class Hello(Record):
    atoll: str = Field(max_length=100)


class Request(Record):
    argv: tuple[str, ...]  # of `atoll`
    document: str | None = None  # the file that stands in argv as FILE
    results: HostName | None = None  # the name of a results file that the command writes to `-o`
    limit_s: float | None = None  # None: the command limits itself
    confirm: str | None = None  # the deployment that it starts, ended if nobody confirms


FILE = "{file}"


class Time(Record):
    unix_s: float = Field(ge=0, allow_inf_nan=False)


class Reply(Record):
    exit_code: int
    stdout: str
    stderr: str
    results: str | None = None
    results_path: str = ""


class Keep(Record):
    keep: Literal[True] = True


class Kept(Record):
    kept: Literal[True] = True
