"""Which malloc is called: the rules on made-up processes, and ELF files with mutated bytes."""

from __future__ import annotations

import ctypes
import os
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atoll.host.local import LocalHost
from atoll.inspect.elf import (
    MAX_CHAIN,
    MAX_TABLE_BYTES,
    Blocks,
    Elf,
    ElfFault,
    SymbolTable,
    parse_tags,
)
from atoll.inspect.link_map import parse_auxv, parse_file_mappings
from atoll.inspect.malloc import (
    Definition,
    LoadedObject,
    MallocFiles,
    asked_preloads,
    look_at_malloc,
    preload_faults,
    resolve,
    search,
)
from tests.parts.fake_host import FakeHost
from tests.parts.faults import fails

LIBC = LoadedObject(
    "libc.so.6",
    "/lib/libc.so.6",
    start=0x7000,
    end=0x8000,
    definitions=(Definition(0x7100, "GLIBC_2.2.5", False),),
    slots=(0x7100,),
)
JEMALLOC = LoadedObject(
    "libjemalloc.so.2",
    "/x/libjemalloc.so.2",
    start=0x5000,
    end=0x6000,
    definitions=(Definition(0x5100, "", False),),
)


def program(*slots: int, **more: object) -> LoadedObject:
    fields = {"wanted_version": "GLIBC_2.2.5"} | more
    return LoadedObject("app", "", start=0x1000, end=0x2000, slots=slots, **fields)  # type: ignore[arg-type]


def libc(*slots: int) -> LoadedObject:
    return LoadedObject("libc.so.6", "", 0x7000, 0x8000, LIBC.definitions, slots=slots)


# ---- what is called ----------------------------------------------------------------------------


def test_the_bound_slot_decides_not_what_is_mapped() -> None:
    assert resolve([program(0x7100), JEMALLOC, LIBC])[0] == "libc.so.6"
    assert resolve([program(0x5100), JEMALLOC, libc(0x5100)]) == ("libjemalloc.so.2", {})


def test_a_lazy_slot_says_nothing() -> None:
    lazy = program(0x1020)  # its own PLT
    assert resolve([lazy, JEMALLOC, libc(0x5100)])[0] == "libjemalloc.so.2"
    assert resolve([lazy, JEMALLOC, libc(0x7030)])[0] == "libjemalloc.so.2"  # the search order
    assert resolve([program(0), LIBC])[0] == "libc.so.6"
    assert resolve([program(0x99999), LIBC])[0] == "libc.so.6"  # code made at run time


def test_a_program_with_a_malloc_of_its_own() -> None:
    own = program(0x1200, definitions=(Definition(0x1200, "", False),))
    assert resolve([own, JEMALLOC, libc(0x1200)]) == ("app", {})


def test_a_plt_entry_that_stands_for_malloc_is_followed() -> None:
    """Non-PIE programs that take malloc's address make their PLT entry the address."""
    app = program(0x5100, stub=0x1040)
    plugin = LoadedObject("plugin.so", start=0x9000, end=0xA000, slots=(0x1040,))
    assert resolve([app, JEMALLOC, libc(0x5100), plugin]) == ("libjemalloc.so.2", {})
    assert resolve([program(0x1040, stub=0x1040), JEMALLOC, libc()])[0] == "libjemalloc.so.2"


def test_objects_that_go_elsewhere_are_named() -> None:
    deep = LoadedObject("deep.so", start=0x9000, end=0xA000, slots=(0x7100,))
    own = LoadedObject("duck.so", start=0xA000, end=0xB000, bundled="jemalloc (duckdb_je_malloc)")
    reached, exceptions = resolve([program(0x5100), JEMALLOC, libc(0x5100), deep, own])
    assert reached == "libjemalloc.so.2"
    assert exceptions == {
        "deep.so": "libc.so.6",
        "duck.so": "its own jemalloc (duckdb_je_malloc)",
    }


def test_nothing_at_all() -> None:
    assert resolve([]) == (None, {})
    assert resolve([program()]) == (None, {})


@pytest.mark.parametrize(
    ("definition", "found"),
    [
        (Definition(0x5100, "", False), True),  # a library without versions answers for any
        (Definition(0x5100, "GLIBC_2.2.5", False), True),
        (Definition(0x5100, "GLIBC_2.2.5", True), True),
        (Definition(0x5100, "OTHER_1.0", False), False),
        (Definition(0x5100, "", True), False),  # hidden
    ],
)
def test_versions_are_searched_as_the_linker_does(definition: Definition, found: bool) -> None:
    other = LoadedObject("other.so", definitions=(definition,))
    assert search([program(), other, LIBC]) == ("other.so" if found else "libc.so.6")


# ---- preloads ----------------------------------------------------------------------------------


def test_preloads_without_effect_have_a_cause() -> None:
    tbb = LoadedObject("libtbbmalloc.so.2", "/x/libtbbmalloc.so.2")
    snoopy = LoadedObject("snoopy.so", "/x/snoopy.so")
    objects = [program(0x5100), JEMALLOC, tbb, snoopy, libc(0x5100)]
    asked = ["/x/libjemalloc.so.2", "/x/libtbbmalloc.so.2", "/x/snoopy.so", "/gone.so"]
    assert preload_faults(asked, objects, "libjemalloc.so.2") == {
        "/x/libtbbmalloc.so.2": "defines no malloc; preload libtbbmalloc_proxy.so.2 instead",
        "/gone.so": "",
    }
    assert preload_faults(asked[:1], objects, "app") == {
        "/x/libjemalloc.so.2": "the program has its own malloc, which comes first"
    }
    assert preload_faults(["libjemalloc.so.2"], objects, "libmimalloc.so.2") == {
        "libjemalloc.so.2": "libmimalloc.so.2 comes before it"
    }


def test_preloads_as_asked() -> None:
    host = FakeHost(
        {
            "/proc/7/environ": "A=1\0LD_PRELOAD=/a.so:b.so /c.so:\0",
            "/proc/7/root/etc/ld.so.preload": "# words /no.so\n/d.so\tb.so # more\n",
        }
    )
    assert asked_preloads(host, 7) == ("/a.so", "b.so", "/c.so", "/d.so")
    assert asked_preloads(FakeHost(), 7) == ()


def test_a_thread_of_the_kernel_has_no_answer() -> None:
    host = FakeHost({"/proc/7/maps": "", "/proc/7/auxv": "", "/proc/7/environ": ""})
    look = look_at_malloc(host, 7)
    assert (look.reached, look.unknown) == (None, "it has ended, or is a kernel thread")


def test_without_the_right_to_read_memory_the_mapped_allocators_are_told() -> None:
    class Guarded(FakeHost):
        def read_bytes(self, path: str, *, offset: int = 0, size: int | None = None) -> bytes:
            raise PermissionError(1, "no", path)

    host = Guarded({"/proc/7/maps": "1-2 r-xp 0 0:1 5    /x/libjemalloc.so.2\n"})
    look = look_at_malloc(host, 7)
    assert (look.reached, look.loaded) == (None, ("libjemalloc.so.2",))
    assert "run as root" in look.unknown


# ---- texts and tables --------------------------------------------------------------------------


def test_mappings_of_files() -> None:
    maps = (
        "55d0-55d1 r--p 00000000 08:01 77                         /usr/bin/a b (deleted)\n"
        "7f00-7f01 rw-p 00000000 00:00 0 \n"
        "7f01-7f02 rw-p 00000000 00:00 0                          [heap]\n"
    )
    (found,) = parse_file_mappings(maps)
    assert (found.start, found.end, found.path) == (0x55D0, 0x55D1, "/usr/bin/a b (deleted)")


def test_the_auxiliary_vector_ends_at_null() -> None:
    assert parse_auxv(struct.pack("<4Q", 23, 1, 0, 0) + b"odd") == {23: 1}


def test_names_that_share_a_tail_are_told_apart() -> None:
    names = b"\0duckdb_je_malloc\0mallocator\0"
    table = b"".join(
        struct.pack("<IBBHQQ", start, 0x12, 0, 1, 64 * start, 0) for start in (1, 8, 11, 18, 500)
    )
    symbols = SymbolTable(table, names)
    found = symbols.ending_in(b"malloc")
    assert [symbol.name for symbol in found] == ["duckdb_je_malloc", "je_malloc", "malloc"]


def test_this_process_as_the_linker_itself_sees_it() -> None:
    class Info(ctypes.Structure):
        _fields_ = (
            ("path", ctypes.c_char_p),
            ("base", ctypes.c_void_p),
            ("name", ctypes.c_char_p),
            ("address", ctypes.c_void_p),
        )

    everything = ctypes.CDLL(None)
    info = Info()
    # Not malloc itself: it has an address in a program of fixed place that takes it.
    assert everything.dladdr(everything.malloc_usable_size, ctypes.byref(info))
    look = look_at_malloc(LocalHost(), os.getpid())
    assert look.reached == Path(info.path.decode()).name


# ---- few reads ---------------------------------------------------------------------------------


@given(
    content=st.binary(max_size=200),
    looks=st.lists(st.tuples(st.integers(0, 250), st.integers(0, 60)), max_size=80),
    block_bytes=st.integers(1, 40),
)
def test_blocks_are_what_was_asked_for(
    content: bytes, looks: list[tuple[int, int]], block_bytes: int
) -> None:
    blocks = Blocks(lambda offset, size: content[offset : offset + size], block_bytes)
    for offset, size in looks:
        assert blocks(offset, size) == content[offset : offset + size]


@given(there=st.sets(st.integers(0, 6)), offset=st.integers(0, 60), size=st.integers(0, 10))
def test_blocks_do_not_reach_over_a_hole(there: set[int], offset: int, size: int) -> None:
    """Of memory: pages that are not mapped are empty."""

    def read(offset: int, size: int) -> bytes:
        return bytes([offset // 10] * size) if offset // 10 in there else b""

    found = Blocks(read, 10)(offset, size)
    places = range(offset, offset + size)
    mapped = next((i for i, at in enumerate(places) if at // 10 not in there), size)
    assert found == bytes(at // 10 for at in places[:mapped])


class Reading(LocalHost):
    """Counts the reads."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0

    def read_bytes(self, path: str, *, offset: int = 0, size: int | None = None) -> bytes:
        self.reads += 1
        return super().read_bytes(path, offset=offset, size=size)


def test_a_file_is_read_in_few_pieces_and_once(tmp_path: Path) -> None:
    library = tmp_path / "library.so"
    library.write_bytes(LIBRARY)
    host = Reading()
    files = MallocFiles(host)
    facts = files.facts(str(library))
    assert (len(facts.slots), facts.wanted_version[:6]) == (1, "GLIBC_")
    assert host.reads < 20
    before = host.reads
    other = tmp_path / "other.so"
    other.hardlink_to(library)
    assert files.facts(str(other)) is facts
    assert host.reads == before


def test_a_file_that_was_replaced_is_another(tmp_path: Path) -> None:
    library = tmp_path / "library.so"
    library.write_bytes(LIBRARY)
    os.utime(library, ns=(0, 0))  # long ago: clocks of file systems may take 10 ms for a moment
    files = MallocFiles(LocalHost())
    facts = files.facts(str(library))
    new = tmp_path / "new"
    new.write_bytes(LIBRARY.replace(b"\0malloc\0", b"\0mallox\0"))
    os.utime(new, ns=(0, 0))
    new.replace(library)  # the same size and time
    assert files.facts(str(library)).slots == ()
    with library.open("r+b") as file:  # written in place
        file.write(b"none")
    with pytest.raises(ElfFault):
        files.facts(str(library))
    assert facts.slots


# ---- hostile bytes -----------------------------------------------------------------------------

# A small library that calls malloc, with hash tables, versions and relocations: one of numpy's.
LIBRARY = min(
    (
        content
        for path in Path(np.__file__).parent.rglob("*.so")
        if b"\0malloc\0" in (content := path.read_bytes())
    ),
    key=len,
)


class Counted:
    """Bytes as a file; counts what is read of it."""

    def __init__(self, content: bytes) -> None:
        self.content, self.reads = content, 0

    def __call__(self, offset: int, size: int) -> bytes:
        assert offset >= 0
        assert 0 <= size <= MAX_TABLE_BYTES
        self.reads += 1
        return self.content[offset : offset + size]


def read_all(content: bytes) -> int:
    """All that is ever asked of a file; the number of slots."""
    read = Counted(content)
    slots = 0
    try:
        elf = Elf(read)
        elf.extent()
        elf.static_symbols()
        table = elf.dynamic_symbols
        for symbol in table.ending_in(b"malloc")[:4] if table else ():
            elf.version(symbol)
            slots += len(elf.got_slots(symbol))
    except ElfFault:
        pass
    assert read.reads < 4 * MAX_CHAIN
    return slots


def places() -> list[int]:
    """Where the headers and tables lie: a byte there is worth more than one in the code."""
    elf = Elf(Counted(LIBRARY))
    segment = elf.segment(2)
    assert segment is not None
    starts = [0, segment.offset, *(value for value in elf.tags.values())]
    return [start + i for start in starts for i in range(256) if start + i < len(LIBRARY)]


def test_the_library_to_be_mutated_is_read_whole() -> None:
    assert read_all(LIBRARY) == 1


def test_the_other_machine_has_other_relocations() -> None:
    """The library made into one for the other machine: its number and its GOT's types."""
    elf = Elf(Counted(LIBRARY))
    assert elf.dynamic_symbols is not None
    (malloc,) = (s for s in elf.dynamic_symbols.ending_in(b"malloc") if s.name == "malloc")
    slots = elf.got_slots(malloc)
    types = {62: (6, 7), 183: (1025, 1026)}
    other = {62: 183, 183: 62}[elf.machine]
    content = LIBRARY[:18] + struct.pack("<H", other) + LIBRARY[20:]
    assert Elf(Counted(content)).got_slots(malloc) == ()
    for ours, theirs in zip(types[elf.machine], types[other], strict=True):
        before, after = (struct.pack("<II", kind, malloc.index) for kind in (ours, theirs))
        slot = struct.pack("<Q", slots[0])
        content = content.replace(slot + before, slot + after)
    assert Elf(Counted(content)).got_slots(malloc) == slots


@settings(max_examples=400)
@given(st.lists(st.tuples(st.sampled_from(places()), st.integers(0, 255)), min_size=1, max_size=12))
def test_mutated_files_have_one_fault_only(changes: list[tuple[int, int]]) -> None:
    content = bytearray(LIBRARY)
    for place, byte in changes:
        content[place] = byte
    read_all(bytes(content))


@given(st.integers(0, len(LIBRARY)))
def test_truncated_files_have_one_fault_only(size: int) -> None:
    read_all(LIBRARY[:size])


@given(st.binary(max_size=300))
def test_any_bytes(content: bytes) -> None:
    read_all(content)
    read_all(LIBRARY[:64] + content)
    parse_tags(content)
    parse_auxv(content)


@pytest.mark.parametrize(
    ("head", "fields"),
    [
        (b"#!/bin/sh\n" + bytes(64), {}),
        (b"\x7fELF\x01\x01" + bytes(12) + b"\x03\0" + bytes(60), {"machine": "i386"}),
        (b"\x7fELF\x02\x02" + bytes(12) + b"\0\x15" + bytes(60), {"machine": "ppc64"}),
        (b"\x7fELF", {}),
    ],
)
def test_what_is_wrong_with_a_file(head: bytes, fields: dict[str, str]) -> None:
    with fails(ElfFault, **fields):
        Elf(Counted(head))
