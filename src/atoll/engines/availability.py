"""Which engines can start here, and which parts an engine lacks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from atoll.engines import registry
from atoll.engines.api import Installation
from atoll.engines.calls import located
from atoll.engines.facts import facts_of
from atoll.engines.java import find_java
from atoll.errors import ClientMissing, EngineFailed, NotPermitted
from atoll.host.api import Host
from atoll.install.catalog import Catalog, Java, Part
from atoll.install.listing import damage
from atoll.install.parts import installed, kept_by, tree_bytes, version_in
from atoll.install.progress import Tell

# installed: present, but unusable; `why` says what is missing.
# damaged: unusable, because a fetched part in the cache has changed.
# not permitted: this user may not run it (some servers refuse root).
State = Literal["ready", "installed", "damaged", "missing", "not permitted"]


@dataclass(frozen=True, slots=True)
class PartState:
    name: str
    version: str
    folder: str  # empty: not installed
    size_bytes: int  # on disk if it is installed, else what it will take
    damage: str  # what has changed; empty: nothing


@dataclass(frozen=True, slots=True)
class EngineState:
    name: str
    state: State
    version: str  # empty: unknown
    home: str
    why: str
    parts: tuple[PartState, ...]
    kept_bytes: int  # the engine's tables in Atoll's cache
    java: str = ""  # the program that runs it, for a JVM engine that can start
    java_version: str = ""

    @property
    def size_bytes(self) -> int:
        """What the engine takes in Atoll's cache."""
        return self.kept_bytes + sum(part.size_bytes for part in self.parts if part.folder)


def names() -> tuple[str, ...]:
    """The engines, and the other programs that are installed as they are."""
    return (*registry.names(), *registry.programs())


def catalog() -> Catalog:
    """The parts of every engine that Atoll can fetch. It leaves out engines that cannot be
    loaded."""
    parts = {name: _parts(name) for name in names()}
    return {name: known for name, known in parts.items() if known is not None}


def _parts(name: str) -> tuple[Part, ...] | None:
    try:
        return facts_of(registry.programs().get(name) or registry.get(name)).parts
    except EngineFailed:
        return None


def _located(name: str, host: Host) -> Installation:
    program = registry.programs().get(name)
    return program.locate(host) if program else located(registry.get(name), host)


def look(name: str, host: Host, *, checking: Tell | None = None) -> EngineState:
    """Looks for the engine as `atoll up` would. Raises UsageError if no engine has that name.

    `checking`: also read every file of the parts, and report it.
    """
    known = _parts(name)
    parts = tuple(_part_state(part, checking) for part in known or ())
    kept_bytes = tree_bytes(kept_by(name)) if known is not None else 0
    broken = [part for part in parts if part.damage]
    state: State
    try:
        found = _located(name, host)
        for part in broken:
            if any(path.startswith(f"{part.folder}/") for path in (f"{found.home}/", found.java)):
                raise EngineFailed("it would use a damaged part")
    except NotPermitted as fault:
        state, why = "not permitted", str(fault)
    except ClientMissing as fault:
        state, why = "installed", str(fault)
    except EngineFailed as fault:
        complete = bool(parts) and all(part.folder for part in parts)
        state, why = ("installed" if complete else "missing"), str(fault)
        if broken:
            state = "damaged"
            why = f"{broken[0].damage}; fetch it again with: atoll engine install {name}"
    else:
        return EngineState(
            *(name, "ready", found.version, found.home, "", parts, kept_bytes),
            *(found.java, found.java_version),
        )
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
    """The parts to fetch so that the engine can start. Of the parts that the machine may have
    itself, only Java is looked for."""
    incomplete = state.state in ("missing", "damaged")
    return [
        part
        for part, found in zip(_parts(state.name) or (), state.parts, strict=True)
        if (found.damage or (incomplete and not found.folder))
        and (part.java is None or not _has_java(part.java, state.name, host))
    ]


def _has_java(java: Java, engine: str, host: Host) -> bool:
    try:
        find_java(
            host,
            major=java.major,
            or_later=java.or_later,
            wanted_by=engine,
            engine=engine,
            part="",
        )
    except EngineFailed:
        return False
    return True
