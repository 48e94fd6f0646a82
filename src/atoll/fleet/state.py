"""The records of fleets' deployments on this machine, and the lock of each name.

$XDG_STATE_HOME/atoll/fleets/NAME.json   atoll/fleet 1, renamed into place
                            /NAME.lock   flock, held by the command that works on it
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from atoll.errors import UsageError
from atoll.schema.fleet import Fleet
from atoll.store.document import read_document
from atoll.store.files import refusal, write_atomic
from atoll.store.locks import try_lock
from atoll.store.paths import state_dir, state_path


def names() -> list[str]:
    """The fleets that are up, or not yet ended everywhere; sorted."""
    return sorted(path.stem for path in state_path("fleets").glob("*.json"))


def find(name: str | None) -> Fleet:
    """The fleet of that name; None: the only one. Raises UsageError."""
    known = names()
    if name is None:
        if len(known) != 1:
            raise UsageError(f"name the fleet ({', '.join(known)})" if known else "no fleet is up")
        (name,) = known
    if name not in known:
        raise UsageError(f"no fleet {name!r}; up: {', '.join(known) or 'none'}")
    return read_document(Fleet, state_path("fleets") / f"{name}.json")


def write(fleet: Fleet) -> None:
    """Raises NotPermitted or DiskFull."""
    path = state_dir("fleets") / f"{fleet.name}.json"
    write_atomic(path, fleet.model_dump_json(indent=1) + "\n", mode=0o600)


def forget(name: str) -> None:
    (state_path("fleets") / f"{name}.json").unlink(missing_ok=True)


@contextmanager
def held(name: str) -> Iterator[None]:
    """No other command changes the fleet meanwhile. Raises UsageError if one does, NotPermitted,
    DiskFull."""
    path = state_dir("fleets") / f"{name}.lock"  # never removed: see supervise.records
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as fault:
        raise refusal(fault)(f"{path}: cannot be opened ({fault.strerror})") from None
    try:
        if not try_lock(descriptor):
            raise UsageError(f"another command starts or ends fleet {name!r}; wait for it")
        yield
    finally:
        os.close(descriptor)
