"""The logs of a deployment's processes: their last lines, and lines as they are written.

They lie in the state folder and stay when the deployment ends, until the next one of that name.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from atoll.errors import NotPermitted, UsageError
from atoll.store.paths import state_path
from atoll.supervise import records
from atoll.supervise.request import SUPERVISOR_LOG
from atoll.supervise.stop import no_deployment

_BLOCK_BYTES = 1 << 16


def log_files(name: str, process: str | None) -> dict[str, Path]:
    """Process -> its log. All of the deployment's processes, or the one that is named.

    Raises UsageError."""
    records.check_name(name)
    found = {path.stem: path for path in sorted(_folder(name).glob("*.log"))}
    if not found:
        raise no_deployment(name, records.names())
    if process is None:
        return {each: path for each, path in found.items() if path.name != SUPERVISOR_LOG}
    if process not in found:
        raise UsageError(f"{name}: no process {process!r}; its logs are {', '.join(found)}")
    return {process: found[process]}


def _folder(name: str) -> Path:
    return state_path("deployments", name, "logs")


def last_lines(path: Path, count: int) -> tuple[list[str], int]:
    """The last `count` lines of a file, and where they end. Raises NotPermitted."""
    try:
        with open(path, "rb") as source:
            end = at = source.seek(0, os.SEEK_END)
            tail = b""
            # One more line break than lines: the first line found may be a part of one.
            while at > 0 and tail.count(b"\n") <= count:
                size = min(_BLOCK_BYTES, at)
                at -= size
                source.seek(at)
                tail = source.read(size) + tail
    except FileNotFoundError:
        return [], 0
    except PermissionError:
        raise NotPermitted(f"{path}: not readable by this user") from None
    lines = tail[: end - at].decode(errors="replace").splitlines()
    return (lines[-count:] if count else []), end


def follow(
    logs: Mapping[str, Path],
    ends: Mapping[str, int],
    *,
    goes_on: Callable[[], bool],
    pause: Callable[[], None],
) -> Iterator[tuple[str, str]]:
    """(process, line) of each whole line that comes after `ends`, until `goes_on` is false and
    nothing is left. A file that was replaced or cut is read from its start."""
    offsets = dict(ends)
    identities = {name: _identity(path) for name, path in logs.items()}
    lasts = True
    while lasts:
        lasts = goes_on()  # asked first: what was written before the end is read once more
        for name, path in logs.items():
            now = _identity(path)
            if now != identities[name]:
                identities[name], offsets[name] = now, 0
            for line, end in _lines_from(path, offsets[name]):
                offsets[name] = end
                yield name, line
        if lasts:
            pause()


def _identity(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return 0


def _lines_from(path: Path, offset: int) -> Iterator[tuple[str, int]]:
    """Each whole line from `offset`, and where it ends."""
    try:
        with open(path, "rb") as source:
            if source.seek(0, os.SEEK_END) < offset:
                offset = 0  # it was cut
            source.seek(offset)
            for raw in source:
                if not raw.endswith(b"\n"):
                    return  # still being written
                offset += len(raw)
                yield raw.decode(errors="replace").rstrip("\r\n"), offset
    except OSError:
        return
