"""Which engines an experiment can have here, and what nothing counts here. Not a command."""

from __future__ import annotations

import os
from collections.abc import Sequence

from atoll.errors import EngineFailed, UsageError
from atoll.host.local import LocalHost
from atoll.schema.plan import EngineTraits


def named(engines: str) -> list[str]:
    """Raises UsageError."""
    found = [one for part in engines.split(",") if (one := part.strip())]
    if not found:
        raise UsageError("--engines names no engine; give names with commas between them")
    return found


def ready(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """The engines that can start, and a line for each other one. Raises EngineFailed if none."""
    from atoll.engines.availability import look

    states = [look(name, LocalHost()) for name in names]
    ready = [one.name for one in states if one.state == "ready"]
    missing = [f"{one.name}: {one.why}" for one in states if one.state != "ready"]
    if not ready:
        raise EngineFailed(f"none of its engines can start: {'; '.join(missing)}")
    return ready, missing


def uncounted() -> dict[str, str]:
    """The terms of claims that nothing counts here, with the reason."""
    from atoll.inspect.resctrl import memory_traffic

    if memory_traffic(LocalHost(), [os.getpid()]) is not None:
        return {}
    return {
        "remote": "it needs resctrl, which alone counts remote traffic, and none counts here (on a "
        "machine that has it: mount -t resctrl resctrl /sys/fs/resctrl)"
    }


def require_spanning(names: Sequence[str]) -> None:
    """Raises UsageError unless the instances of these engines can be on several machines."""
    from atoll.engines import registry
    from atoll.engines.calls import spanning

    for name in names:
        spanning(registry.get(name), "")


def traits(names: Sequence[str]) -> list[EngineTraits]:
    from atoll.engines import registry

    return [registry.get(name).traits for name in names]
