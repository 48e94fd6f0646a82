"""Lists the shared objects of a live process in its dynamic linker's search order.

Works as debuggers do (<link.h>, "Debugger interface" of the System V gABI): the auxiliary vector
gives the program's entry and so its base; its dynamic section in memory has DT_DEBUG, which the
linker pointed to an r_debug, the head of the list of link_maps. glibc and musl keep both alike.
The list omits objects of other namespaces (dlmopen); the vDSO has no file and is left out. Memory
is read through /proc/PID/mem, without stopping the process, and each object's file through
/proc/PID/map_files: the file that is mapped, even if its path now names a new one.
"""

from __future__ import annotations

import bisect
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from atoll.host.api import Host
from atoll.inspect.elf import (
    DT_DEBUG,
    PT_DYNAMIC,
    PT_INTERP,
    Blocks,
    Elf,
    parse_tags,
)

_AT_ENTRY, _AT_SECURE = 9, 23
_MAX_OBJECTS = 4096
_MAX_NAME_BYTES = 4096
_MAX_TAGS_BYTES = 64 << 10
_PAGE_BYTES = 4096
_BLOCK_BYTES = 64 << 10  # two or three hold the tables of most libraries
_MAPPING = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) \S+ [0-9a-f]+ \S+ \d+ +(/.*)$", re.MULTILINE)


class NoLinkMap(Exception):
    """The list cannot be walked; the text says why in a few words."""


class StaticProgram(NoLinkMap):
    """The program has no dynamic linker."""


@dataclass(frozen=True, slots=True)
class FileMapping:
    start: int
    end: int
    path: str  # as in /proc/PID/maps


@dataclass(frozen=True, slots=True)
class SharedObject:
    """An object of the link map with its file."""

    name: str  # path as the linker found it; for the program itself, the path of its file
    base: int  # added to the file's addresses
    end: int  # of its mappings
    files: tuple[str, ...]  # paths to its file, to be tried in turn


def parse_auxv(raw: bytes) -> dict[int, int]:
    """The auxiliary vector of a 64-bit process. Pure."""
    pairs = struct.iter_unpack("<QQ", raw[: len(raw) // 16 * 16])
    return {int(key): int(value) for key, value in pairs if key}


def parse_file_mappings(maps: str) -> list[FileMapping]:
    """The mappings of files in /proc/PID/maps, by address. Pure."""
    return [
        FileMapping(int(found[1], 16), int(found[2], 16), found[3])
        for found in _MAPPING.finditer(maps)
    ]


def is_secure(host: Host, pid: int) -> bool:
    """Whether the program runs with raised privileges, so that the linker ignores LD_PRELOAD."""
    return bool(parse_auxv(host.read_bytes(f"/proc/{pid}/auxv")).get(_AT_SECURE))


def program(host: Host, pid: int) -> Elf:
    """The file that the process executes. Raises OSError, ElfFault."""
    return open_elf(host, f"/proc/{pid}/exe")


def open_elf(host: Host, path: str) -> Elf:
    """Raises OSError, ElfFault."""
    return Elf(
        Blocks(lambda offset, size: host.read_bytes(path, offset=offset, size=size), _BLOCK_BYTES)
    )


def shared_objects(host: Host, pid: int, mappings: list[FileMapping]) -> list[SharedObject]:
    """The program and its libraries in search order.

    Raises StaticProgram, NoLinkMap, ElfFault (of the program's file) and OSError: the process
    is gone, or not ours to look into (ptrace(2), "Ptrace access mode checking").
    """
    memory = _Memory(host, pid)
    starts = [mapping.start for mapping in mappings]
    ends = {mapping.path: mapping.end for mapping in mappings}  # the last is the highest
    objects: dict[str, SharedObject] = {}  # by file: a list that names a file twice is damaged
    for name, base, dynamic in _walk(memory, _head(host, pid, memory)):
        at = bisect.bisect_right(starts, dynamic) - 1
        if at < 0 or dynamic >= mappings[at].end:
            if objects:
                continue  # the vDSO
            # The program's data has been remapped.
            path = host.read_link(f"/proc/{pid}/exe")
            files: tuple[str, ...] = (f"/proc/{pid}/exe",)
        elif (path := mappings[at].path) not in objects:
            files = _files(pid, mappings[at])
        else:
            continue
        objects[path] = SharedObject(name or path, base, ends.get(path, base), files)
    return list(objects.values())


def _head(host: Host, pid: int, memory: _Memory) -> int:
    """The first link_map's address."""
    auxv = parse_auxv(host.read_bytes(f"/proc/{pid}/auxv"))
    if _AT_ENTRY not in auxv:
        raise NoLinkMap("it has ended, or is a kernel thread")
    exe = program(host, pid)
    base = auxv[_AT_ENTRY] - exe.entry
    segment = exe.segment(PT_DYNAMIC)
    if exe.segment(PT_INTERP) is not None and segment is not None:
        size = min(segment.memory_bytes, _MAX_TAGS_BYTES)
        debug = parse_tags(memory.read(base + segment.address, size)).get(DT_DEBUG, 0)
    else:
        debug = base + _debug_symbol(exe)
    if not debug:
        raise NoLinkMap("its dynamic linker has not started, or keeps no list for debuggers")
    version, head = struct.unpack_from("<I4xQ", memory.read(debug, 16))
    if not 1 <= version < 16 or not head:
        raise NoLinkMap("its dynamic linker has not finished")
    return int(head)


def _debug_symbol(exe: Elf) -> int:
    """r_debug of a dynamic linker that was run as a command (`ld.so PROGRAM`)."""
    symbols = exe.dynamic_symbols
    for symbol in symbols.ending_in(b"_r_debug") if symbols else ():
        if symbol.defined and symbol.name == "_r_debug":
            return symbol.value
    raise StaticProgram("it is statically linked")


def _walk(memory: _Memory, at: int) -> Iterator[tuple[str, int, int]]:
    """(name, base, address of the dynamic section) of every link_map. If the list changes during
    the walk it may lead anywhere; the limits end the walk."""
    seen: set[int] = set()
    while at and at not in seen and len(seen) < _MAX_OBJECTS:
        seen.add(at)
        base, name, dynamic, following = struct.unpack("<QQQQ", memory.read(at, 32))
        yield memory.string(name), base, dynamic
        at = following


def _files(pid: int, mapping: FileMapping) -> tuple[str, ...]:
    exact = f"/proc/{pid}/map_files/{mapping.start:x}-{mapping.end:x}"
    # map_files needs CAP_CHECKPOINT_RESTORE; the path works as long as the file exists.
    by_path = f"/proc/{pid}/root{mapping.path}"
    return (exact,) if mapping.path.endswith(" (deleted)") else (exact, by_path)


class _Memory:
    def __init__(self, host: Host, pid: int) -> None:
        path = f"/proc/{pid}/mem"
        self._read = Blocks(
            lambda address, size: read_memory(host, path, address, size), _PAGE_BYTES
        )

    def read(self, address: int, size: int) -> bytes:
        """Exactly `size` bytes. Raises NoLinkMap if the address is not mapped."""
        content = self._read(address, size) if 0 < address < 1 << 62 else b""
        if len(content) != size:
            raise NoLinkMap("its list of libraries is damaged or is changing")
        return content

    def string(self, address: int) -> str:
        """The string up to its NUL, read page by page since the next page may not be mapped."""
        text = b""
        while len(text) < _MAX_NAME_BYTES:
            here = address + len(text)
            part = self.read(here, _PAGE_BYTES - here % _PAGE_BYTES)
            head, nul, _ = part.partition(b"\0")
            text += head
            if nul:
                break
        return text.decode("utf-8", "replace")


def read_memory(host: Host, path: str, address: int, size: int) -> bytes:
    """Bytes of a process's memory; empty if nothing is mapped. Raises PermissionError."""
    if not 0 < address < 1 << 62:
        return b""
    try:
        return host.read_bytes(path, offset=address, size=size)
    except PermissionError:
        raise
    except OSError:
        return b""
