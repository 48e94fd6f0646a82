"""Files that start an engine without Atoll, and engines for which Atoll writes nothing else.

Atoll cannot run such an engine, because it needs a licence or an account. What Atoll writes for it
rests on public documentation alone, and says so in each file: 'rendered, not run'.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from atoll.errors import UsageError
from atoll.schema.plan import EngineTraits, Plan, Policy

_LAST_PORT = 65535


@dataclass(frozen=True, slots=True)
class Rendering:
    """The content of a folder, by paths below it."""

    files: Mapping[str, str]
    scripts: Mapping[str, str] = field(default_factory=dict)  # executable files
    copies: Mapping[str, str] = field(default_factory=dict)  # path -> the file to copy
    links: Mapping[str, str] = field(default_factory=dict)  # path -> the link's target
    folders: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Target:
    """Where a rendered deployment will run, and under which account."""

    name: str
    folder: str  # absolute, on the machine that will run the deployment
    user: str
    port_base: int
    data: str  # the folder for whatever grows: data directories, spilled data
    image: str = ""  # the container image that has the engine; empty: no containers

    @property
    def own_data(self) -> tuple[str, ...]:
        """The path of `data` below `folder`, if it is there."""
        inside = self.data.removeprefix(f"{self.folder}/")
        return () if inside == self.data else (inside,)


class RenderedEngine(Protocol):
    """An engine that Atoll can render and cannot run."""

    @property
    def traits(self) -> EngineTraits: ...

    @property
    def policy(self) -> Policy:
        """The policy that the engine's makers recommend."""
        ...

    def render(self, plan: Plan, target: Target, places: Sequence[Sequence[str]]) -> Rendering:
        """The files of the deployment. Pure.

        `places`: for each slot the words of a numactl command that puts a program into the slot,
        the closing `--` included; empty for a slot without a place. Raises UsageError.
        """
        ...


def ports_from(first: int, count: int) -> range:
    """The `count` ports from `first` on. Raises UsageError if there are fewer."""
    if first + count - 1 > _LAST_PORT:
        raise UsageError(
            f"--port-base {first}: some of the {count} ports from there are above {_LAST_PORT}; "
            "give a lower one"
        )
    return range(first, first + count)


def coordinator_bytes(plan: Plan, traits: EngineTraits) -> int:
    """The coordinator's memory. A plan edited by hand may have no coordinator, or one without a
    heap."""
    return (plan.coordinator.heap_bytes if plan.coordinator else 0) or traits.coordinator_bytes
