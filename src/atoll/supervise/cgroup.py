"""A cgroup v2 for one deployment, if this user may make one below its own (cgroups(7)).

No process can leave a subreaper's tree while the subreaper lives. No process can leave a cgroup,
even if keeper and supervisor are both killed. So a cgroup is used in addition if possible. No
controller is enabled in it, and `cgroup.kill` (Linux 5.14) ends all of its processes at once.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from atoll.host.api import Host

_EMPTY_WITHIN_S = 10.0  # shorter than the time after which `stop.release` kills the waiting process
_POLL_S = 0.02


def place(host: Host, identity: str) -> str:
    """The path of the deployment's cgroup; '' if this user cannot make one. Makes nothing."""
    try:
        parent = _own(host)
    except OSError:
        return ""
    if parent is None or not os.access(parent / "cgroup.procs", os.W_OK):
        return ""
    return str(parent / _name(identity))


def enter(folder: str) -> None:
    """Make the cgroup and move this process into it. A refusal does not matter: there are the
    subreapers."""
    if folder:
        with contextlib.suppress(OSError):
            os.mkdir(folder)
            Path(folder, "cgroup.procs").write_text("0")


def leave(folder: str) -> None:
    """Move this process into the parent cgroup."""
    if folder:
        with contextlib.suppress(OSError):
            Path(folder).parent.joinpath("cgroup.procs").write_text("0")


def end(folder: str, identity: str) -> None:
    """Kill all processes in the cgroup and remove it, if its name is this deployment's."""
    path = Path(folder)
    if not folder or path.name != _name(identity) or not path.is_dir():
        return
    with contextlib.suppress(OSError):
        (path / "cgroup.kill").write_text("1")
    deadline = time.monotonic() + _EMPTY_WITHIN_S
    while True:
        try:
            path.rmdir()
            return
        except FileNotFoundError:
            return
        except OSError:  # EBUSY until the last process is gone
            if time.monotonic() > deadline:
                return
            time.sleep(_POLL_S)


def nearest(host: Host, name: str) -> str:
    """The path of that file in this process's cgroup v2, or in the closest one above that has it;
    '' if none has."""
    try:
        own = _own(host)
    except OSError:
        return ""
    folders = () if own is None else (own, *own.parents)
    return next((str(path) for each in folders if host.exists(str(path := each / name))), "")


def _name(identity: str) -> str:
    return f"atoll-{identity}"


def _own(host: Host) -> Path | None:
    """The folder of this process in the cgroup v2 hierarchy."""
    membership = next(
        (
            line[3:]
            for line in host.read_text("/proc/self/cgroup").splitlines()
            if line[:3] == "0::"
        ),
        None,
    )
    if membership is None:
        return None
    for line in host.read_text("/proc/self/mountinfo").splitlines():
        left, _, right = line.partition(" - ")
        if right.split()[:1] == ["cgroup2"]:
            fields = left.split()
            root, mount = fields[3], fields[4]
            # In a container the mount shows only a part of the hierarchy.
            inside = os.path.relpath(membership, root)
            return None if inside.startswith("..") else Path(mount, inside)
    return None
