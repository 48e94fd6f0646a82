"""Unpacks a tarball or a wheel, whoever made it, so that nothing of it lands anywhere else.

Only folders, plain files, hard links to files unpacked before, and relative links that stay inside
are made. Symbolic links come last. Each lies in a real folder and climbs only at its start, so no
file and no other link is made through one, and no chain of links leads out. Of the modes only
'executable' is kept: no setuid, nothing that others can write. Size and number of members are
bounded. (Python's own filter for tarballs is not in every 3.11.)
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

from atoll.errors import AtollError

_BLOCK_BYTES = 1 << 20


class _Refused(Exception):
    """What is wrong with the archive."""


@dataclass(frozen=True, slots=True)
class _Member:
    name: str
    kind: str  # 'folder', 'file', 'link', 'hard link'; another kind is not unpacked
    runs: bool = False
    target: str = ""
    content: Callable[[], IO[bytes] | None] = lambda: None


def unpack(
    archive: Path,
    into: Path,
    *,
    error: type[AtollError],
    most_bytes: int,
    most_members: int = 100_000,
    skips_links: bool = False,
    tell: Callable[[int], None] = lambda done: None,
) -> None:
    """Unpack into the empty folder `into`; `tell` gets the bytes written so far.

    `skips_links`: leave links that lead out, and devices, out instead of refusing the archive.
    Raises `error` for an archive that is damaged, too large, or would write outside; OSError.
    """
    try:
        members = _wheel(archive) if archive.suffix == ".whl" else _tarball(archive)
        _unpack(members, into, most_bytes, most_members, skips_links, tell)
    except _Refused as fault:
        raise error(f"{archive}: {fault}") from None
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, ValueError, zlib.error, lzma.LZMAError):
        raise error(f"{archive}: is damaged, or not an archive") from None


def _unpack(
    members: Iterator[_Member],
    into: Path,
    most_bytes: int,
    most_members: int,
    skips_links: bool,
    tell: Callable[[int], None],
) -> None:
    links: list[tuple[str, str]] = []
    written = 0
    for number, member in enumerate(members):
        name = _inside(member.name)
        if number >= most_members:
            raise _Refused(f"has more than {most_members} members")
        target = into / name
        if member.kind == "folder":
            _folder(target)
            continue
        _folder(target.parent)
        if member.kind == "link":
            links.append((name, member.target))
        elif member.kind == "hard link":
            _hard_link(into / _inside(member.target), target)
        elif member.kind == "file":
            written = _write(member, target, written, most_bytes)
        elif not skips_links:
            raise _Refused(f"contains a {member.kind} ({member.name})")
        tell(written)
    for name, to in links:
        if _stays_inside(into, name, to):
            # Made plain: Python resolves 'a//a', a link to itself, to '/a'.
            (into / name).symlink_to(posixpath.normpath(to))
        elif not skips_links:
            raise _Refused(f"contains a link that leads out of it ({name!r} to {to!r})")


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


def _inside(name: str) -> str:
    """The path, made plain. Raises _Refused if it leads out."""
    plain = posixpath.normpath(name)
    if plain.startswith("/") or plain.split("/")[0] == ".." or "\0" in plain:
        raise _Refused(f"contains a path outside itself ({name!r})")
    return plain


def _folder(path: Path) -> None:
    try:
        path.mkdir(mode=0o755, parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise _Refused(f"contains {path.name!r} as a file and a folder") from None


def _write(member: _Member, target: Path, written: int, most_bytes: int) -> int:
    source = member.content()
    # The file must be new, so that no earlier member is written through.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    try:
        descriptor = os.open(target, flags, 0o755 if member.runs else 0o644)
    except FileExistsError:
        raise _Refused(f"contains {member.name!r} twice") from None
    with os.fdopen(descriptor, "wb") as out:
        while source is not None and (block := source.read(_BLOCK_BYTES)):
            written += len(block)
            if written > most_bytes:
                raise _Refused(f"unpacks to more than {most_bytes} bytes")
            out.write(block)
    return written


def _hard_link(source: Path, target: Path) -> None:
    if not source.is_file() or os.path.lexists(target):
        raise _Refused(f"contains a link to a missing file ({target.name!r})")
    os.link(source, target, follow_symlinks=False)


def _stays_inside(into: Path, name: str, to: str) -> bool:
    """Whether the link `name` to `to` may be made; the folder that it lies in exists."""
    place, own = posixpath.split(name)
    depth = len(place.split("/")) if place else 0
    steps = to.split("/")
    ups = next((n for n, step in enumerate(steps) if step != ".."), len(steps))
    parent = into / place
    leads_out = to.startswith("/") or "\0" in to or ups > depth or ".." in steps[ups:]
    through_a_link = parent.resolve() != into.resolve() / place
    return bool(to) and not (leads_out or through_a_link or os.path.lexists(parent / own))
