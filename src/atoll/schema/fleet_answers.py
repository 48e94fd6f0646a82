"""What the hosts of a fleet answered to one command: what `atoll fleet COMMAND --json` prints, and
with -o the file COMMAND.json in that folder.
"""

from __future__ import annotations

from typing import Literal

from atoll.schema.base import Record


class Clock(Record):
    """By how much a host's clock is ahead of this machine's. The true offset lies within the
    error, which is half of the time that asking took."""

    offset_s: float
    error_s: float


class HostAnswer(Record):
    host: str
    address: str
    exit_code: int  # 0: as asked; else Atoll's exit code, by what is wrong with this host
    error: str = ""  # what is wrong, and what to do
    warnings: tuple[str, ...] = ()
    clock: Clock | None = None  # None: the host was not reached
    facts: dict[str, str | int | float | None]  # what the command's table shows


class FleetAnswers(Record):
    format: Literal["atoll/fleet-answers"] = "atoll/fleet-answers"
    version: Literal[1] = 1
    command: str
    fleet: str | None = None  # the name of the deployment, for commands that have one
    asked_unix_s: float  # by this machine's clock
    hosts: tuple[HostAnswer, ...]
