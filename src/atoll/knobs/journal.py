"""The journal on disk.

    FOLDER/journal.json   atoll/knobs 1; replaced by write, fsync, rename, fsync of the folder
    FOLDER/lock           flock, held by the one command that may write

The folder belongs to root. All users may read it: the old values are no secret, and other users
need them to print a script. Only root may write there, because undo writes the values in the
journal; and a journal can only name files of knobs. The lock file is never removed; otherwise two
processes could hold locks on two files of the same name.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from atoll.errors import AtollError, CheckFailed, DownloadFailed, NotPermitted, UsageError
from atoll.host.api import Host
from atoll.host.caller import user_id
from atoll.knobs.catalog import has_file
from atoll.schema.base import parse
from atoll.schema.knobs import Journal
from atoll.store.files import write_atomic
from atoll.store.locks import try_lock

FOLDER = Path("/var/lib/atoll/knobs")
_WAIT_S = 10
_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}


class JournalFolder:
    def __init__(self, folder: Path = FOLDER) -> None:
        self.folder = folder
        self.path = folder / "journal.json"
        self.lock = folder / "lock"

    def text(self) -> str | None:
        """None if no knob was ever turned on this machine."""
        try:
            return self.path.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return None
        except OSError as fault:
            raise NotPermitted(f"{self.path}: not readable ({fault.strerror})") from None

    def read(self) -> Journal | None:
        text = self.text()
        return None if text is None else self.parsed(text)

    def parsed(self, text: str) -> Journal:
        """Parses the text of `text()`. Raises UsageError, also for a switch that belongs to no
        knob."""
        journal = parse(Journal, text, where=str(self.path))
        for switch in journal.switches:
            if not has_file(switch.knob, switch.path):
                raise UsageError(
                    f"{self.path}: {switch.path} is not a file of knob {switch.knob!r} here; "
                    "use the atoll that wrote it"
                )
        return journal

    def keep(self, journal: Journal) -> None:
        try:
            write_atomic(self.path, dumped(journal))
        except AtollError as fault:
            raise type(fault)(
                f"{fault}; the next 'atoll knobs' settles the interrupted change"
            ) from None

    @contextlib.contextmanager
    def locked(self, host: Host, *, wait_s: float = _WAIT_S) -> Iterator[None]:
        """Holds the lock for the one command that writes. Raises NotPermitted without permission,
        CheckFailed if another command holds it for longer than `wait_s`."""
        descriptor = self._opened()
        try:
            until_s = host.monotonic() + wait_s
            while not try_lock(descriptor):
                if host.monotonic() >= until_s:
                    raise CheckFailed(f"{self.lock}: held by another command on knobs; try again")
                host.sleep(0.05)
            for half_written in self.folder.glob(f".{self.path.name}.*"):
                half_written.unlink(missing_ok=True)  # of a killed command
            yield
        finally:
            os.close(descriptor)

    def _opened(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            for folder in reversed([self.folder, *self.folder.parents]):
                if not folder.is_dir():
                    folder.mkdir(exist_ok=True)
                    folder.chmod(0o755)  # regardless of the umask
            descriptor = os.open(self.lock, flags, 0o600)
            folders = [(folder, folder.stat()) for folder in (self.folder.parent, self.folder)]
        except OSError as fault:
            kind = NotPermitted if fault.errno in _FORBIDDEN else DownloadFailed
            raise kind(f"{self.folder}: cannot keep a journal ({fault.strerror})") from None
        for folder, status in folders:
            if status.st_uid not in (0, user_id()) or status.st_mode & 0o022:
                os.close(descriptor)
                raise UsageError(
                    f"{folder}: other users can write there, so Atoll keeps no journal in it; run "
                    f"chown root and chmod go-w on it first"
                )
        return descriptor


def dumped(journal: Journal) -> str:
    """The journal as it is written to disk."""
    return journal.model_dump_json(indent=1) + "\n"
