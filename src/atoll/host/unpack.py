"""Unpacking a tarball of hwloc-gather-topology, which may come from anybody.

Only folders, plain files and relative links that stay inside are made. Links come last, and each
lies in a real folder and climbs only at its start: so no file and no other link is made through
one, and no chain of links leads out. Size and number are bounded.
"""

from __future__ import annotations

import lzma
import os
import posixpath
import tarfile
import zlib
from pathlib import Path

from atoll.errors import TopologyError

# A capture of a 1,000-CPU machine has some 100,000 files of a few bytes each.
_MOST_MEMBERS = 1_000_000
_MOST_BYTES = 512 << 20


def unpack_capture(tarball: Path, folder: Path) -> None:
    """Unpack into `folder`, which is empty. Raises TopologyError with one line."""
    links: list[tarfile.TarInfo] = []
    total_bytes = 0
    try:
        with tarfile.open(tarball) as archive:
            for number, member in enumerate(archive):
                name = posixpath.normpath(member.name)
                if member.size < 0:
                    raise tarfile.ReadError("a negative size")
                total_bytes += member.size
                if number >= _MOST_MEMBERS or total_bytes > _MOST_BYTES:
                    raise TopologyError(f"{tarball}: is too large for a captured topology")
                if name.startswith(("/", "..")):
                    raise TopologyError(f"{tarball}: holds a path outside itself ({member.name})")
                target = folder / name
                if member.isdir():
                    target.mkdir(parents=True, exist_ok=True)
                elif member.issym():
                    links.append(member)
                elif member.isfile():
                    content = archive.extractfile(member)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(content.read() if content is not None else b"")
        for link in links:
            _link(folder, link)
    except (tarfile.TarError, EOFError, ValueError, zlib.error, lzma.LZMAError):
        raise TopologyError(
            f"{tarball}: is damaged or no tarball; make it anew with 'hwloc-gather-topology OUT'"
        ) from None
    except OSError as fault:
        raise TopologyError(f"{tarball}: cannot be unpacked: {fault.strerror or fault}") from None


def _link(folder: Path, link: tarfile.TarInfo) -> None:
    place, name = posixpath.split(posixpath.normpath(link.name))
    depth = len(place.split("/")) if place else 0
    steps = link.linkname.split("/")
    ups = next((n for n, step in enumerate(steps) if step != ".."), len(steps))
    if link.linkname.startswith("/") or ups > depth or ".." in steps[ups:]:
        return  # sysfs has a few that lead out; hwloc needs none of them
    parent = folder / place
    parent.mkdir(parents=True, exist_ok=True)
    if parent.resolve() == folder.resolve() / place and not os.path.lexists(parent / name):
        (parent / name).symlink_to(link.linkname)
