"""The journal on disk.

    FOLDER/journal.json   atoll/knobs 1; replaced by write, fsync, rename, fsync of the folder
    FOLDER/lock           flock, held by the one command that may write

The folder is root's. Everybody may read it: the old values are no secret, and who is not root
needs them to print a script. The lock file is never removed: two openers could hold locks on two
files of the same name otherwise.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from atoll.errors import CheckFailed, DownloadFailed, NotPermitted
from atoll.host.api import Host
from atoll.schema.base import parse
from atoll.schema.knobs import Journal
from atoll.store.files import write_atomic

FOLDER = Path("/var/lib/atoll/knobs")
_WAIT_S = 10
_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}


class JournalFolder:
    def __init__(self, folder: Path = FOLDER) -> None:
        self.folder = folder
        self.path = folder / "journal.json"
        self.lock = folder / "lock"

    def text(self) -> str | None:
        """None: no knob was ever turned on this machine."""
        try:
            return self.path.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return None
        except OSError as fault:
            raise NotPermitted(f"{self.path}: not readable ({fault.strerror})") from None

    def read(self) -> Journal | None:
        text = self.text()
        return None if text is None else parse(Journal, text, where=str(self.path))

    def keep(self, journal: Journal) -> None:
        write_atomic(self.path, dumped(journal))

    @contextlib.contextmanager
    def locked(self, host: Host, *, wait_s: float = _WAIT_S) -> Iterator[None]:
        """Be the one command that writes. Raises NotPermitted without the right to, CheckFailed
        if another one has it for longer than `wait_s`."""
        descriptor = self._opened()
        try:
            until_s = host.monotonic() + wait_s
            while not _taken(descriptor):
                if host.monotonic() >= until_s:
                    raise CheckFailed(f"{self.lock}: held by another atoll knobs; try again")
                host.sleep(0.05)
            for half_written in self.folder.glob(f".{self.path.name}.*"):
                half_written.unlink(missing_ok=True)  # by one that was killed
            yield
        finally:
            os.close(descriptor)

    def _opened(self) -> int:
        try:
            self.folder.mkdir(mode=0o755, parents=True, exist_ok=True)
            descriptor = os.open(self.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as fault:
            kind = NotPermitted if fault.errno in _FORBIDDEN else DownloadFailed
            raise kind(f"{self.folder}: cannot keep a journal ({fault.strerror})") from None
        return descriptor


def dumped(journal: Journal) -> str:
    """As it stands on disk."""
    return journal.model_dump_json(indent=1) + "\n"


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
