"""Which engines can be started here, and which parts an engine still wants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from atoll.engines import registry
from atoll.engines.clients import ClientLacking
from atoll.engines.java import find_java
from atoll.errors import EngineFailed, NotPermitted
from atoll.host.api import Host
from atoll.install.catalog import ENGINES, PARTS, Part
from atoll.install.parts import installed, tree_bytes, version_in

# installed: it is there, and yet it cannot be started; `why` says what is missing.
# not permitted: it is there, but not for this user (PostgreSQL refuses root).
State = Literal["ready", "installed", "missing", "not permitted"]


@dataclass(frozen=True, slots=True)
class PartState:
    name: str
    version: str
    folder: str  # '' if it is not there
    size_bytes: int  # on disk, else what it comes to


@dataclass(frozen=True, slots=True)
class EngineState:
    name: str
    state: State
    version: str  # '' where that is not known
    home: str
    why: str
    parts: tuple[PartState, ...]

    @property
    def size_bytes(self) -> int:
        """What Atoll's cache holds of it."""
        return sum(part.size_bytes for part in self.parts if part.folder)


def look(name: str, host: Host) -> EngineState:
    """Looks for the engine as `atoll up` would. Raises UsageError if no engine is named so."""
    parts = tuple(_part_state(PARTS[part]) for part in ENGINES.get(name, ()))
    state: State
    try:
        found = registry.get(name).locate(host)
    except NotPermitted as fault:
        state, why = "not permitted", str(fault)
    except ClientLacking as fault:
        state, why = "installed", str(fault)
    except EngineFailed as fault:
        there = bool(parts) and all(part.folder for part in parts)
        state, why = ("installed" if there else "missing"), str(fault)
    else:
        return EngineState(name, "ready", found.version, found.home, "", parts)
    first = next((part for part in parts if part.folder), None)
    return EngineState(
        name, state, first.version if first else "", first.folder if first else "", why, parts
    )


def _part_state(part: Part) -> PartState:
    folder = installed(part.name)
    if not folder:
        return PartState(part.name, part.version, "", part.unpacked_bytes)
    return PartState(part.name, version_in(part, folder), folder, tree_bytes(folder))


def wanted_parts(state: EngineState, host: Host) -> list[Part]:
    """What is to be fetched so that the engine can be started. Of what the machine has itself only
    Java is seen apart."""
    if state.state != "missing":
        return []
    lacking = [PARTS[part.name] for part in state.parts if not part.folder]
    return [part for part in lacking if part.java is None or not _has_java(part, state.name, host)]


def _has_java(part: Part, engine: str, host: Host) -> bool:
    assert part.java is not None
    try:
        find_java(
            host,
            major=part.java.major,
            or_later=part.java.or_later,
            wanted_by=engine,
            engine=engine,
            part="",
        )
    except EngineFailed:
        return False
    return True
