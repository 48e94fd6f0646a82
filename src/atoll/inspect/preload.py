"""Whether a preloaded malloc would serve a program, before it starts. Runs nothing of the program.

`/lib64/ld-linux-x86-64.so.2 --preload LIB --list PROGRAM` lets the dynamic linker load what it
would load, and print it (ld.so(8)). The files that it lists are then read as `atoll.inspect.malloc`
reads those of a process. What a program loads later (dlopen) is not listed, so callers may name
such libraries (`ProgramFiles`). A program that allocates by mmap alone goes unnoticed.

A file can name a dynamic linker and audit libraries of its own, which then run, as under ldd(1).
Atoll runs only the linkers of the system's folders, and lists no program that asks for an audit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from atoll.host.api import Host
from atoll.host.programs import ProgramFiles, other_rights
from atoll.inspect.elf import DT_AUDIT, DT_DEPAUDIT, PT_INTERP, Elf, ElfFault
from atoll.inspect.link_map import open_elf
from atoll.inspect.malloc import FileFacts, MallocFiles, is_allocator
from atoll.schema.advice import Preload, PreloadEffect
from atoll.schema.inspection import MallocLook

_LISTED = re.compile(r"^\s+(?:\S+ => )?(/\S+) \(0x[0-9a-f]+\)$", re.MULTILINE)
# glibc's, in the system's folders; others have no --list.
_LINKER = re.compile(r"/(?:usr/)?lib(?:64|32|x32)?/(?:[\w-]+/)?ld-linux[\w-]*\.so\.\d+")
_JVM = "a JVM's heap is not allocated with malloc"
_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Program:
    preload: Preload
    openmp: bool = False  # it is linked to an OpenMP runtime


def look_at_program(host: Host, files: ProgramFiles, *, library: str = "") -> Program:
    """What preloading `library` ('' if none can be loaded) would change in the program.

    Raises nothing: what is unreadable is unknown.
    """
    path = files.program
    try:
        elf, path = _program(host, path)
        linker = _interpreter(elf)
        audited = not elf.tags.keys().isdisjoint((DT_AUDIT, DT_DEPAUDIT))
    except OSError as fault:
        return _program_unknown(f"{path}: {fault.strerror}")
    except ElfFault as fault:
        return _program_unknown(f"{path}: {fault}")
    if not linker:
        return _effect(PreloadEffect.NONE, "it is statically linked: it loads nothing")
    if rights := other_rights(path):
        why = f"it gets {rights}, so the dynamic linker ignores LD_PRELOAD"
        return _effect(PreloadEffect.NONE, why)
    if not _LINKER.fullmatch(linker):
        return _program_unknown(f"Atoll does not run its dynamic linker, {linker}")
    if audited:
        return _program_unknown("it has its dynamic linker audited, by a library that would run")
    preload = ("--preload", library) if library else ()
    loaded = _list(host, (linker, *preload, "--list", path), files.folders)
    openmp = any(is_openmp(_name(one)) for one in loaded)
    if _name(path) == "java" or any(_name(one) == "libjvm.so" for one in loaded):
        return _effect(PreloadEffect.PARTIAL, _JVM, openmp=openmp)
    if loaded and library and library not in loaded:
        return _effect(PreloadEffect.NONE, f"the dynamic linker does not load {library}")
    return _judged(host, path, loaded, files.libraries, openmp=openmp)


def is_openmp(library: str) -> bool:
    """Whether a library of this file name is an OpenMP runtime."""
    return library.startswith(("libgomp.", "libomp.", "libiomp5."))


def effect_of(look: MallocLook, *, jvm: bool) -> Preload:
    """What a preload does in a process that was inspected."""
    if jvm:
        return Preload(effect=PreloadEffect.PARTIAL, why=_JVM)
    if look.preload_faults:
        entry, why = next(iter(look.preload_faults.items()))
        return Preload(effect=PreloadEffect.NONE, why=f"{_name(entry)}: {why}")
    if look.reached is None:
        return Preload(effect=PreloadEffect.UNKNOWN, why=look.unknown)
    if look.reached in look.exceptions:
        why = f"{look.reached} has {look.exceptions[look.reached]}"
        return Preload(effect=PreloadEffect.PARTIAL, why=why)
    if look.exceptions:
        name, other = next(iter(look.exceptions.items()))
        return Preload(effect=PreloadEffect.PARTIAL, why=f"{name} calls {other}")
    if look.reached.startswith(("libc.", "libc-", "ld-musl")) or look.loaded:
        why = f"it calls malloc of {look.reached}"
        return Preload(effect=PreloadEffect.EFFECTIVE, why=why)
    why = f"{look.reached} has its own malloc, which comes first"
    return Preload(effect=PreloadEffect.NONE, why=why)


def _judged(
    host: Host, path: str, loaded: Sequence[str], also: Sequence[str], *, openmp: bool
) -> Program:
    cache = MallocFiles(host)
    own = _facts(cache, path)
    if own is not None and own.definitions:
        why = "it has its own malloc, which comes first"
        return _effect(PreloadEffect.NONE, why, openmp=openmp)
    for file in (path, *loaded, *also):
        facts = own if file == path else _facts(cache, file)
        if facts is not None and facts.bundled and not is_allocator(_name(file)):
            why = f"{_name(file)} has its own {facts.bundled}"
            return _effect(PreloadEffect.PARTIAL, why, openmp=openmp)
    if not loaded:
        return _program_unknown("its dynamic linker does not find all that it loads")
    why = f"{_name(path)} and its libraries call malloc"
    return _effect(PreloadEffect.EFFECTIVE, why, openmp=openmp)


def _program(host: Host, path: str) -> tuple[Elf, str]:
    """The program; of a script, its interpreter. Raises OSError, ElfFault."""
    head = host.read_bytes(path, size=256)
    if head.startswith(b"#!"):
        words = head.partition(b"\n")[0][2:].decode(errors="replace").split()
        interpreter = words[0] if words else ""
        if _name(interpreter) == "env":
            named = (word for word in words[1:] if word[0] != "-" and "=" not in word)
            interpreter = _on_path(host, next(named, ""))
        if not interpreter:
            raise ElfFault("is a script whose interpreter was not found")
        return open_elf(host, interpreter), interpreter
    return open_elf(host, path), path


def _on_path(host: Host, name: str) -> str:
    folders = host.variable("PATH").split(":")
    return next((path for one in folders if host.exists(path := f"{one}/{name}")), "")


def _interpreter(elf: Elf) -> str:
    segment = elf.segment(PT_INTERP)
    if segment is None:
        return ""
    return elf.bytes_at(segment.offset, segment.file_bytes).rstrip(b"\0").decode(errors="replace")


def _list(host: Host, argv: Sequence[str], folders: str) -> list[str]:
    """What the linker would load; empty if it cannot, as for a library in a folder of its own that
    only the program's launcher knows."""
    env = {"LD_LIBRARY_PATH": folders} if folders else {}  # not LD_AUDIT, which runs a library
    try:
        done = host.run(argv, timeout_s=_TIMEOUT_S, env=env)
    except (OSError, TimeoutError):
        return []
    return _LISTED.findall(done.stdout) if done.returncode == 0 else []


def _facts(cache: MallocFiles, path: str) -> FileFacts | None:
    try:
        return cache.facts(path)
    except (OSError, ElfFault):
        return None


def _effect(effect: PreloadEffect, why: str, *, openmp: bool = False) -> Program:
    return Program(Preload(effect=effect, why=why), openmp)


def _program_unknown(why: str) -> Program:
    return _effect(PreloadEffect.UNKNOWN, why)


def _name(path: str) -> str:
    return path.rpartition("/")[2]
