"""Which engines can be started here, and which parts an engine still wants."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from atoll.engines import registry
from atoll.engines.calls import located
from atoll.engines.java import find_java
from atoll.errors import ClientMissing, EngineFailed, NotPermitted
from atoll.host.api import Host
from atoll.install.catalog import ENGINES, PARTS, Part
from atoll.install.listing import damage
from atoll.install.parts import installed, kept_by, tree_bytes, version_in
from atoll.install.progress import Tell

# installed: it is there, and yet it cannot be started; `why` says what is missing.
# damaged: so, because a part in the cache is not as it was put there.
# not permitted: it is there, but not for this user (PostgreSQL refuses root).
State = Literal["ready", "installed", "damaged", "missing", "not permitted"]


@dataclass(frozen=True, slots=True)
class PartState:
    name: str
    version: str
    folder: str  # '' if it is not there
    size_bytes: int  # on disk, else what it comes to
    damage: str  # '' for a whole one


@dataclass(frozen=True, slots=True)
class EngineState:
    name: str
    state: State
    version: str  # '' where that is not known
    home: str
    why: str
    parts: tuple[PartState, ...]
    kept_bytes: int  # what it keeps in Atoll's cache: tables

    @property
    def size_bytes(self) -> int:
        """What Atoll's cache holds of it."""
        return self.kept_bytes + sum(part.size_bytes for part in self.parts if part.folder)


def look(name: str, host: Host, *, checking: Tell | None = None) -> EngineState:
    """Looks for the engine as `atoll up` would. Raises UsageError if no engine is named so.

    `checking`: also read every file of its parts, and tell that."""
    parts = tuple(_part_state(PARTS[part], checking) for part in ENGINES.get(name, ()))
    kept_bytes = tree_bytes(kept_by(name)) if name in ENGINES else 0
    broken = [part for part in parts if part.damage]
    state: State
    try:
        found = located(registry.get(name), host)
        for part in broken:
            if any(path.startswith(f"{part.folder}/") for path in (f"{found.home}/", found.java)):
                raise EngineFailed("a damaged part of it would be used")
    except NotPermitted as fault:
        state, why = "not permitted", str(fault)
    except ClientMissing as fault:
        state, why = "installed", str(fault)
    except EngineFailed as fault:
        there = bool(parts) and all(part.folder for part in parts)
        state, why = ("installed" if there else "missing"), str(fault)
        if broken:
            state = "damaged"
            why = f"{broken[0].damage}; fetch it anew with: atoll engine install {name}"
    else:
        return EngineState(name, "ready", found.version, found.home, "", parts, kept_bytes)
    first = next((part for part in parts if part.folder), None)
    version, folder = (first.version, first.folder) if first else ("", "")
    return EngineState(name, state, version, folder, why, parts, kept_bytes)


def _part_state(part: Part, checking: Tell | None) -> PartState:
    folder = installed(part.name)
    if not folder:
        return PartState(part.name, part.version, "", part.unpacked_bytes, "")
    if checking is not None:
        checking(f"checking {part.name}")
    return PartState(
        part.name,
        version_in(part, folder),
        folder,
        tree_bytes(folder),
        damage(Path(folder), contents=checking is not None),
    )


def wanted_parts(state: EngineState, host: Host) -> list[Part]:
    """What is to be fetched so that the engine can be started. Of what the machine has itself only
    Java is seen apart."""
    lacks = state.state in ("missing", "damaged")
    lacking = [
        PARTS[part.name] for part in state.parts if part.damage or (lacks and not part.folder)
    ]
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
