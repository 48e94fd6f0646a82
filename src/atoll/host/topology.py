"""Reads a machine: this one, a file, a captured folder, or a synthetic string.

The topology logic is native (native/src/topology). This module recognises sources by their
content, unpacks captured folders, and returns a `Machine`. hwloc 2.9 runs in a child process, so
no input can crash Atoll.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from atoll import _native
from atoll.errors import AtollError, TopologyError
from atoll.imports import description_of
from atoll.imports.description import Description
from atoll.schema.machine import Machine, machine_of

_TARBALLS = (b"BZh", b"\x1f\x8b", b"\xfd7zXZ")  # bzip2, gzip, xz
_MOST_FILE_BYTES = 256 << 20
# A capture of a machine with 1,000 CPUs has some 100,000 files of a few bytes each.
_MOST_CAPTURE_FILES = 1_000_000
_MOST_CAPTURE_BYTES = 512 << 20


def read_machine(source: str | None = None, synthetic: str | None = None) -> Machine:
    """The machine that `source` or `synthetic` describes; with neither, this one.

    `source` is an hwloc XML file, a captured sysfs folder (or hwloc-gather-topology's tarball),
    a machine file that Atoll wrote, or what `atoll.imports` reads. Raises TopologyError with one
    line.
    """
    if synthetic is not None:
        if source is not None:
            raise TopologyError("give either a file to read or a synthetic string, not both")
        if "\0" in synthetic:
            raise TopologyError("the synthetic string contains a NUL character")
        return _discover("synthetic", synthetic)
    if source is None:
        return _discover("live", "")
    if "\0" in source:
        raise TopologyError("the path contains a NUL character")
    if os.path.isdir(source):
        return _discover("sysfs", source)
    content = _read(source)
    if content.startswith(_TARBALLS):
        return _read_tarball(source)
    if described := description_of(content, source):
        return _imported(described, source)
    if content.lstrip()[:1] in (b"{", b"["):
        return _machine_file(source, content)
    return _discover("xml", source, content)


def _machine_file(path: str, content: bytes) -> Machine:
    from atoll.schema.base import parse
    from atoll.schema.consistency import contradiction

    machine = parse(Machine, content, where=path, error=TopologyError)
    fault = contradiction(machine)
    if fault:
        raise TopologyError(
            f"{path}: contradicts itself: {fault}; write it again with 'atoll topo --json'"
        )
    return machine


def _discover(kind: str, where: str, content: bytes | None = None) -> Machine:
    try:
        text = _native.discover(kind, where, content)
    except _native.TopologyFault as fault:
        raise TopologyError(" ".join(str(fault).split())) from None
    except _native.OwnFault as fault:
        raise AtollError(" ".join(str(fault).split())) from None
    except UnicodeError:
        raise TopologyError(f"{where!r}: the name is not valid UTF-8; rename it") from None
    try:
        return machine_of(json.loads(text))
    except (TypeError, ValueError, KeyError) as fault:
        raise AtollError(f"{where}: the native library and the schema disagree: {fault}") from None


def _discover_in(folder: str, path: str) -> Machine:
    """The machine in a temporary folder, made of the user's file `path`."""
    try:
        return _discover("sysfs", folder)
    except TopologyError as fault:
        raise TopologyError(str(fault).replace(folder, path)) from None


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            content = file.read(_MOST_FILE_BYTES + 1)
    except OSError as fault:
        raise TopologyError(f"{path}: cannot be read: {fault.strerror}") from None
    if len(content) > _MOST_FILE_BYTES:
        raise TopologyError(f"{path}: is over 256 MiB, which is too large for a topology")
    return content


def _unpack_capture(tarball: Path, folder: Path) -> None:
    from atoll.host.unpack import unpack

    try:
        unpack(
            tarball,
            folder,
            error=TopologyError,
            most_bytes=_MOST_CAPTURE_BYTES,
            most_members=_MOST_CAPTURE_FILES,
            skips_links=True,  # sysfs has a few that lead out; hwloc needs none of them
        )
    except TopologyError as fault:
        raise TopologyError(
            f"{fault}; write the tarball again with 'hwloc-gather-topology OUT'"
        ) from None
    except OSError as fault:
        raise TopologyError(f"{tarball}: cannot be unpacked: {fault.strerror or fault}") from None


def _read_tarball(path: str) -> Machine:
    import tempfile

    with tempfile.TemporaryDirectory(prefix="atoll-capture-") as folder:
        _unpack_capture(Path(path), Path(folder))
        machine = _discover_in(folder, path)
    return machine.model_copy(update={"origin": machine.origin.model_copy(update={"where": path})})


def _imported(described: Description, path: str) -> Machine:
    import tempfile

    from atoll.imports.description import sysfs_of

    with tempfile.TemporaryDirectory(prefix="atoll-import-") as folder:
        try:
            for name, text in sysfs_of(described).items():
                file = Path(folder, name)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
        except OSError as fault:
            raise TopologyError(f"{folder}: cannot be written: {fault.strerror}") from None
        machine = _discover_in(folder, path)
    left = tuple(pu for pu in machine.allowed.pus if pu not in described.kept)
    changes = {
        "origin": machine.origin.model_copy(update={"kind": described.kind, "where": path}),
        "allowed": machine.allowed.model_copy(update={"pus": left}),
        "warnings": (*described.notices, *machine.warnings),
    }
    return machine.model_copy(update=changes)
