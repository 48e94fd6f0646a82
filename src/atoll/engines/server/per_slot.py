"""What PostgreSQL and MariaDB have in common: a whole server per slot, with a data directory of its
own that begins as a copy of a template, the empty one or one with tables in it.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from atoll.engines.api import Data, Installation, Table
from atoll.engines.loading import instance as template_instance
from atoll.engines.loading.templates import loaded_path
from atoll.engines.userconfig.tree import UserTree
from atoll.errors import EngineFailed, NotPermitted, UsageError
from atoll.host.api import Host
from atoll.host.caller import clean_environment
from atoll.schema.plan import EngineTraits, Plan

# What Atoll unpacks keeps the folders of the system's own package.
_UNPACKED = re.compile(r"(?P<root>.+)/usr(?:/lib/postgresql/\d+/bin)?")


@dataclass(frozen=True, slots=True)
class ServerPerSlot(ABC):
    """An engine of such servers but for its layout, its clients and its way to load."""

    data: Data | None = None
    base: UserTree | None = None
    durable: bool = False

    title: ClassVar[str]
    own_traits: ClassVar[EngineTraits]  # with a configuration of Atoll's

    @property
    def traits(self) -> EngineTraits:
        if self.base is None:
            return self.own_traits
        taken = {name: size for name, size in self.takes(self.base).items() if size}
        if not taken:
            return self.own_traits
        source = f"{self.base.root} ({', '.join(taken)})"
        counted = {"asked_bytes": sum(taken.values()), "asked_source": source}
        return self.own_traits.model_copy(update=counted)

    @abstractmethod
    def takes(self, base: UserTree) -> dict[str, int]:
        """Setting -> bytes that it has each server take beside the buffer pool."""

    def ports(self, plan: Plan) -> int:
        return 0

    def attach(self, table: Table) -> list[str]:
        if self.data is not None and table in self.data.tables:
            return []
        raise UsageError(
            f"{self.title} cannot read Parquet files in place; table {table.name} must be loaded, "
            "as 'atoll bench' does"
        )

    def holding(self, data: Data) -> Self:
        return replace(self, data=data)

    def standing(self) -> Self:
        return replace(self, durable=True)

    def command(
        self, installation: Installation, data: str, *, make: Sequence[str], server: Sequence[str]
    ) -> tuple[str, ...]:
        """Of an instance with its data directory `data`; `make` makes the empty template."""
        empty = template_path(installation)
        return (
            *(sys.executable, "-IS", template_instance.__file__),
            *(empty if self.data is None else loaded_path(empty, self.data), data),
            *(make if self.data is None else ()),
            *("--", *server),
        )


def template_path(installation: Installation) -> str:
    """Where the empty data directory lies that `template_instance` copies."""
    # Two builds of one version may differ in how they lay out their pages.
    build = hashlib.sha256(installation.home.encode()).hexdigest()[:8]
    return f"{installation.cache}/{installation.version}-{build}"


def refuse_root(title: str, engine: str) -> None:
    """Raises NotPermitted."""
    if os.geteuid() == 0:
        raise NotPermitted(
            f"{title} refuses to run as root; run atoll as an ordinary user: "
            f"sudo -u NAME atoll up {engine}"
        )


def environment(home: str) -> dict[str, str]:
    """Programs find the rest of an unpacked package themselves, but for libraries beside it."""
    unpacked = _UNPACKED.fullmatch(home)
    if unpacked is None:
        return {}
    return {"LD_LIBRARY_PATH": f"{unpacked['root']}/usr/lib/{platform.machine()}-linux-gnu"}


# ---- where it is ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sought:
    """A server that is looked for."""

    title: str  # 'PostgreSQL'
    engine: str
    oldest: tuple[int, ...]
    programs: Callable[[str], tuple[str, str]]  # of a home: the server, and what makes its data
    asked: tuple[str, ...]  # arguments to which the server tells its version
    told: re.Pattern[str]  # the version, and in further groups what `oldest` is compared with


def find_server(host: Host, homes: Iterable[str], sought: Sought) -> tuple[str, str]:
    """(version, home) of the first that runs and is new enough.

    Raises EngineFailed naming what was found."""
    found: dict[str, str] = {}
    for home in homes:
        server, maker = sought.programs(home)
        if home in found or not host.exists(maker):
            continue
        told = _told(host, (server, *sought.asked), environment(home), sought.told)
        if told is not None and tuple(map(int, told.groups()[1:])) >= sought.oldest:
            return told[1], home
        found[home] = f"is {told[1]}" if told else "does not run"
    have = ", ".join(f"that in {home} {how}" for home, how in found.items())
    program = os.path.basename(sought.programs("")[0])
    raise EngineFailed(
        f"{sought.title} {'.'.join(map(str, sought.oldest))} or later is needed; "
        f"{have or 'none was found'}; fetch it with: atoll engine install {sought.engine}, or put "
        f"its '{program}' on the PATH"
    )


def _told(
    host: Host, argv: Sequence[str], env: Mapping[str, str], pattern: re.Pattern[str]
) -> re.Match[str] | None:
    try:
        done = host.run(argv, timeout_s=20, env={**clean_environment(), **env})
    except OSError:
        return None
    return pattern.search(done.stdout)
