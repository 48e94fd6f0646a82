"""A cgroup v2 of the deployment's own, where this user may make one below its own (cgroups(7)).

Leaving a subreaper's tree is impossible while it lives; leaving a cgroup is impossible also
when keeper and supervisor were both killed. So where one can be had, it is used on top: no
controller is enabled in it, and `cgroup.kill` (Linux 5.14) ends all that is in it at once.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from atoll.host.api import Host

_EMPTY_WITHIN_S = 10.0  # well within the time after which `stop.release` kills who waits here
_POLL_S = 0.02


def place(host: Host, identity: str) -> str:
    """The folder that it would have; '' where this user can make none. Nothing is made yet."""
    try:
        parent = _own(host)
    except OSError:
        return ""
    if parent is None or not os.access(parent / "cgroup.procs", os.W_OK):
        return ""
    return str(parent / _name(identity))


def enter(folder: str) -> None:
    """Make it and move this process in; a refusal is no fault, the subreapers hold without it."""
    if folder:
        with contextlib.suppress(OSError):
            os.mkdir(folder)
            Path(folder, "cgroup.procs").write_text("0")


def leave(folder: str) -> None:
    """Move this process back out, into the cgroup above."""
    if folder:
        with contextlib.suppress(OSError):
            Path(folder).parent.joinpath("cgroup.procs").write_text("0")


def end(folder: str, identity: str) -> None:
    """Kill all that is in it and remove it. Only a folder of this deployment's own name."""
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
        except OSError:  # EBUSY until the last one is gone
            if time.monotonic() > deadline:
                return
            time.sleep(_POLL_S)


def _name(identity: str) -> str:
    return f"atoll-{identity}"


def _own(host: Host) -> Path | None:
    """This process's folder in the cgroup v2 hierarchy."""
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
            # In a container the mount shows a part of the hierarchy only.
            inside = os.path.relpath(membership, root)
            return None if inside.startswith("..") else Path(mount, inside)
    return None
