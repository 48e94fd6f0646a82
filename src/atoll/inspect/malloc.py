"""Determines whose `malloc` a process calls, whatever was preloaded or mapped.

A preload can fail silently in many ways. The file is missing or for another architecture; the
program is static or runs with raised privileges, or has its own malloc that comes first; the
library defines no malloc (libtbbmalloc without its proxy); or the engine calls its own allocator
under another name (a bundled jemalloc). The answer is therefore read where the calls go: in the GOT
slots for `malloc` of every loaded object, in memory. A slot that is not bound yet (lazy binding)
gives no information. If no slot is bound, the answer is what the dynamic linker would find: the
first object of the link map that defines a matching `malloc` (Drepper, "How To Write Shared
Libraries", 1.5).

`resolve` and `preload_faults` are pure. `look_at_malloc` reads memory; it never writes, and stops
nothing. A malloc that is replaced in other ways (patched code, hooks) goes unnoticed.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from atoll.host.api import FileId, Host
from atoll.inspect.elf import Elf, ElfFault, Symbol, SymbolTable
from atoll.inspect.link_map import (
    FileMapping,
    NoLinkMap,
    SharedObject,
    StaticProgram,
    is_secure,
    open_elf,
    parse_file_mappings,
    program,
    read_memory,
    shared_objects,
)
from atoll.inspect.processes import environment
from atoll.schema.inspection import MallocLook

_ALLOCATOR = re.compile(
    r"lib(jemalloc|tcmalloc|mimalloc|tbbmalloc|hoard|snmalloc|rpmalloc|scudo|hardened_malloc)"
)
# The malloc names of bundled allocators that leave the system's name alone.
_BUNDLED = {
    "je_malloc": "jemalloc",
    "rjem_malloc": "jemalloc",
    "mi_malloc": "mimalloc",
    "tc_malloc": "tcmalloc",
    "rpmalloc": "rpmalloc",
    "sn_malloc": "snmalloc",
    "scalable_malloc": "tbbmalloc",
}
_BUNDLED_NAME = re.compile(rf"(?:.*_)?({'|'.join(_BUNDLED)})")


@dataclass(frozen=True, slots=True)
class Definition:
    address: int
    version: str
    only_that_version: bool


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What a file contains about malloc, wherever it is loaded; addresses exclude the base."""

    start: int
    end: int
    definitions: tuple[Definition, ...]
    wanted_version: str
    slots: tuple[int, ...]
    stub: int
    bundled: str


class MallocFiles:
    """The facts of each file, read once for all processes of a run, which share most libraries.

    A file that is replaced or written meanwhile counts as another file.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._known: dict[FileId, FileFacts] = {}

    def facts(self, path: str) -> FileFacts:
        """Raises OSError, ElfFault."""
        file = self._host.file_id(path)
        if file not in self._known:
            self._known[file] = file_facts(open_elf(self._host, path))
        return self._known[file]


@dataclass(frozen=True, slots=True)
class LoadedObject:
    """One object of the link map as far as malloc is concerned, with addresses in memory."""

    name: str
    path: str = ""  # as the dynamic linker found it
    start: int = 0
    end: int = 0
    definitions: tuple[Definition, ...] = ()
    wanted_version: str = ""  # of the malloc that it calls
    slots: tuple[int, ...] = ()  # contents of its GOT slots for malloc
    stub: int = 0  # its PLT entry, if that is malloc's address for all objects (non-PIE)
    bundled: str = ""  # 'jemalloc (NAME_je_malloc)'

    @property
    def is_allocator(self) -> bool:
        return is_allocator(self.name)


def is_allocator(name: str) -> bool:
    """Whether a library of this file name is an allocator."""
    return _ALLOCATOR.match(name) is not None


def look_at_malloc(host: Host, pid: int, files: MallocFiles | None = None) -> MallocLook:
    """Whose malloc the process calls. `files`: a cache shared with other inspections.

    Raises OSError if the process is gone or may not be inspected.
    """
    files = files or MallocFiles(host)
    preload = asked_preloads(host, pid)
    mappings = parse_file_mappings(host.read_text(f"/proc/{pid}/maps"))
    try:
        loaded = [
            _loaded(host, pid, shared, files) for shared in shared_objects(host, pid, mappings)
        ]
    except StaticProgram:
        return _static(host, pid, preload, files)
    except PermissionError:
        unknown = f"/proc/{pid}/mem: not permitted (ptrace_scope?); run as root"
        return _unwalked(preload, mappings, unknown)
    except (NoLinkMap, ElfFault) as fault:
        return _unwalked(preload, mappings, str(fault))
    reached, exceptions = resolve(loaded)
    faults = preload_faults(preload, loaded, reached)
    for entry in preload:
        if entry in faults and not faults[entry]:
            faults[entry] = _why_not_loaded(host, pid, entry)
    return MallocLook(
        preload=preload,
        loaded=tuple(each.name for each in loaded if each.is_allocator),
        reached=reached,
        exceptions=exceptions,
        preload_faults=faults,
        unknown="" if reached else "no loaded object defines malloc",
    )


def asked_preloads(host: Host, pid: int) -> tuple[str, ...]:
    """LD_PRELOAD of its environment, then /etc/ld.so.preload of its root (ld.so(8))."""
    names = re.split(r"[ :]+", environment(host, pid).get("LD_PRELOAD", ""))
    try:
        text = host.read_text(f"/proc/{pid}/root/etc/ld.so.preload")
    except OSError:
        text = ""
    names += re.split(r"[\s:]+", re.sub(r"#.*", "", text))
    return tuple(dict.fromkeys(filter(None, names)))


# ---- resolving malloc: pure --------------------------------------------------------------------


def resolve(objects: Sequence[LoadedObject]) -> tuple[str | None, dict[str, str]]:
    """(the object whose malloc the process calls, the objects that call another one).

    `objects` are in search order, the program first. The program's own slot decides. If the program
    does not call malloc, or has not yet, the majority of the bound slots decides; if no slot is
    bound, the search order.
    """
    bound = {each.name: _destinations(each, objects) for each in objects}
    counts = Counter(name for names in bound.values() for name in names)
    program_s = _destinations(objects[0], objects) if objects else []
    if program_s:
        reached: str | None = program_s[0]
    elif counts:
        reached = counts.most_common(1)[0][0]
    else:
        reached = search(objects)
    exceptions = {
        name: other
        for name, names in bound.items()
        if (other := next((each for each in names if each != reached), None))
    }
    exceptions |= {each.name: f"its own {each.bundled}" for each in objects if each.bundled}
    return reached, exceptions


def search(objects: Sequence[LoadedObject]) -> str | None:
    """The object whose malloc the dynamic linker would bind a call to (glibc's do_lookup_x)."""
    wanted = next((each.wanted_version for each in objects if each.wanted_version), "")
    for each in objects:
        for definition in each.definitions:
            unversioned = not definition.version and not definition.only_that_version
            default = not wanted and not definition.only_that_version
            if unversioned or default or definition.version == wanted:
                return each.name
    return None


def _destinations(caller: LoadedObject, objects: Sequence[LoadedObject]) -> list[str]:
    """The objects to which an object's bound slots lead."""
    names = []
    for address in caller.slots:
        home = next((each for each in objects if each.start <= address < each.end), None)
        if home is None:
            continue  # not bound yet, or code generated at run time
        if address == home.stub:
            # The program's PLT entry stands for malloc and leads where the program's slot leads.
            if home is not caller:
                names += _destinations(home, objects)
        elif home is not caller or any(address == d.address for d in caller.definitions):
            names.append(home.name)
        # Otherwise its own PLT: not bound yet.
    return names


def preload_faults(
    preload: Sequence[str], objects: Sequence[LoadedObject], reached: str | None
) -> dict[str, str]:
    """The reason for each preload that replaces no malloc; empty if it is not loaded. A loaded
    preload that is not an allocator serves another purpose and is not a fault."""
    faults = {}
    for entry in preload:
        name = entry.rpartition("/")[2]
        each = next((o for o in objects if o.path == entry or o.name == name), None)
        if each is None:
            faults[entry] = ""
        elif each.name == reached or not (each.is_allocator or each.definitions):
            continue
        elif not each.definitions:
            proxy = "libtbbmalloc_proxy.so.2"
            tbb = each.name.startswith("libtbbmalloc.")
            faults[entry] = f"defines no malloc{f'; preload {proxy} instead' if tbb else ''}"
        elif reached == objects[0].name:
            faults[entry] = "the program has its own malloc, which comes first"
        else:
            faults[entry] = f"{reached} comes before it"
    return faults


# ---- reading -----------------------------------------------------------------------------------


def _loaded(host: Host, pid: int, shared: SharedObject, files: MallocFiles) -> LoadedObject:
    name = _base_name(shared.name)
    for path in shared.files:
        try:
            facts = files.facts(path)
        except OSError:
            continue
        except ElfFault:
            break
        return _placed(host, pid, facts, shared, name)
    return LoadedObject(name, shared.name, shared.base, shared.end)  # slots may lead there


def _placed(
    host: Host, pid: int, facts: FileFacts, shared: SharedObject, name: str
) -> LoadedObject:
    base, memory = shared.base, f"/proc/{pid}/mem"
    slots = [read_memory(host, memory, base + slot, 8) for slot in facts.slots]
    return LoadedObject(
        name=name,
        path=shared.name,
        start=base + facts.start,
        end=base + facts.end,
        definitions=tuple(replace(d, address=base + d.address) for d in facts.definitions),
        wanted_version=facts.wanted_version,
        slots=tuple(struct.unpack("<Q", raw)[0] for raw in slots if len(raw) == 8),
        stub=base + facts.stub if facts.stub else 0,
        bundled="" if is_allocator(name) else facts.bundled,
    )


def file_facts(elf: Elf) -> FileFacts:
    """Raises OSError, ElfFault."""
    start, end = elf.extent()
    symbols = [s for s in _ending(elf.dynamic_symbols) if s.visible and s.name == "malloc"]
    calls = [symbol for symbol in symbols if not symbol.defined]
    return FileFacts(
        start=start,
        end=end,
        definitions=tuple(
            Definition(symbol.value, *elf.version(symbol)) for symbol in symbols if symbol.defined
        ),
        wanted_version=next((elf.version(symbol)[0] for symbol in calls), ""),
        slots=tuple(slot for symbol in symbols for slot in elf.got_slots(symbol)),
        stub=next((symbol.value for symbol in calls if symbol.value), 0),
        bundled=_bundled(elf),
    )


def _bundled(elf: Elf) -> str:
    """A bundled allocator, by the name of its malloc; private symbols are read last."""
    for static in (False, True):
        table = elf.static_symbols() if static else elf.dynamic_symbols
        for symbol in _ending(table):
            match = _BUNDLED_NAME.fullmatch(symbol.name) if symbol.defined else None
            if match:
                return f"{_BUNDLED[match[1]]} ({symbol.name})"
    return ""


def _ending(table: SymbolTable | None) -> list[Symbol]:
    return table.ending_in(b"malloc") if table is not None else []


def _static(host: Host, pid: int, preload: Sequence[str], files: MallocFiles) -> MallocLook:
    name = _base_name(host.read_link(f"/proc/{pid}/exe").removesuffix(" (deleted)"))
    try:
        bundled = files.facts(f"/proc/{pid}/exe").bundled
    except ElfFault:
        bundled = ""
    why = "the program is statically linked: it loads nothing"
    return MallocLook(
        preload=tuple(preload),
        loaded=(),
        reached=name,
        exceptions={name: f"its own {bundled}"} if bundled else {},
        preload_faults=dict.fromkeys(preload, why),
    )


def _unwalked(
    preload: tuple[str, ...], mappings: Sequence[FileMapping], unknown: str
) -> MallocLook:
    names = dict.fromkeys(_base_name(mapping.path) for mapping in mappings)
    return MallocLook(
        preload=preload,
        loaded=tuple(name for name in names if is_allocator(name)),
        reached=None,
        unknown=unknown,
    )


def _why_not_loaded(host: Host, pid: int, entry: str) -> str:
    if is_secure(host, pid):
        return "the program runs with raised rights (AT_SECURE), so the linker drops preloads"
    if "/" not in entry or "$" in entry:
        return "the dynamic linker did not find it"
    path = f"/proc/{pid}/{'root' if entry.startswith('/') else 'cwd/'}{entry}"
    try:
        elf = open_elf(host, path)
        executable = program(host, pid)
    except FileNotFoundError:
        return "no such file"
    except PermissionError:
        return "it is not readable by this user"
    except OSError as fault:
        return f"it cannot be read: {fault.strerror}"
    except ElfFault as fault:
        return str(fault)
    if elf.machine != executable.machine:
        return f"is for {elf.machine_name}, the program for {executable.machine_name}"
    return "the dynamic linker did not load it: a dependency may be missing, or it was set later"


def _base_name(path: str) -> str:
    return path.removesuffix(" (deleted)").rpartition("/")[2]
