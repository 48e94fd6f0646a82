"""Writes files so that no process sees half of one, and computes their checksums."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

from atoll.errors import DiskFull, NotPermitted, UsageError


def write_atomic(path: str | Path, content: str | bytes, *, mode: int = 0o644) -> None:
    """Write, fsync, rename: the file is the old one or the new one, also after a power cut.

    If the path is a link, the file that it points to is replaced. A device or a pipe is written to.
    Raises UsageError if the path is a folder or its folder does not exist, else NotPermitted or
    DiskFull; then the old file is unchanged.
    """
    import tempfile  # not above: `atoll topo` imports this module and writes nothing

    target = Path(path)
    data = content.encode() if isinstance(content, str) else content
    temporary = ""
    if not str(path):
        raise UsageError("the name of the file to write is empty; name a file")
    try:
        if target.exists() and not target.is_file():
            target.write_bytes(data)  # a rename would put a file in the place of /dev/stdout
            return
        target = target.resolve()
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        with os.fdopen(handle, "wb") as out:
            out.write(data)
            out.flush()
            os.fchmod(out.fileno(), mode)
            os.fsync(out.fileno())
        os.replace(temporary, target)
        sync_folder(target.parent)
    except FileNotFoundError:
        raise UsageError(f"{path}: its folder does not exist; create it first") from None
    except IsADirectoryError:
        raise UsageError(f"{path}: is a folder; name a file") from None
    except OSError as fault:
        raise refusal(fault)(
            f"{path}: cannot be written ({fault.strerror}); the old file is unchanged"
        ) from None
    finally:
        with contextlib.suppress(OSError):
            if temporary:
                os.unlink(temporary)


def write_new(path: str | Path, content: str | bytes, *, mode: int) -> None:
    """Write a new file without waiting for the disk, for folders that no process reads after a
    power cut. Waiting would cost a deployment of 30 files half a second.

    Raises NotPermitted or DiskFull."""
    data = content.encode() if isinstance(content, str) else content
    try:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as out:
            out.write(data)
    except OSError as fault:
        raise refusal(fault)(f"{path}: cannot be written ({fault.strerror})") from None


# A full disk in the words of the operating system, as other programs pass them on.
DISK_FULL = (os.strerror(errno.ENOSPC), os.strerror(errno.EDQUOT))


def refusal(fault: OSError) -> type[NotPermitted | DiskFull]:
    """The error class for a write that failed: DiskFull, else NotPermitted."""
    is_full = fault.errno in (errno.ENOSPC, errno.EDQUOT)
    return DiskFull if is_full else NotPermitted


def sync_folder(folder: Path) -> None:
    """Make a rename in `folder` durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sha256(path: str | Path) -> str:
    """Hex digest of a file's content, read in blocks of 1 MiB."""
    import hashlib  # not above: it loads OpenSSL

    digest = hashlib.sha256()
    with open(path, "rb") as source:
        while block := source.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
