"""The records of deployments on disk, and the lock of each name.

    $XDG_STATE_HOME/atoll/deployments/NAME/lock             flock, held by keeper and supervisor
                                          /deployment.json  atoll/deployment 1, renamed into place
                                          /logs/PROCESS.log

Keeper and supervisor inherit the lock as one open file description, so it is free exactly when
both are gone, however they ended. The lock file is never removed: otherwise two processes could
hold locks on two files of the same name.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from atoll.errors import NotPermitted, UsageError
from atoll.store import locks
from atoll.store.files import refusal, write_atomic
from atoll.store.paths import state_dir, state_path

if TYPE_CHECKING:
    from atoll.host.api import Host
    from atoll.schema.deployment import Deployment

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}")
BOOT_ID = "/proc/sys/kernel/random/boot_id"


def check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} cannot name a deployment: use up to 32 letters, digits, '.', '_' or '-'"
        )


def folder(name: str) -> Path:
    check_name(name)
    return state_dir("deployments", name)


def logs(name: str) -> Path:
    check_name(name)
    return state_dir("deployments", name, "logs")


def names() -> list[str]:
    """Every name with a record, sorted."""
    return sorted(path.parent.name for path in state_path("deployments").glob("*/deployment.json"))


def path_of(name: str) -> Path:
    """Where the record is, or would be; makes nothing."""
    check_name(name)
    return state_path("deployments", name, "deployment.json")


def read(name: str) -> Deployment | None:
    path = path_of(name)
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return None
    except PermissionError:
        raise NotPermitted(f"{path}: not readable by this user") from None
    from atoll.schema.base import parse  # not above: `atoll ps` starts without it if nothing is up
    from atoll.schema.deployment import Deployment

    return parse(Deployment, text, where=str(path))


def write(deployment: Deployment) -> None:
    """Write the record, readable only for its user: environments may contain secrets."""
    write_atomic(
        folder(deployment.name) / "deployment.json",
        deployment.model_dump_json(indent=1) + "\n",
        mode=0o600,
    )


def forget(name: str) -> None:
    """Remove the record; the logs stay."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(folder(name) / "deployment.json")


def own_folders(deployment: Deployment) -> list[str]:
    """The folders of the record whose name is the deployment's id; others are ignored, because a
    record can be edited."""
    paths = (Path(deployment.run_dir), Path(deployment.scratch_dir))
    return [
        str(path)
        for path in paths
        if path.is_absolute() and deployment.id and path.name == deployment.id
    ]


def remove_folders(deployment: Deployment) -> None:
    for path in own_folders(deployment):
        link = lasting_path(path, deployment.name)
        with contextlib.suppress(OSError):
            if os.readlink(link) == path:
                os.unlink(link)
        shutil.rmtree(path, ignore_errors=True)


def lasting_path(run_dir: str, name: str) -> str:
    """A link to the run folder. The next deployment of that name has the same, so that clients
    find its sockets again."""
    return os.path.join(os.path.dirname(run_dir), f"up-{name}")  # no id has a hyphen


def link_run_dir(run_dir: str, name: str) -> None:
    """Make the lasting path of the run folder. Raises NotPermitted or DiskFull."""
    link = lasting_path(run_dir, name)
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(link)  # of a deployment that was killed
        os.symlink(run_dir, link)
    except OSError as fault:
        raise refusal(fault)(f"{link}: cannot be made ({fault.strerror})") from None


def try_lock(name: str) -> int | None:
    """The descriptor of the lock, or None if a keeper or supervisor of that name is alive.

    Raises NotPermitted or DiskFull.
    """
    path = folder(name) / "lock"
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as fault:
        raise refusal(fault)(f"{path}: cannot be opened ({fault.strerror})") from None
    if not locks.try_lock(descriptor):
        os.close(descriptor)
        return None
    return descriptor


def is_held(name: str) -> bool:
    """Whether a deployment of that name starts, is up, or is being ended. A failed one is not."""
    return locks.is_locked(state_path("deployments", name, "lock"))


def boot_id(host: Host) -> str:
    return host.read_text(BOOT_ID).strip()
