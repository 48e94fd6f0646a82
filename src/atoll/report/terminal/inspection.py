"""An inspection, and a deployment's verification, for a terminal. Fits 80 columns. Pure.

Sums first, then what is wrong. What is alike is told once with a count: 200 threads with one
fault are one entry. Names come from foreign processes, so that nothing unprintable of them is let
through to the terminal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from atoll.inspect.verify import Verification
from atoll.schema.cpulist import brief_cpulist, parse_cpulist
from atoll.schema.inspection import (
    Finding,
    Inspection,
    JvmLook,
    L3Look,
    MallocLook,
    MappingKind,
    MemoryLook,
    PageCacheLook,
    Severity,
    SpreadLook,
    ThreadLook,
)
from atoll.schema.size import gib
from atoll.schema.text import plural, printable

MOST_MASKS = 8
MOST_SINGLE = 3
MOST_CPUS = 5
MOST_KINDS = 4
MOST_FILES = 4
MOST_NAMED = 4
_BAR = 12
_LABEL = 9
_STYLES = {Severity.DRIFT: "bold red", Severity.NOTE: "yellow"}


def inspection_text(found: Inspection) -> RenderableType:
    """One process, with its findings."""
    parts: list[RenderableType] = [
        _title(found),
        Text(printable(found.command), style="dim", no_wrap=True, overflow="ellipsis"),
        Text(_expected(found)),
        Text(),
        *_threads(found.threads),
    ]
    if found.spread is not None:
        parts.append(_line("Spread", _spread(found.spread)))
    if found.memory is not None:
        parts += _memory(found.memory, found.memory_policy)
    if found.page_cache:
        parts.append(_line("Cache", _page_cache(found.page_cache)))
    if found.malloc is not None:
        parts.append(_line("Malloc", _malloc(found.malloc)))
    if found.jvm is not None:
        parts.append(_line("JVM", _jvm(found.jvm)))
    parts += [_line("L3", _l3(look)) for look in found.l3]
    parts += [_line("Unknown", printable(line), style="yellow") for line in found.unknown]
    parts += findings_text(found.findings, several_processes=False)
    return Group(*parts)


def verification_text(found: Verification) -> RenderableType:
    """A line for each process, then the findings of all."""
    head = f"{found.deployment}: {plural(found.threads, 'thread')}, {found.drifted} drifted"
    table = Table(box=None, pad_edge=False, header_style="bold", title_justify="left")
    for title in ("PROCESS", "SLOT", "PID", "CPUS", "THREADS", "MEMORY", "ON ITS NODES", "DRIFT"):
        left = title in ("PROCESS", "CPUS")
        table.add_column(title, justify="left" if left else "right", overflow="fold")
    for process in sorted(found.processes, key=lambda one: (one.process, one.pid)):
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
    findings = findings_text(found.findings, several_processes=True)
    return Group(Text(head, style="bold"), table, *findings)


def findings_text(findings: Sequence[Finding], *, several_processes: bool) -> list[RenderableType]:
    """Findings that differ only in whom they concern are one entry."""
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
        lines = [Text(line) for line in _whom(group, several_processes=several_processes)]
        remedies = list(dict.fromkeys(finding.remedy for finding in group))
        others = " (likewise the others)" if len(remedies) > 1 else ""
        body = Group(
            *lines,
            _line("cause", printable(first.cause), width=7),
            _line("remedy", printable(remedies[0]) + others, width=7),
        )
        parts += [Text(), head, Padding(body, (0, 0, 0, 2))]
    return parts


def _whom(group: Sequence[Finding], *, several_processes: bool) -> list[str]:
    """Threads by what was found, mappings one by one, the first few of each."""
    lines = []
    by_found: dict[tuple[str, str], list[Finding]] = {}
    for finding in group:
        process = f"{finding.process} pid {finding.pid}" if several_processes else ""
        by_found.setdefault((process, finding.found), []).append(finding)
    for (process, found), alike in by_found.items():
        who = [text for finding in alike if (text := _who(finding))]
        shown = ", ".join(who[:MOST_NAMED])
        more = f" and {len(who) - MOST_NAMED} more" if len(who) > MOST_NAMED else ""
        where = " ".join(filter(None, (process, shown + more)))
        lines.append(printable(f"{where}: found {found}" if where else f"found {found}"))
    if len(lines) > 2 * MOST_NAMED:
        rest = len(lines) - MOST_NAMED
        lines = [*lines[:MOST_NAMED], f"and {rest} more (all are in --json)"]
    return lines


def _who(finding: Finding) -> str:
    if finding.tid is not None:
        return f"tid {finding.tid} ({finding.comm})"
    return finding.mapping


def _title(found: Inspection) -> Text:
    slot = "" if found.slot is None else f"  slot {found.slot}"
    notes = len(found.findings) - found.drifted
    state = f"{found.drifted} drifted" if found.drifted else "no drift"
    return Text.assemble(
        (f"{printable(found.process)}  pid {found.pid}{slot}  ", "bold"),
        (state, "bold red" if found.drifted else "green"),
        f", {plural(notes, 'note')}" if notes else "",
    )


def _expected(found: Inspection) -> str:
    expected = found.expected
    who = "By its plan" if expected.source == "plan" else "As it was given"
    parts = [f"CPUs {brief_cpulist(parse_cpulist(expected.cpus))}"]
    if expected.memory_policy:
        parts.append(f"memory {expected.memory_policy}")
    if expected.memory_nodes:
        parts.append(f"on nodes {expected.memory_nodes}")
    return f"{who}: {', '.join(parts)}"


def _threads(threads: Sequence[ThreadLook]) -> list[RenderableType]:
    migrations = [thread.migrations for thread in threads if thread.migrations is not None]
    sums = [plural(len(threads), "thread"), f"{_seconds(threads)} of CPU time"]
    if migrations:
        sums.append(f"moved {plural(sum(migrations), 'time')}")
    table = _table()
    table.add_column("MAY RUN ON", overflow="fold")
    table.add_column("THREADS", justify="right")
    table.add_column("CPU TIME", justify="right", no_wrap=True)
    table.add_column("LAST RAN ON CPU (THREADS)", overflow="fold")
    for name, mine in _by_mask(threads):
        table.add_row(name, str(len(mine)), _seconds(mine), _last_cpus(mine))
    return [_line("Threads", ", ".join(sums)), Padding(table, (0, 0, 0, 2))]


def _by_mask(threads: Sequence[ThreadLook]) -> list[tuple[str, list[ThreadLook]]]:
    """Threads with one mask together; many that are pinned to one CPU each are one row."""
    groups: dict[str, list[ThreadLook]] = {}
    for thread in threads:
        groups.setdefault(thread.cpus, []).append(thread)
    rows = []
    single = {cpus: mine for cpus, mine in groups.items() if cpus.isdecimal() and len(mine) == 1}
    if len(single) > MOST_SINGLE:
        pinned = [thread for mine in single.values() for thread in mine]
        rows.append((f"one each of {brief_cpulist(map(int, single))}", pinned))
        groups = {cpus: mine for cpus, mine in groups.items() if cpus not in single}
    rows += [(brief_cpulist(parse_cpulist(cpus)), mine) for cpus, mine in groups.items()]
    rows.sort(key=lambda row: -len(row[1]))
    if len(rows) > MOST_MASKS:
        rest = [thread for _, mine in rows[MOST_MASKS - 1 :] for thread in mine]
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


def _memory(memory: MemoryLook, policy: str) -> list[RenderableType]:
    how = (
        f"sampled on {memory.sampled_pages} pages (± {memory.share_error:.1%})"
        if memory.method == "move_pages"
        else "counted"
    )
    sums = [f"{gib(memory.resident_bytes)} resident, {how}"]
    if memory.own_nodes_share is not None:
        sums.append(f"{_percent(memory.own_nodes_share)} on its CPUs' nodes")
    if memory.local_share is not None:
        sums.append(f"{_percent(memory.local_share)} local")
    more = [f"policy {policy}"] if policy else []
    if memory.huge_bytes is not None:
        more.append(f"{gib(memory.huge_bytes)} in transparent huge pages")
    parts: list[RenderableType] = [_line("Memory", ", ".join(sums))]
    if more:
        parts.append(_line("", ", ".join(more)))
    return [*parts, Padding(_nodes(memory), (0, 0, 0, 2))]


def _nodes(memory: MemoryLook) -> Table:
    """A row for each node: its share, its bytes, and those of the largest kinds."""
    sizes = {kind: sum(nodes.values()) for kind, nodes in memory.bytes_by_kind.items()}
    kinds = sorted((kind for kind in sizes if sizes[kind]), key=lambda kind: -sizes[kind])
    shown, rest = kinds[:MOST_KINDS], kinds[MOST_KINDS:]
    table = _table()
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
    by_node: dict[int, int] = {}
    for file in files:
        for node, size in file.bytes_by_node.items():
            by_node[node] = by_node.get(node, 0) + size
    cached, whole = sum(f.cached_bytes for f in files), sum(f.size_bytes for f in files)
    where = ", ".join(f"{gib(size)} on node {node}" for node, size in sorted(by_node.items()))
    text = f"{plural(len(files), 'file')}, {gib(cached)} of {gib(whole)} cached"
    return f"{text}: {where}" if where and cached else text


def _malloc(malloc: MallocLook) -> str:
    text = f"{malloc.reached or 'unknown'}"
    if malloc.unknown:
        text += f" ({printable(malloc.unknown)})"
    if malloc.preload:
        text += f"; asked for {', '.join(malloc.preload)}"
    brings = [f"{name}: {other}" for name, other in malloc.exceptions.items()]
    if brings:
        more = f" and {len(brings) - MOST_FILES} more" if len(brings) > MOST_FILES else ""
        text += f"; but {', '.join(brings[:MOST_FILES])}{more}"
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
    for words, value in (
        ("of memory traffic", look.total_bytes_per_s),
        ("local", look.local_bytes_per_s),
    ):
        if value is not None:
            parts.append(f"{value / 1e9:.2f} GB/s {words}")
    return f"domain {look.l3}: {', '.join(parts) or 'nothing is counted'}"


def _line(label: str, text: str, *, style: str = "", width: int = _LABEL) -> Table:
    """A label and text that wraps beside it."""
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(width=width, no_wrap=True, style="bold" if width == _LABEL else "dim")
    table.add_column(overflow="fold")
    table.add_row(label, Text(text, style=style))
    return table


def _table() -> Table:
    return Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))


def _percent(share: float | None) -> str:
    """Nothing is rounded to all or none that is not."""
    if share is None:
        return "-"
    whole = round(share * 100)
    if (whole == 100 and share < 1) or (whole == 0 and share > 0):
        return f"{share:.1%}".replace("100.0%", ">99.9%").replace("0.0%", "<0.1%")
    return f"{whole}%"
