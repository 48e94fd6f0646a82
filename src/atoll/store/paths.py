"""Atoll's folders, placed by the XDG base directory specification. Made on demand, mode 0700.

These functions raise NotPermitted if a folder cannot be made, DiskFull if the disk is full.

- cache: data sets, unpacked packages; the user may delete it at any time.
- state: deployments, logs, results without a name of their own.
- run: sockets. The path is short, because paths of UNIX sockets end at 107 bytes.
"""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

from atoll.errors import NotPermitted
from atoll.host.caller import user_id, variable
from atoll.store.files import refusal


def cache_dir(*parts: str) -> Path:
    path = _base("XDG_CACHE_HOME", ".cache").joinpath("atoll", *parts)
    return make_folder(path, setting="XDG_CACHE_HOME")


def state_dir(*parts: str) -> Path:
    return make_folder(state_path(*parts), setting="XDG_STATE_HOME")


def state_path(*parts: str) -> Path:
    """As `state_dir`, without making the folder."""
    return _base("XDG_STATE_HOME", ".local/state").joinpath("atoll", *parts)


def new_results(name: str, suffix: str = ".json") -> Path:
    """A file for results that the user gave no name of their own, by the time of now."""
    return state_dir("results") / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}{suffix}"


def run_dir(*parts: str) -> Path:
    """A folder below $XDG_RUNTIME_DIR, else below /tmp/atoll-UID.

    Other users can write to /tmp, so that folder must belong to this user, with mode 0700. Raises
    NotPermitted also if another user made it.
    """
    given = variable("XDG_RUNTIME_DIR")
    if given and os.path.isdir(given) and len(given) < 40:
        return make_folder(Path(given, "atoll", *parts))
    base = Path("/tmp", f"atoll-{user_id()}")
    private = make_folder(base)
    found = os.lstat(private)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != user_id() or found.st_mode & 0o077:
        raise NotPermitted(
            f"{base}: not a private folder of this user; remove it or set XDG_RUNTIME_DIR"
        )
    return make_folder(base.joinpath(*parts))


def _base(name: str, default: str) -> Path:
    given = variable(name)
    # The specification says to ignore a relative path.
    return Path(given) if os.path.isabs(given) else Path.home() / default


def make_folder(path: Path, *, setting: str = "") -> Path:
    """Make the folder unless it exists, and return it. `setting`: the variable that moves it."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as fault:
        remedy = f"; set {setting} to use another folder" if setting else ""
        raise refusal(fault)(
            f"{path}: cannot make this folder ({fault.strerror}){remedy}"
        ) from None
    return path
