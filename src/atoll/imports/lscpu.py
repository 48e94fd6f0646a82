"""The output of lscpu (util-linux), and of `numactl -H` behind it. Pure.

A table (`lscpu -p`, `-e`, or `-e -J`) says which CPUs share a core, a node and each cache, but not
how large a cache is. A summary (`lscpu`, `-J`) or `lscpu -C` has the sizes. Neither has the
memory, so a file may join the outputs of one machine: `(lscpu; lscpu -p; numactl -H) > FILE`.

Source: lscpu(1), and the outputs of util-linux 2.38: `-e` leaves out the caches that a CPU lacks,
words and decimal marks follow the locale, and before 2.34 the summary gave the size of one cache
instead of all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from atoll.errors import TopologyError
from atoll.imports.description import Cpu, Description
from atoll.schema.cpulist import format_cpulist, parse_cpulist
from atoll.schema.machine import Notice
from atoll.schema.size import parse_size

Row = Mapping[str, str]  # by column in capitals; without what lscpu leaves open

_JOINED = "(LC_ALL=C lscpu; lscpu -p; numactl -H) > FILE"
_NO_DIES = (
    "lscpu does not show dies; if a package of this machine has several, Atoll sees other chiplets "
    "there, and 'atoll up' there refuses this plan; use XML of lstopo to start it"
)
_NOT_KNOWN = ("", "-", "null", "None")
_PLACES = ("CORE", "SOCKET", "NODE")
_NO = ("n", "no", "false")
_YES = ("y", "yes", "true")
_CACHE = re.compile(r"L[1-5][DI]?", re.IGNORECASE)
_FIELD = re.compile(r"\s*([A-Za-z][^:]*):\s+(\S.*)")
_CACHE_FIELD = re.compile(r"(L\d[di]?)(?: cache)?", re.IGNORECASE)
_CACHE_SIZE = re.compile(
    r"(\d{1,12}(?:\.\d{1,3})? ?(?:[KMG](?:iB)?)?)(?: \((\d{1,6}) instances?\))?", re.ASCII
)
_NODE_CPUS = re.compile(r"(?:NUMA node|node )(\d{1,6}) (?:CPU\(s\)|cpus)")  # lscpu's, numactl's
_ONLINE, _OFFLINE = "On-line CPU(s) list", "Off-line CPU(s) list"
_COLUMNS = (("SOCKET", "package", "Socket(s)"), ("NODE", "node", "NUMA node(s)"))
_SEVERAL = re.compile("[2-9]|[1-9][0-9]+")
_BRACE = re.compile(r"\s*\{")
_ROW = re.compile(r"\s*(\d|-|L\d)")
_NODE_SIZE = re.compile(r"node (\d{1,6}) size: (\d{1,12}) MB")
_DISTANCES = re.compile(r"\s*(\d{1,6}):((?:\s+\d{1,3})+)\s*")


class _Found:
    """What the parts of a file have said so far."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.fields: dict[str, str] = {}
        self.cache_sizes: dict[str, str] = {}  # of one cache, by name
        self.memory_bytes: dict[int, int] = {}
        self.distances: dict[int, tuple[int, ...]] = {}


def read_lscpu(content: bytes) -> Description:
    """Raises TopologyError."""
    found = _Found()
    _read_lines(_read_json(content.decode(errors="replace"), found), found)
    if not found.rows:
        raise TopologyError(
            "without a table, it does not say which CPUs share a core or a cache; join it with one "
            f"on that machine: {_JOINED}"
        )
    cpus = _with_nodes(found, [_cpu(row) for row in found.rows if _is_online(row)])
    offline = {_cpu(row).number for row in found.rows if not _is_online(row)}
    offline |= set(_cpu_list(_OFFLINE, found.fields.get(_OFFLINE, "")))
    _refuse_two_machines(found, cpus)
    sizes = _cache_bytes(found, cpus)
    unknown = sorted({name for cpu in cpus for name in cpu.caches} - sizes.keys())
    notices = [Notice(code="dies-unknown", message=_NO_DIES)]
    if unknown:
        notices.append(Notice(code="no-cache-sizes", message=_no_sizes(unknown)))
    return Description(
        kind="lscpu",
        cpus=tuple(cpus),
        offline=tuple(sorted(offline)),
        cache_bytes=sizes,
        memory_bytes=found.memory_bytes,
        distances=found.distances,
        architecture=found.fields.get("Architecture", ""),
        cpu_vendor=found.fields.get("Vendor ID", ""),
        cpu_model=found.fields.get("Model name", ""),
        notices=tuple(notices),
    )


def _cpu_list(label: str, text: str) -> tuple[int, ...]:
    try:
        return parse_cpulist(text)
    except ValueError:
        raise TopologyError(f"{label}: {text[:60]!r} is not a list of CPUs") from None


def _with_nodes(found: _Found, cpus: list[Cpu]) -> list[Cpu]:
    """A table may lack the nodes. The summary and numactl list the CPUs of each."""
    nodes = {cpu.number: cpu.node for cpu in cpus if cpu.node is not None}
    for label, text in found.fields.items():
        match = _NODE_CPUS.fullmatch(label)
        if match is None or text.startswith("0x"):  # `lscpu -x` has masks
            continue
        for number in _cpu_list(label, text.replace(" ", ",")):  # numactl's has blanks
            if nodes.setdefault(number, int(match[1])) != int(match[1]):
                raise TopologyError(
                    f"CPU {number} is on node {nodes[number]} and on node {match[1]}; join outputs "
                    "of one machine"
                )
    return [replace(cpu, node=nodes.get(cpu.number)) for cpu in cpus]


def _no_sizes(names: list[str]) -> str:
    return (
        f"the size of {', '.join(names)} is unknown and shown as 0: lscpu's table has none; "
        f"join it with the summary: {_JOINED}"
    )


def _refuse_two_machines(found: _Found, cpus: list[Cpu]) -> None:
    online = _cpu_list(_ONLINE, found.fields.get(_ONLINE, ""))
    if online not in ((), tuple(sorted(cpu.number for cpu in cpus))):
        raise TopologyError(
            f"its summary has the CPUs {format_cpulist(online)[:60]}, its table "
            f"{format_cpulist(cpu.number for cpu in cpus)[:60]}; join outputs of one machine"
        )
    for column, what, label in _COLUMNS:
        count = found.fields.get(label, "")
        if _SEVERAL.fullmatch(count) and all(getattr(cpu, what) is None for cpu in cpus):
            raise TopologyError(
                f"its summary has {label} {count[:20]}, and its table no column {column}; use "
                "'lscpu -p'"
            )
    nodes = {cpu.node for cpu in cpus} - {None}
    memory = found.memory_bytes
    if (memory and not nodes <= memory.keys()) or (len(memory) > 1 and not nodes):
        raise TopologyError("numactl has other nodes than lscpu; join outputs of one machine")


def _read_json(text: str, found: _Found) -> str:
    """Takes the JSON documents at the beginning. Returns the rest."""
    text = re.sub(r'":\s*-(?=\s*[,}])', '": null', text)  # lscpu's for an offline CPU (2.38)
    at = 0
    while match := _BRACE.match(text, at):
        try:
            document, at = json.JSONDecoder().raw_decode(text, match.end() - 1)
        except ValueError as fault:
            raise TopologyError(f"not lscpu's JSON: {str(fault)[:120]}") from None
        for row in _dicts(document.get("cpus")):
            found.rows.append(_row({key: _cell(value) for key, value in row.items()}))
        for row in _dicts(document.get("caches")):
            found.cache_sizes[str(row.get("name")).upper()] = str(row.get("one-size"))
        _read_fields(document.get("lscpu"), found)
    return text[at:]


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _read_fields(value: Any, found: _Found) -> None:
    """Newer versions nest what belongs together."""
    for item in _dicts(value):
        found.fields.setdefault(str(item.get("field")).rstrip(":"), str(item.get("data")))
        _read_fields(item.get("children"), found)


def _cell(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _read_lines(text: str, found: _Found) -> None:
    columns: list[str] = []  # of the table that the lines are in
    separator: str | None = None
    for line in text.splitlines():
        words = line.upper().split()
        if re.match("# *CPU,", line):
            columns, separator = line.lstrip("# ").upper().split(","), ","
        elif {"CPU", "CORE"} <= set(words) or words[:2] == ["NAME", "ONE-SIZE"]:
            columns, separator = words, None
        elif columns and ": " not in line and (_ROW.match(line) or line.count(",") > 1):
            cells = line.split(separator)
            if columns[0] == "NAME":  # lscpu leaves others of its cells blank
                found.cache_sizes[cells[0].upper()] = "".join(cells[1:2])
                continue
            # Behind an offline CPU, `-p -a` leaves out columns.
            known = [cell for cell in cells[1:] if cell not in _NOT_KNOWN]
            if len(cells) > len(columns) or (len(cells) < len(columns) and known):
                raise TopologyError(
                    f"{line.strip()[:60]!r} has not {len(columns)} columns; use 'lscpu -p'"
                )
            found.rows.append(_row(dict(zip(columns, cells, strict=False))))
        elif match := _NODE_SIZE.fullmatch(line.strip()):
            found.memory_bytes[int(match[1])] = int(match[2]) << 20
        elif match := _DISTANCES.fullmatch(line):
            found.distances[int(match[1])] = tuple(map(int, match[2].split()))
        else:
            columns = []
            if match := _FIELD.fullmatch(line):
                found.fields.setdefault(match[1], match[2].strip())


def _row(named: Mapping[str, str]) -> Row:
    """The known cells. A column of several caches becomes one of each."""
    row: dict[str, str] = {}
    for column, cell in named.items():
        names, cells = column.upper().split(":"), cell.strip().split(":")
        if cell in _NOT_KNOWN:
            continue
        if len(cells) != len(names):
            raise TopologyError(
                f"{cell[:40]!r} does not say which of the caches {column[:40]} a CPU has; "
                "use 'lscpu -p'"
            )
        row |= {n: c for n, c in zip(names, cells, strict=True) if c not in _NOT_KNOWN}
    return row


def _cpu(row: Row) -> Cpu:
    def number(column: str) -> int | None:
        text = row.get(column)
        if text is None:
            return None
        if not (text.isascii() and text.isdecimal() and len(text) < 10):
            raise TopologyError(f"{column} {text[:40]!r} is not a number")
        return int(text)

    index = number("CPU")
    if index is None:
        raise TopologyError("a row has no CPU; use 'lscpu -p'")
    return Cpu(
        index,
        core=number("CORE"),
        package=number("SOCKET"),
        node=number("NODE"),
        caches={name: number(name) for name in row if _CACHE.fullmatch(name)},
    )


def _is_online(row: Row) -> bool:
    """Nothing is known of a CPU that is offline; the words depend on the locale."""
    word = row.get("ONLINE", "").lower()
    return word not in _NO and (word in _YES or not row.keys().isdisjoint(_PLACES))


def _cache_bytes(found: _Found, cpus: list[Cpu]) -> dict[str, int]:
    """The size of one cache of each name."""
    sizes = {}
    for label, value in (found.fields | found.cache_sizes).items():
        name, size = _CACHE_FIELD.fullmatch(label), _CACHE_SIZE.fullmatch(value)
        if name is None or size is None:
            continue
        caches = {(cpu.package, cpu.caches.get(name[1].upper())) for cpu in cpus}
        # '19712K' is one cache's (before 2.34, and -C), '77 MiB' that of all.
        count = int(size[2] or len(caches)) if "iB" in size[1] or size[2] else 1
        sizes[name[1].upper()] = parse_size(size[1]) // max(1, count)
    return sizes
