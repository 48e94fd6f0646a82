"""Unpacking a tarball or a wheel so that nothing of it can land anywhere else.

Only folders, plain files, hard links to files unpacked before, and relative links that stay
inside are made. Symbolic links come last, and each lies in a real folder and climbs only at its
start: so no file and no other link is made through one, and no chain of links leads out. Of the
modes only 'may be run' is kept: no setuid, nothing that others can write. The size and the number
of members are bounded. (Python's own filter for tarballs is not in every 3.11.)
"""

from __future__ import annotations

import lzma
import os
import posixpath
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

from atoll.errors import DownloadFailed

MOST_MEMBERS = 100_000
_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class _Member:
    name: str
    kind: str  # 'folder', 'file', 'link', 'hard link'; else what it is
    runs: bool = False
    target: str = ""
    content: Callable[[], IO[bytes] | None] = lambda: None


def unpack(
    archive: Path, into: Path, *, most_bytes: int, tell: Callable[[int], None] = lambda done: None
) -> None:
    """Unpack into the empty folder `into`; `tell` gets the bytes written so far.

    Raises DownloadFailed, also where it would come to more than `most_bytes`; OSError.
    """
    members = _wheel(archive) if archive.suffix == ".whl" else _tarball(archive)
    links: list[tuple[str, str]] = []
    written = 0
    try:
        for number, member in enumerate(members):
            name = _inside(member.name, archive)
            if number >= MOST_MEMBERS:
                raise DownloadFailed(f"{archive}: holds more than {MOST_MEMBERS} members")
            target = into / name
            if member.kind == "folder":
                _folder(target, archive)
                continue
            _folder(target.parent, archive)
            if member.kind == "link":
                links.append((name, member.target))
            elif member.kind == "hard link":
                _hard_link(into / _inside(member.target, archive), target, archive)
            elif member.kind == "file":
                written = _write(member, target, written, most_bytes, archive)
            else:
                raise DownloadFailed(f"{archive}: holds a {member.kind} ({member.name})")
            tell(written)
        for name, to in links:
            _link(into, name, to, archive)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, ValueError, zlib.error, lzma.LZMAError):
        raise DownloadFailed(f"{archive}: is damaged") from None


def _tarball(archive: Path) -> Iterator[_Member]:
    with tarfile.open(archive) as tar:
        for item in tar:
            if item.size < 0:
                raise tarfile.ReadError("a negative size")
            kind = (
                ("folder" if item.isdir() else "")
                or ("link" if item.issym() else "")
                or ("hard link" if item.islnk() else "")
                or ("file" if item.isreg() else "device or pipe")
            )
            yield _Member(
                item.name,
                kind,
                bool(item.mode & stat.S_IXUSR),
                item.linkname,
                partial(tar.extractfile, item),
            )


def _wheel(archive: Path) -> Iterator[_Member]:
    with zipfile.ZipFile(archive) as wheel:
        for item in wheel.infolist():
            mode = item.external_attr >> 16  # as Info-ZIP and every Python tool store it
            kind = "folder" if item.is_dir() else "file"
            if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
                kind = "link or device"  # a wheel has none
            yield _Member(
                item.filename,
                kind,
                bool(mode & stat.S_IXUSR),
                content=partial(wheel.open, item),
            )


def _inside(name: str, archive: Path) -> str:
    """The path, made plain. Raises DownloadFailed where it leads out."""
    plain = posixpath.normpath(name)
    if plain.startswith("/") or plain.split("/")[0] == ".." or "\0" in plain:
        raise DownloadFailed(f"{archive}: holds a path outside itself ({name!r})")
    return plain


def _folder(path: Path, archive: Path) -> None:
    try:
        path.mkdir(mode=0o755, parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise DownloadFailed(f"{archive}: holds {path.name!r} as a file and a folder") from None


def _write(member: _Member, target: Path, written: int, most_bytes: int, archive: Path) -> int:
    source = member.content()
    # Made anew: whatever an earlier member put there is never written through.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    try:
        descriptor = os.open(target, flags, 0o755 if member.runs else 0o644)
    except FileExistsError:
        raise DownloadFailed(f"{archive}: holds {member.name!r} twice") from None
    with os.fdopen(descriptor, "wb") as out:
        while source is not None and (block := source.read(_BLOCK_BYTES)):
            written += len(block)
            if written > most_bytes:
                raise DownloadFailed(f"{archive}: unpacks to more than {most_bytes} bytes")
            out.write(block)
    return written


def _hard_link(source: Path, target: Path, archive: Path) -> None:
    if not source.is_file() or os.path.lexists(target):
        raise DownloadFailed(f"{archive}: holds a link to what is not in it ({target.name!r})")
    os.link(source, target, follow_symlinks=False)


def _link(into: Path, name: str, to: str, archive: Path) -> None:
    place, own = posixpath.split(name)
    depth = len(place.split("/")) if place else 0
    steps = to.split("/")
    ups = next((n for n, step in enumerate(steps) if step != ".."), len(steps))
    parent = into / place
    leads_out = to.startswith("/") or "\0" in to or ups > depth or ".." in steps[ups:]
    through_a_link = parent.resolve() != into.resolve() / place
    if not to or leads_out or through_a_link or os.path.lexists(parent / own):
        raise DownloadFailed(f"{archive}: holds a link that leads out of it ({name!r} to {to!r})")
    # Made plain: Python resolves 'a//a', a link to itself, to '/a'.
    (parent / own).symlink_to(posixpath.normpath(to))
