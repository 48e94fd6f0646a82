"""An inspection, and a deployment's verification, for a terminal. Fits 80 columns. Pure.

Totals first, then what is wrong. Findings that are alike share an entry with a count: 200 threads
with one fault are one entry. Names come from foreign processes, so unprintable characters are
replaced.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from atoll.inspect.verify import Verification
from atoll.report.terminal.grid import grid
from atoll.schema.cpulist import brief_cpulist, format_cpulist, parse_cpulist
from atoll.schema.inspection import (
    Finding,
    Inspection,
    JvmLook,
    L3Look,
    MallocLook,
    MappingKind,
    MemoryLook,
    NicLook,
    PageCacheLook,
    Severity,
    SpreadLook,
    ThreadLook,
)
from atoll.schema.plan import HugePages, Malloc, Placement
from atoll.schema.size import gib
from atoll.schema.text import first_of, one_line, plural, printable

MOST_MASKS = 8
MOST_SINGLE = 3
MOST_CPUS = 5
MOST_KINDS = 4
MOST_FILES = 4
MOST_NAMED = 4
_BAR = 12
_LABEL = 9
_STYLES = {Severity.DRIFT: "bold red", Severity.NOTE: "yellow"}


def inspection_text(inspection: Inspection) -> RenderableType:
    """One process and its findings."""
    parts: list[RenderableType] = [
        _title(inspection),
        Text(one_line(inspection.command), style="dim", no_wrap=True, overflow="ellipsis"),
        Text(_expected(inspection)),
        Text(),
        *_threads(inspection.threads),
    ]
    if inspection.spread is not None:
        parts.append(_line("Spread", _spread(inspection.spread)))
    if inspection.memory is not None:
        parts += _memory(inspection.memory, inspection)
    if inspection.page_cache:
        parts.append(_line("Cache", _page_cache(inspection.page_cache)))
    if inspection.malloc is not None:
        parts.append(_line("Malloc", _malloc(inspection.malloc)))
    if inspection.jvm is not None:
        parts.append(_line("JVM", _jvm(inspection.jvm)))
    parts += [_line("L3", _l3(look)) for look in inspection.l3]
    parts += [_line("Unknown", printable(line), style="yellow") for line in inspection.unknown]
    parts += findings_text(inspection.findings, several_processes=False)
    return Group(*parts)


def verification_text(verification: Verification) -> RenderableType:
    """A line for each process, then the findings of all."""
    threads = plural(verification.threads, "thread")
    if verification.placement is not Placement.NONE:
        threads += f", {verification.task_threads} bound to one CPU each ({verification.placement})"
    head = f"{verification.deployment}: {threads}, {verification.drifted} drifted"
    table = grid(header="bold", gap=1)
    for title in ("PROCESS", "SLOT", "PID", "CPUS", "THREADS", "MEMORY", "ON ITS NODES", "DRIFT"):
        left = title in ("PROCESS", "CPUS")
        table.add_column(title, justify="left" if left else "right", overflow="fold")
    for process in sorted(verification.processes, key=lambda one: (one.process, one.pid)):
        memory = process.memory
        table.add_row(
            printable(process.process),
            "-" if process.slot is None else str(process.slot),
            str(process.pid),
            brief_cpulist(parse_cpulist(process.expected.cpus)),
            str(len(process.threads)),
            gib(memory.resident_bytes) if memory else "-",
            _percent(memory.own_nodes_share if memory else None),
            Text(str(process.drifted), style="bold red" if process.drifted else ""),
        )
    findings = findings_text(verification.findings, several_processes=True)
    return Group(Text(head, style="bold"), table, *_nics(verification.nics), *findings)


def _nics(nics: Sequence[NicLook]) -> list[RenderableType]:
    if not nics:
        return []
    table = grid(header="bold", gap=1)
    for title in ("NIC", "ADDRESS", "SLOTS", "RECEIVED", "SENT", "SINCE"):
        left = title in ("NIC", "ADDRESS", "SINCE")
        table.add_column(title, justify="left" if left else "right", overflow="fold")
    for nic in nics:
        table.add_row(
            printable(nic.name),
            nic.address or "-",
            format_cpulist(nic.slots) or "-",
            gib(nic.rx_bytes),
            gib(nic.tx_bytes),
            "its start" if nic.since == "deployment" else "the NIC exists",
        )
    note = "Of the whole machine. What its instances send each other passes lo and no NIC."
    return [Text(), table, Text(note, style="dim")]


def findings_text(findings: Sequence[Finding], *, several_processes: bool) -> list[RenderableType]:
    """Findings that differ only in their thread or mapping are one entry."""
    groups: dict[tuple[str, ...], list[Finding]] = {}
    for finding in sorted(findings, key=lambda finding: finding.severity):  # drift first
        alike = (finding.severity, finding.code, finding.expected, finding.cause)
        groups.setdefault(alike, []).append(finding)
    parts: list[RenderableType] = []
    for group in groups.values():
        first = group[0]
        count = f" × {len(group)}" if len(group) > 1 else ""
        head = Text.assemble(
            (f"{first.severity}: {first.code}{count}", _STYLES[first.severity]),
            f"  expected {printable(first.expected)}",
        )
        lines = [Text(line) for line in _subjects(group, several_processes=several_processes)]
        remedies = list(dict.fromkeys(finding.remedy for finding in group))
        others = " (and similarly for the others)" if len(remedies) > 1 else ""
        body = Group(
            *lines,
            _line("cause", printable(first.cause), width=7),
            _line("remedy", printable(remedies[0]) + others, width=7),
        )
        parts += [Text(), head, Padding(body, (0, 0, 0, 2))]
    return parts


def _subjects(group: Sequence[Finding], *, several_processes: bool) -> list[str]:
    """Threads by what was found, mappings one by one; the first few of each."""
    lines = []
    by_found: dict[tuple[str, str], list[Finding]] = {}
    for finding in group:
        pid = f" pid {finding.pid}" if finding.pid else ""
        process = f"{finding.process}{pid}" if several_processes else ""
        by_found.setdefault((process, finding.found), []).append(finding)
    for (process, found), alike in by_found.items():
        subjects = [text for finding in alike if (text := _subject(finding))]
        where = " ".join(filter(None, (process, first_of(subjects, MOST_NAMED))))
        lines.append(printable(f"{where}: found {found}" if where else f"found {found}"))
    if len(lines) > 2 * MOST_NAMED:
        rest = len(lines) - MOST_NAMED
        lines = [*lines[:MOST_NAMED], f"and {rest} more (all are in --json)"]
    return lines


def _subject(finding: Finding) -> str:
    if finding.tid is not None:
        return f"tid {finding.tid} ({finding.comm})"
    return finding.mapping


def _title(inspection: Inspection) -> Text:
    slot = "" if inspection.slot is None else f"  slot {inspection.slot}"
    notes = len(inspection.findings) - inspection.drifted
    state = f"{inspection.drifted} drifted" if inspection.drifted else "no drift"
    return Text.assemble(
        (f"{printable(inspection.process)}  pid {inspection.pid}{slot}  ", "bold"),
        (state, "bold red" if inspection.drifted else "green"),
        f", {plural(notes, 'note')}" if notes else "",
    )


def _expected(inspection: Inspection) -> str:
    expected = inspection.expected
    source = "Planned" if expected.source == "plan" else "Started with"
    parts = [f"CPUs {brief_cpulist(parse_cpulist(expected.cpus))}"]
    if expected.memory_policy:
        parts.append(f"memory {expected.memory_policy}")
    if expected.memory_nodes:
        parts.append(f"expected on {_named_nodes(expected.memory_nodes)}")
    if expected.malloc is not Malloc.SYSTEM:
        parts.append(f"malloc {expected.malloc}")
    if expected.thp is HugePages.NEVER:
        parts.append("no transparent huge pages")
    return f"{source}: {', '.join(parts)}"


def _named_nodes(nodes: str) -> str:
    return f"{'node' if nodes.isdecimal() else 'nodes'} {nodes}"


def _threads(threads: Sequence[ThreadLook]) -> list[RenderableType]:
    migrations = [thread.migrations for thread in threads if thread.migrations is not None]
    totals = [plural(len(threads), "thread"), f"{_seconds(threads)} of CPU time"]
    if migrations:
        totals.append(f"migrated {plural(sum(migrations), 'time')}")
    table = grid()
    table.add_column("MAY RUN ON", overflow="fold")
    table.add_column("THREADS", justify="right")
    table.add_column("CPU TIME", justify="right", no_wrap=True)
    table.add_column("LAST CPU (THREADS)", overflow="fold")
    for name, group in _by_mask(threads):
        table.add_row(name, str(len(group)), _seconds(group), _last_cpus(group))
    return [_line("Threads", ", ".join(totals)), Padding(table, (0, 0, 0, 2))]


def _by_mask(threads: Sequence[ThreadLook]) -> list[tuple[str, list[ThreadLook]]]:
    """Threads by mask; many threads that are each pinned to their own CPU are one row."""
    groups: dict[str, list[ThreadLook]] = {}
    for thread in threads:
        groups.setdefault(thread.cpus, []).append(thread)
    rows = []
    single = {cpus: group for cpus, group in groups.items() if cpus.isdecimal() and len(group) == 1}
    if len(single) > MOST_SINGLE:
        pinned = [thread for group in single.values() for thread in group]
        rows.append((f"one CPU each of {brief_cpulist(map(int, single))}", pinned))
        groups = {cpus: group for cpus, group in groups.items() if cpus not in single}
    rows += [(brief_cpulist(parse_cpulist(cpus)), group) for cpus, group in groups.items()]
    rows.sort(key=lambda row: -len(row[1]))
    if len(rows) > MOST_MASKS:
        rest = [thread for _, group in rows[MOST_MASKS - 1 :] for thread in group]
        rows = [*rows[: MOST_MASKS - 1], (f"{len(rows) - MOST_MASKS + 1} other masks", rest)]
    return rows


def _last_cpus(threads: Sequence[ThreadLook]) -> str:
    counts = sorted(
        Counter(thread.last_cpu for thread in threads).items(), key=lambda each: (-each[1], each[0])
    )
    if len(counts) > MOST_CPUS:
        shown = counts[: MOST_CPUS - 1]
        return f"{_counts(shown)} and {len(counts) - len(shown)} more"
    return _counts(counts)


def _counts(counts: Iterable[tuple[int, int]]) -> str:
    return "  ".join(f"{cpu} ({count})" for cpu, count in counts)


def _seconds(threads: Iterable[ThreadLook]) -> str:
    return f"{sum(thread.cpu_seconds for thread in threads):.1f} s"


def _spread(spread: SpreadLook) -> str:
    """'2 of 8 chiplets: 4 threads on each of 0,4 (7 atoll-duck, 1 atoll-seat)'."""
    islands_by_crowd: dict[int, list[int]] = {}
    for island, crowd in spread.threads_on.items():
        islands_by_crowd.setdefault(crowd, []).append(island)
    where = [
        f"{plural(crowd, 'thread')} on {'each of ' if len(islands) > 1 else ''}"
        f"{brief_cpulist(islands)}"
        for crowd, islands in sorted(islands_by_crowd.items(), reverse=True)
    ]
    names = [f"{count} {name}" for name, count in spread.threads_named.items()]
    more = f" and {len(names) - MOST_NAMED} more names" if len(names) > MOST_NAMED else ""
    return printable(
        f"{len(spread.threads_on)} of {plural(spread.usable, spread.over)}: {', '.join(where)} "
        f"({', '.join(names[:MOST_NAMED])}{more})"
    )


def _memory(memory: MemoryLook, inspection: Inspection) -> list[RenderableType]:
    how = (
        f"sampled on {memory.sampled_pages} pages (± {memory.share_error:.1%})"
        if memory.method == "move_pages"
        else "counted"
    )
    totals = [f"{gib(memory.resident_bytes)} resident, {how}"]
    if memory.own_nodes_share is not None:
        share = f"{_percent(memory.own_nodes_share)} on its CPUs' nodes"
        if memory.own_nodes_share < 1 and inspection.expected.memory_nodes:
            share += " (file pages do not count as drift)"
        totals.append(share)
    if memory.local_share is not None:
        totals.append(f"{_percent(memory.local_share)} local")
    more = [f"policy {inspection.memory_policy}"] if inspection.memory_policy else []
    if memory.huge_bytes is not None:
        more.append(f"{gib(memory.huge_bytes)} in transparent huge pages")
    if inspection.thp is False:
        more.append("transparent huge pages are off for it")
    parts: list[RenderableType] = [_line("Memory", ", ".join(totals))]
    if more:
        parts.append(_line("", ", ".join(more)))
    return [*parts, Padding(_nodes(memory), (0, 0, 0, 2))]


def _nodes(memory: MemoryLook) -> Table:
    """A row for each node: its share, its bytes, and the bytes of the largest kinds."""
    sizes = {kind: sum(nodes.values()) for kind, nodes in memory.bytes_by_kind.items()}
    kinds = sorted((kind for kind in sizes if sizes[kind]), key=lambda kind: -sizes[kind])
    shown, rest = kinds[:MOST_KINDS], kinds[MOST_KINDS:]
    table = grid()
    table.add_column("NODE", justify="right")
    table.add_column("SHARE", no_wrap=True)
    for title in ("TOTAL", *(kind.upper() for kind in shown), *(["OTHER"] if rest else [])):
        table.add_column(title, justify="right", no_wrap=True)
    total = sum(memory.bytes_by_node.values()) or 1
    for node, size in sorted(memory.bytes_by_node.items()):
        columns: list[Sequence[MappingKind]] = [[kind] for kind in shown]
        columns += [rest] if rest else []
        cells = [
            sum(memory.bytes_by_kind[kind].get(node, 0) for kind in column) for column in columns
        ]
        share = size / total
        table.add_row(
            str(node),
            f"{_percent(share):>5} {_bar(share)}",
            gib(size),
            *(gib(cell) if cell else "-" for cell in cells),
        )
    return table


def _bar(share: float) -> str:
    """Twelve cells, in eighths of a cell."""
    eighths = round(share * _BAR * 8)
    full, part = divmod(eighths, 8)
    return "█" * full + ("▏▎▍▌▋▊▉"[part - 1] if part else "")


def _page_cache(files: Sequence[PageCacheLook]) -> str:
    by_node: Counter[int] = Counter()
    for file in files:
        by_node.update(file.bytes_by_node)
    cached, whole = sum(f.cached_bytes for f in files), sum(f.size_bytes for f in files)
    where = ", ".join(f"{gib(size)} on node {node}" for node, size in sorted(by_node.items()))
    text = f"{plural(len(files), 'file')}, {gib(cached)} of {gib(whole)} cached"
    return f"{text}: {where}" if where and cached else text


def _malloc(malloc: MallocLook) -> str:
    text = f"{malloc.reached or 'unknown'}"
    if malloc.unknown:
        text += f" ({printable(malloc.unknown)})"
    if malloc.preload:
        text += f"; requested {', '.join(malloc.preload)}"
    exceptions = [f"{name}: {other}" for name, other in malloc.exceptions.items()]
    if exceptions:
        text += f"; except {first_of(exceptions, MOST_FILES)}"
    return printable(text)


def _jvm(jvm: JvmLook) -> str:
    parts = [jvm.version, jvm.collector]
    if jvm.max_heap_bytes is not None:
        parts.append(f"heap up to {gib(jvm.max_heap_bytes)}")
    if jvm.processors is not None:
        parts.append(plural(jvm.processors, "processor"))
    parts.append(f"UseNUMA {'on' if jvm.use_numa else 'off'}")
    if jvm.large_pages:
        thp = jvm.transparent_huge_pages
        parts.append("transparent huge pages" if thp else "large pages")
    return printable(", ".join(parts))


def _l3(look: L3Look) -> str:
    parts = []
    if look.occupancy_bytes is not None:
        parts.append(f"{gib(look.occupancy_bytes)} in use")
    for what, value in (
        ("of memory traffic", look.total_bytes_per_s),
        ("local", look.local_bytes_per_s),
    ):
        if value is not None:
            parts.append(f"{value / 1e9:.2f} GB/s {what}")
    return f"domain {look.l3}: {', '.join(parts) or 'no counters'}"


def _line(label: str, text: str, *, style: str = "", width: int = _LABEL) -> Table:
    """A label, and text that wraps in its own column."""
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(width=width, no_wrap=True, style="bold" if width == _LABEL else "dim")
    table.add_column(overflow="fold")
    table.add_row(label, Text(text, style=style))
    return table


def _percent(share: float | None) -> str:
    """Only exactly all is '100%', and only exactly none is '0%'."""
    if share is None:
        return "-"
    whole = round(share * 100)
    if (whole == 100 and share < 1) or (whole == 0 and share > 0):
        return f"{share:.1%}".replace("100.0%", ">99.9%").replace("0.0%", "<0.1%")
    return f"{whole}%"
