"""Reads ELF files: segments, the dynamic section, versioned symbols, relocations.

Follows elf(5), the System V gABI with its x86-64 and AArch64 supplements, and the GNU extensions
(DT_GNU_HASH, symbol versions) as the dynamic linkers of glibc and musl read them. It covers only
what the search for `malloc` needs: 64-bit little-endian files of the two architectures that Atoll
supports.

The caller passes a function that reads bytes at an offset, so that only the tables of a large
library are read. Whatever the bytes, the only error is ElfFault: no table exceeds
`MAX_TABLE_BYTES`, no chain is followed for more than `MAX_CHAIN` steps, and at most `MAX_NAMES`
names are examined. The module does without numpy, whose import takes longer than reading all
libraries of most processes.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

MAX_TABLE_BYTES = 64 << 20
MAX_CHAIN = 4096
MAX_NAMES = 1 << 16
MAX_NAME_BYTES = 127  # before the ending searched for; longer names are skipped

X86_64, AARCH64 = 62, 183
MACHINES = {X86_64: "x86-64", AARCH64: "aarch64", 3: "i386", 40: "arm", 243: "riscv", 21: "ppc64"}
# (GLOB_DAT, JUMP_SLOT): the relocations that put a function's address into the GOT.
_GOT_TYPES = {X86_64: (6, 7), AARCH64: (1025, 1026)}

PT_LOAD, PT_DYNAMIC, PT_INTERP = 1, 2, 3
DT_PLTRELSZ, DT_HASH, DT_STRTAB, DT_SYMTAB, DT_RELA, DT_RELASZ = 2, 4, 5, 6, 7, 8
DT_STRSZ, DT_DEBUG, DT_JMPREL = 10, 21, 23
DT_GNU_HASH, DT_VERSYM, DT_RELACOUNT = 0x6FFFFEF5, 0x6FFFFFF0, 0x6FFFFFF9
DT_VERDEF, DT_VERNEED = 0x6FFFFFFC, 0x6FFFFFFE
DT_DEPAUDIT, DT_AUDIT = 0x6FFFFEFB, 0x6FFFFEFC
_SHT_SYMTAB = 2

Bytes = Callable[[int, int], bytes]  # (offset, size): fewer at the end of the file

_SYMBOL = struct.Struct("<IBBHQQ")  # name, info, other, section, value, size
_SYMBOL_WORDS = _SYMBOL.size // 4
_RELOCATION = struct.Struct("<QIIq")  # offset, type, symbol, addend
_TAG = struct.Struct("<qQ")


class ElfFault(Exception):
    """The bytes are not a readable ELF file; the text says why in a few words."""


@dataclass(frozen=True, slots=True)
class Segment:
    type: int
    offset: int
    address: int
    file_bytes: int
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class Symbol:
    index: int
    name: str
    value: int
    defined: bool
    visible: bool  # global or weak: other objects can bind to it


class Elf:
    """An ELF file; reads a table when it is needed."""

    def __init__(self, read: Bytes) -> None:
        """Raises ElfFault unless it is a 64-bit little-endian ELF file."""
        self._read = read
        head = self.bytes_at(0, 64)
        if head[:4] != b"\x7fELF":
            raise ElfFault("is not an ELF file")
        if head[4] != 2 or head[5] != 1:
            self.machine = struct.unpack_from("<H" if head[5] == 1 else ">H", head, 18)[0]
            raise ElfFault(f"is for {self.machine_name}, not a 64-bit little-endian machine")
        (self.type, self.machine, _, self.entry, program, self._sections_at) = struct.unpack_from(
            "<HHIQQQ", head, 16
        )
        entry_bytes, entries, self._section_bytes, self._section_count = struct.unpack_from(
            "<HHHH", head, 54
        )
        if entries and entry_bytes != 56:
            raise ElfFault("has a damaged program header")
        table = self.bytes_at(program, entries * 56)
        fields = (struct.unpack_from("<IIQQQQQQ", table, 56 * i) for i in range(entries))
        self.segments = tuple(Segment(f[0], f[2], f[3], f[5], f[6]) for f in fields)

    @property
    def machine_name(self) -> str:
        return MACHINES.get(self.machine, f"machine {self.machine}")

    def bytes_at(self, offset: int, size: int) -> bytes:
        """Exactly `size` bytes of the file."""
        if not (0 <= offset < 1 << 62 and 0 <= size <= MAX_TABLE_BYTES):
            raise ElfFault("is damaged: a table lies outside of the file")
        content = self._read(offset, size) if size else b""
        if len(content) != size:
            raise ElfFault("is damaged: it is shorter than its tables")
        return content

    def segment(self, kind: int) -> Segment | None:
        return next((segment for segment in self.segments if segment.type == kind), None)

    def extent(self) -> tuple[int, int]:
        """The range of addresses that the file occupies, before the base is added."""
        loads = [segment for segment in self.segments if segment.type == PT_LOAD]
        if not loads:
            return 0, 0
        return min(s.address for s in loads), max(s.address + s.memory_bytes for s in loads)

    @cached_property
    def tags(self) -> dict[int, int]:
        """The dynamic section; empty if the file has none."""
        segment = self.segment(PT_DYNAMIC)
        return {} if segment is None else parse_tags(self.bytes_at(*_range(segment)))

    def memory(self, address: int, size: int) -> bytes:
        """The bytes at an address of the loaded file, before relocation."""
        for segment in self.segments:
            start = address - segment.address
            if segment.type == PT_LOAD and 0 <= start <= segment.file_bytes - size:
                return self.bytes_at(segment.offset + start, size)
        raise ElfFault("is damaged: a table lies in no segment")

    # ---- symbols -------------------------------------------------------------------------------

    @cached_property
    def dynamic_symbols(self) -> SymbolTable | None:
        tags = self.tags
        if DT_SYMTAB not in tags or DT_STRTAB not in tags:
            return None
        count = self._symbol_count()
        table = self.memory(tags[DT_SYMTAB], count * _SYMBOL.size)
        names = self.memory(tags[DT_STRTAB], tags.get(DT_STRSZ, 0))
        return SymbolTable(table, names)

    def static_symbols(self) -> SymbolTable | None:
        """.symtab, which `strip` removes; also None if it exceeds MAX_TABLE_BYTES."""
        if not self._sections_at or self._section_bytes != 64:
            return None
        raw = self.bytes_at(self._sections_at, 64 * self._section_count)
        headers = [struct.unpack_from("<IIQQQQII", raw, at) for at in range(0, len(raw), 64)]
        for header in headers:
            if header[1] == _SHT_SYMTAB and header[6] < len(headers):
                names = headers[header[6]]
                if max(header[5], names[5]) > MAX_TABLE_BYTES:
                    return None
                count = header[5] // _SYMBOL.size
                table = self.bytes_at(header[4], count * _SYMBOL.size)
                return SymbolTable(table, self.bytes_at(names[4], names[5]))
        return None

    def _symbol_count(self) -> int:
        """The size of the dynamic symbol table, which only the hash tables give."""
        tags = self.tags
        if DT_HASH in tags:
            return int(struct.unpack("<II", self.memory(tags[DT_HASH], 8))[1])
        if DT_GNU_HASH not in tags:
            return 0
        at = tags[DT_GNU_HASH]
        buckets, first, blooms, _ = struct.unpack("<IIII", self.memory(at, 16))
        chains = at + 16 + 8 * blooms + 4 * buckets
        last = max(array("I", self.memory(at + 16 + 8 * blooms, 4 * buckets)), default=0)
        if last < first:
            return int(first)  # only undefined symbols
        for index in range(last, last + MAX_CHAIN):
            if self.memory(chains + 4 * (index - first), 4)[0] & 1:  # the end of its bucket
                return index + 1
        raise ElfFault("is damaged: a hash chain has no end")

    def version(self, symbol: Symbol) -> tuple[str, bool]:
        """(version of a dynamic symbol or '', whether only that version may be bound)."""
        if DT_VERSYM not in self.tags:
            return "", False
        (number,) = struct.unpack("<H", self.memory(self.tags[DT_VERSYM] + 2 * symbol.index, 2))
        name = self._version_names.get(number & 0x7FFF, "") if number & 0x7FFF > 1 else ""
        return name, bool(number & 0x8000)

    @cached_property
    def _version_names(self) -> dict[int, str]:
        """Version names by number: defined versions (verdef) and required ones (verneed)."""
        names: dict[int, str] = {}
        steps, at = 0, self.tags.get(DT_VERDEF, 0)
        while at and steps < MAX_CHAIN:
            _, _, number, _, _, aux, step = struct.unpack("<HHHHIII", self.memory(at, 20))
            names[number] = self._name(struct.unpack("<I", self.memory(at + aux, 4))[0])
            at, steps = at + step if step else 0, steps + 1
        at = self.tags.get(DT_VERNEED, 0)
        while at and steps < MAX_CHAIN:
            _, count, _, aux, step = struct.unpack("<HHIII", self.memory(at, 16))
            each = at + aux
            for _ in range(min(count, MAX_CHAIN - steps)):
                _, _, number, name, hop = struct.unpack("<IHHII", self.memory(each, 16))
                names[number] = self._name(name)
                each, steps = each + hop, steps + 1
            at, steps = at + step if step else 0, steps + 1
        return names

    def _name(self, offset: int) -> str:
        symbols = self.dynamic_symbols
        return "" if symbols is None else symbols.name_at(offset)

    # ---- relocations ---------------------------------------------------------------------------

    def got_slots(self, symbol: Symbol) -> tuple[int, ...]:
        """Addresses (before the base) where the linker stores the address of a dynamic symbol."""
        tags = self.tags
        # Relative relocations come first and name no symbol; a large library has mostly these.
        skip = min(tags.get(DT_RELACOUNT, 0) * _RELOCATION.size, tags.get(DT_RELASZ, 0))
        slots: list[int] = []
        for start, size in (
            (tags.get(DT_RELA, 0) + skip, tags.get(DT_RELASZ, 0) - skip),
            (tags.get(DT_JMPREL, 0), tags.get(DT_PLTRELSZ, 0)),
        ):
            size -= size % _RELOCATION.size
            table = self.memory(start, size) if size > 0 else b""
            entries = [
                at - 8
                for kind in _GOT_TYPES.get(self.machine, ())
                for at in _places(table, struct.pack("<II", kind, symbol.index))
                if at % _RELOCATION.size == 8
            ]
            slots += (_RELOCATION.unpack_from(table, entry)[0] for entry in sorted(entries))
        return tuple(dict.fromkeys(slots))


class SymbolTable:
    """Symbols and their names; finds symbols by the end of a name without decoding the others."""

    def __init__(self, symbols: bytes, names: bytes) -> None:
        self._symbols, self._names = symbols, names

    def ending_in(self, end: bytes) -> list[Symbol]:
        """The symbols whose names end in `end`. Linkers share tails: 'malloc' may end another
        name."""
        end += b"\0"
        places = _places(self._names, end)
        if not places:
            return []
        begins = bytearray(len(self._names))  # 1 where a name with this ending may begin
        for place in places:
            first = self._names.rfind(b"\0", max(place - MAX_NAME_BYTES, 0), place) + 1
            first = max(first, place - MAX_NAME_BYTES)
            begins[first : place + 1] = b"\1" * (place + 1 - first)
        symbols: list[Symbol] = []
        starts = array("I", self._symbols)[::_SYMBOL_WORDS]
        for index, start in enumerate(starts):
            if start < len(begins) and begins[start] and len(symbols) < MAX_NAMES:
                _, info, _, section, value, _ = _SYMBOL.unpack_from(
                    self._symbols, index * _SYMBOL.size
                )
                name = self._names[start : self._names.index(end, start) + len(end) - 1]
                symbols.append(
                    Symbol(
                        index=index,
                        name=name.decode("utf-8", "replace"),
                        value=value,
                        defined=bool(section),
                        visible=info >> 4 in (1, 2, 10),  # GLOBAL, WEAK, UNIQUE
                    )
                )
        return symbols

    def name_at(self, offset: int) -> str:
        end = self._names.find(b"\0", offset, offset + 4096)
        return self._names[offset : max(end, offset)].decode("utf-8", "replace")


class Blocks:
    """Reads and keeps whole blocks, since tables are read in many small pieces."""

    MOST_KEPT = 64

    def __init__(self, read: Bytes, block_bytes: int) -> None:
        self._read, self._block_bytes = read, block_bytes
        self._kept: dict[int, bytes] = {}

    def __call__(self, offset: int, size: int) -> bytes:
        if size > self._block_bytes:
            return self._read(offset, size)
        number, start = divmod(offset, self._block_bytes)
        content = self._block(number)[start : start + size]
        if start + size > self._block_bytes and start + len(content) == self._block_bytes:
            content += self._block(number + 1)[: size - len(content)]
        return content

    def _block(self, number: int) -> bytes:
        if number not in self._kept:
            if len(self._kept) == self.MOST_KEPT:
                self._kept.clear()
            self._kept[number] = self._read(number * self._block_bytes, self._block_bytes)
        return self._kept[number]


def _places(content: bytes, text: bytes) -> list[int]:
    """The offsets of `text`, at most MAX_NAMES."""
    places: list[int] = []
    at = content.find(text)
    while at >= 0 and len(places) < MAX_NAMES:
        places.append(at)
        at = content.find(text, at + 1)
    return places


def parse_tags(raw: bytes) -> dict[int, int]:
    """The tags of a dynamic section up to DT_NULL; of duplicate tags, the first."""
    raw = raw[: min(len(raw) // _TAG.size, MAX_CHAIN) * _TAG.size]
    by_tag: dict[int, int] = {}
    for tag, value in _TAG.iter_unpack(raw):
        if tag == 0:
            break
        by_tag.setdefault(tag, value)
    return by_tag


def _range(segment: Segment) -> tuple[int, int]:
    return segment.offset, segment.file_bytes
