"""The machines that `atoll fleet` works on, and how it reaches each over ssh; written by hand.

What all hosts have in common (`user`, `port`, `key_file`, `known_hosts`, `atoll`) may stand at the
top; a host's own value goes before it. Relative paths start at the folder of the file. The file
holds no secret: keys stay in their files, or in ssh's agent.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from atoll.schema.base import Record

MOST_HOSTS = 1000


def _matching(pattern: str, what: str) -> Callable[[str], str]:
    wanted = re.compile(pattern)

    def check(text: str) -> str:
        if not wanted.fullmatch(text):
            raise ValueError(f"{text!r} is not {what}")
        return text

    return check


# Names of hosts become names of folders, so none starts with a dot.
HostName = Annotated[
    str,
    AfterValidator(
        _matching(
            r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", "a name of up to 63 letters, digits, '.', '_', '-'"
        )
    ),
]
Address = Annotated[
    str,
    AfterValidator(
        _matching(r"[A-Za-z0-9:][A-Za-z0-9.:_-]{0,252}", "a host name or an IP address")
    ),
]
User = Annotated[
    str, AfterValidator(_matching(r"[A-Za-z_][A-Za-z0-9._@\\-]{0,63}\$?", "the name of a user"))
]
Path = Annotated[
    str, AfterValidator(_matching(r"[^-\x00-\x1f\x7f][^\x00-\x1f\x7f]{0,1023}", "a path"))
]


def _spelt_once(address: str) -> str:
    """DNS ignores the case of a name; an IPv6 address may leave out its zeros."""
    try:
        return str(ipaddress.ip_address(address))
    except ValueError:
        return address.lower().removesuffix(".")


class Login(Record):
    """How to log in; what is null is taken from the top of the file, else as each line says."""

    user: User | None = None  # must be given in one of the two places
    port: int | None = Field(default=None, ge=1, le=65535, strict=True)  # 22
    key_file: Path | None = None  # the agent's keys and those of ~/.ssh, as ssh does
    known_hosts: Path | None = None  # ~/.ssh/known_hosts
    atoll: Path | None = None  # the program on the host: `atoll`, found on the PATH there


class InventoryHost(Login):
    name: HostName  # what Atoll calls the machine
    address: Address  # a DNS name or an IP address


class Inventory(Login):
    format: Literal["atoll/inventory"] = "atoll/inventory"
    version: Literal[1] = 1
    hosts: tuple[InventoryHost, ...] = Field(min_length=1, max_length=MOST_HOSTS)

    @model_validator(mode="after")
    def _hosts_differ(self) -> Self:
        names, doors = set[str](), dict[tuple[str, int], str]()
        for host in self.hosts:
            door = (_spelt_once(host.address), host.port or self.port or 22)
            if host.name in names:
                raise ValueError(f"two hosts are called {host.name!r}")
            if door in doors:
                raise ValueError(f"hosts {doors[door]!r} and {host.name!r} have the same address")
            if host.user is None and self.user is None:
                raise ValueError(f"host {host.name!r} has no user; give one to it or to all")
            names.add(host.name)
            doors[door] = host.name
        return self
