"""A command's output, read while it grows: the file that a pipe in the guest flows into.

The guest writes MARK into the pipe when the command has ended (inside/serve.sh). What follows it
is of daemons that the command left behind, and belongs to nobody.
"""

from __future__ import annotations

import time
from pathlib import Path

from atoll.guest.qemu import GuestDied

MARK = b"\0atoll:end\0"
PATIENCE_S = 30.0  # from the command's end to its mark; it only has to pass through a pipe
POLL_S = 0.01


def split(data: bytes) -> tuple[bytes, bytes, bool]:
    """Output that is sure, what may be the beginning of the mark, and whether the mark came."""
    before, mark, _ = data.partition(MARK)
    if mark:
        return before, b"", True
    for length in range(min(len(MARK) - 1, len(data)), 0, -1):
        if MARK.startswith(data[-length:]):
            return data[:-length], data[-length:], False
    return data, b"", False


class Output:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._held = b""
        self._ended = False

    def read_new(self) -> bytes:
        """What has come since the last time."""
        if self._ended:
            return b""
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return b""  # the guest has not come to it yet
        self._offset += len(data)
        sure, self._held, self._ended = split(self._held + data)
        return sure

    def read_text(self) -> str:
        return self.read_new().decode(errors="replace")

    def read_all(self) -> bytes:
        """What has not been read yet, of a command that has ended. Raises GuestDied where the
        end of it does not come, because the host has no room for it."""
        deadline = time.monotonic() + PATIENCE_S
        found = self.read_new()
        while not self._ended and time.monotonic() < deadline:
            time.sleep(POLL_S)
            found += self.read_new()
        if not self._ended:
            raise GuestDied(f"{self._path}: a command's output is cut off; is there no room left?")
        return found
