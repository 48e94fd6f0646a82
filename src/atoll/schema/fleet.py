"""What `atoll fleet up` has started, on which hosts. It is written before anything starts there, so
that `atoll fleet down` ends it all also after the controller was killed. A host leaves the record
when nothing of the deployment runs there any more.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from atoll.schema.base import Record
from atoll.schema.inventory import Address, HostName, Path, User


class Reach(Record):
    """A host of an inventory with every value filled in."""

    name: HostName
    address: Address
    port: int = Field(ge=1, le=65535)
    user: User
    key_file: Path | None
    known_hosts: Path
    atoll: Path


class Fleet(Record):
    format: Literal["atoll/fleet"] = "atoll/fleet"
    version: Literal[1] = 1
    name: str
    # Of the deployment on every host: the fleet's name and a random word, so that no deployment of
    # the same name is mistaken for it.
    deployment: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$")
    created_unix_s: float
    hosts: tuple[Reach, ...]
