"""The screen of `atoll top`: the machine's picture, a line for each slot, and a panel. Pure.

Plain spans and no rich, whose tables would cost more than the looks. Every name comes from a
foreign process or file, so unprintable characters are replaced.
"""

from __future__ import annotations

import string
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple
from unicodedata import combining, east_asian_width

from atoll.inspect.verify import brief
from atoll.report.machine.layout import CoreCell
from atoll.report.machine.text import Line, Span, Style, cores_picture
from atoll.report.terminal.deployment import duration
from atoll.schema.cpulist import brief_cpulist, parse_cpulist
from atoll.schema.deployment import State
from atoll.schema.live import DeploymentView, LiveView, SlotView
from atoll.schema.machine import Machine
from atoll.schema.size import gib, percent
from atoll.schema.text import plural, printable

KEYS = "q quit  ↑↓ select  m memory  d drift  p pause"
_NUMBERS = string.digits + string.ascii_lowercase + string.ascii_uppercase
_OLD_S = 30.0  # figures older than this are dim
_BUSY, _IDLE = 0.5, 0.05  # share of a core's time
_COLUMNS = (
    ("SLOT", 4), ("CPUS", 14), ("THREADS", 7), ("CPU", 6), ("HOME", 6), ("LOCAL", 6),
    ("MIGR/s", 7), ("GB/s", 6), ("MEMORY", 8), ("DRIFT", 6),
)  # fmt: skip
_PANEL_PART = 3  # a panel takes a third of the screen
_LEAST_LINES = 5  # of a screen, without its panel
_AS_ASCII = str.maketrans("–·…", "-.~")


class Key(NamedTuple):
    """A line that can be selected."""

    deployment: str
    slot: int | None


@dataclass(frozen=True, slots=True)
class Screen:
    """What the user has chosen."""

    selected: Key | None = None
    panel: str = ""  # 'memory', 'drift'
    paused: bool = False

    def after(self, key: str, view: LiveView) -> Screen:
        """The screen after a key; unknown keys change nothing."""
        keys = selectable(view)
        at = keys.index(self.selected) if self.selected in keys else 0
        match key:
            case "up" | "k" | "down" | "j" if keys:
                step = 1 if key in ("down", "j") else -1
                return replace(self, selected=keys[min(max(at + step, 0), len(keys) - 1)])
            case "m" | "d":
                panel = "memory" if key == "m" else "drift"
                return replace(self, panel="" if self.panel == panel else panel)
            case "p":
                return replace(self, paused=not self.paused)
        return self


def selectable(view: LiveView) -> list[Key]:
    return [Key(one.name, slot.slot) for one in view.deployments for slot in one.slots]


def screen(
    view: LiveView,
    machine: Machine,
    chosen: Screen,
    *,
    width: int,
    height: int | None,
    ascii_only: bool = False,
) -> list[Line]:
    """At most `height` lines of at most `width` columns; None: all lines, without keys and panel.
    On a screen too low for everything the picture is left out first."""
    keys = selectable(view)
    selected = chosen.selected if chosen.selected in keys else (keys[0] if keys else None)
    owners = _owners(view)
    picture = cores_picture(
        machine,
        lambda cell: _core(cell, view.cpu_busy, owners),
        width=width,
        height=max(3, height // 3) if height else 48,
        ascii_only=ascii_only,
    )
    head = [_head(view, chosen)]
    body, at = _body(view, selected)
    if height is None:
        table = [_drawn(item, marked=False) for item in body]
        return [_fitted(line, width, ascii_only) for line in [*head, *picture, [], *table]]
    most = max(0, min(height // _PANEL_PART + 1, height - _LEAST_LINES))
    panel = _panel(view, chosen, selected, width, most)[:most]
    foot: list[Line] = [[Span(KEYS if not ascii_only else KEYS.replace("↑↓", "j/k"), Style.LABEL)]]
    room = max(1, height - len(head) - len(panel) - len(foot))
    if room - len(picture) < min(len(body), 4):
        picture = []
    room = max(1, room - len(picture))
    first = min(max(0, at - room + 1), max(0, len(body) - room)) if len(body) > room else 0
    rows = [0, *range(first + 1, len(body))][:room]
    shown = [_drawn(body[row], marked=row == at) for row in rows]
    shown += [[] for _ in range(room - len(shown))]
    lines = [*head, *picture, *shown, *panel, *foot]
    return [_fitted(line, width, ascii_only) for line in lines[-height:]]


# ---- Parts ----------------------------------------------------------------------------------


def _head(view: LiveView, chosen: Screen) -> Line:
    slots = sum(len(one.slots) for one in view.deployments)
    threads = sum(slot.threads for one in view.deployments for slot in one.slots)
    drift = sum(sum(one.drift_by_code.values()) for one in view.deployments)
    cost = "" if view.cost is None else f"  costs {100 * view.cost:.2f} % of a core"
    up = sum(one.state is not State.FAILED for one in view.deployments)
    words = f"{plural(up, 'deployment')}, {plural(slots, 'slot')}, {plural(threads, 'thread')}"
    return [
        Span("atoll top  " + ("paused  " if chosen.paused else ""), Style.TITLE),
        Span(words + "  "),
        Span(f"drift: {drift}" if drift else "no drift", Style.DRIFT if drift else Style.PLAIN),
        Span(cost, Style.LABEL),
    ]


def _body(view: LiveView, selected: Key | None) -> tuple[list[Line | SlotView], int]:
    """The table, its header first, and the number of the selected line. Slots are drawn only where
    they are visible."""
    header = " ".join(_cell(name, name, size) for name, size in _COLUMNS)
    lines: list[Line | SlotView] = [[Span(header, Style.LABEL)]]
    at = 0
    for one in view.deployments:
        lines.append(_heading(one))
        for slot in one.slots:
            if selected == (one.name, slot.slot):
                at = len(lines)
            lines.append(slot)
    if not view.deployments:
        lines.append([Span("nothing is up; start something with 'atoll up'")])
    lines += [[Span(printable(notice), Style.DRIFT)] for notice in view.notices]
    return lines, at


def _drawn(item: Line | SlotView, *, marked: bool) -> Line:
    return _row(item, marked=marked) if isinstance(item, SlotView) else item


def _heading(one: DeploymentView) -> Line:
    name = printable(f"{one.name}: {one.engine} under {one.policy}, ")
    if one.state is State.FAILED:
        return [Span(name), Span(printable(f"failed: {one.error}"), Style.DRIFT)]
    drift = ", ".join(f"{code} {count}" for code, count in one.drift_by_code.items())
    return [
        Span(name, Style.TITLE),
        Span(one.state.value + (f" for {duration(one.up_s)}" if one.up_s is not None else "")),
        Span(f", {printable(one.error)}" if one.error else "", Style.DRIFT),
        Span(f", {printable(drift)}" if drift else "", Style.DRIFT),
        Span("; " + printable(one.unknown[0]) if one.unknown else "", Style.LABEL),
    ]


def _row(slot: SlotView, *, marked: bool) -> Line:
    size = sum(slot.bytes_by_node.values())
    cells = {
        "SLOT": _slot_name(slot.slot),
        "CPUS": brief_cpulist(parse_cpulist(slot.cpus)) if slot.masked else "any",
        "THREADS": str(slot.threads),
        "CPU": f"{slot.cpu:.2f}",
        "HOME": _share(slot.home_share),
        "LOCAL": _share(slot.local_share),
        "MIGR/s": "–" if slot.migrations_per_s is None else f"{slot.migrations_per_s:.1f}",
        "GB/s": "–" if slot.bytes_per_s is None else f"{slot.bytes_per_s / 1e9:.1f}",
        "MEMORY": gib(size) if size else "–",
        "DRIFT": str(slot.drift) if slot.drift else "none",
    }
    ages = {
        "THREADS": slot.masks_age_s,
        **dict.fromkeys(("HOME", "MIGR/s"), slot.runs_age_s),
        **dict.fromkeys(("LOCAL", "MEMORY"), slot.memory_age_s),
    }
    spans: Line = []
    for at, (name, width) in enumerate(_COLUMNS):
        style = Style.DIM if (ages.get(name) or 0.0) > _OLD_S else Style.PLAIN
        style = Style.DRIFT if name == "DRIFT" and slot.drift else style
        style = Style.SELECTED if marked else style
        cell = _cell(name, cells[name], width)
        if marked and at == 0:  # also without colours
            cell = f">{cell[1:]}"
        spans.append(Span(" " * (at > 0) + cell, style))
    return spans


def _panel(
    view: LiveView, chosen: Screen, selected: Key | None, width: int, most: int
) -> list[Line]:
    """Of drift, only whole findings that fit into `most` lines, and how many more there are."""
    one = next((each for each in view.deployments if selected and each.name == selected[0]), None)
    if one is None or selected is None:
        return []
    slot = next(each for each in one.slots if each.slot == selected.slot)
    name = printable(f"{one.name}, slot {_slot_name(slot.slot)}: ")
    match chosen.panel:
        case "memory":
            pages = ", ".join(f"{gib(size)} on node {n}" for n, size in slot.bytes_by_node.items())
            text = [name + (pages or "no memory is known yet"), _ages(slot)]
        case "drift":
            text, room = [], most - 1
            for finding in one.findings:
                said = f"{brief(finding)}; {printable(finding.remedy)}"
                room -= len(_wrapped(said, width))
                if room < 0 and text:
                    break
                text.append(said)
            hidden = sum(one.drift_by_code.values()) - len(text)
            which = printable(one.name) if one.up_s is not None else "--rendered DIR"
            text += [f"and {hidden} more: atoll verify {which}"] if hidden else []
            text = text or [printable(f"{one.name}: no drift")]
        case _:
            text = [name + _ages(slot)]
    return [[Span(piece)] for line in text for piece in _wrapped(line, width)]


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(_narrow(text), width) or [""]


def _ages(slot: SlotView) -> str:
    """How old the figures of the selected line are; CPU is always new."""
    ages = (
        ("masks", slot.masks_age_s), ("runs", slot.runs_age_s), ("memory", slot.memory_age_s),
    )  # fmt: skip
    return "seen " + ", ".join(
        f"{name} {'not yet' if age is None else f'{age:.0f} s ago'}" for name, age in ages
    )


def _owners(view: LiveView) -> dict[int, list[SlotView]]:
    """The slots that have each CPU to themselves, as far as each deployment is concerned."""
    owners: dict[int, list[SlotView]] = {}
    for one in view.deployments:
        for slot in one.slots:
            if slot.slot is not None and slot.masked:
                for cpu in parse_cpulist(slot.cpus):
                    owners.setdefault(cpu, []).append(slot)
    return owners


def _core(
    cell: CoreCell, cpu_busy: Mapping[int, float], owners: Mapping[int, list[SlotView]]
) -> Span:
    """The number of the slot that has the core; brighter the busier it is, and red with drift."""
    if cell.allowed == "none":
        return Span("·", Style.DIM)
    busy = sum(cpu_busy.get(pu, 0.0) for pu in cell.pus) / len(cell.pus)
    style = Style.BUSY if busy >= _BUSY else Style.CORE if busy >= _IDLE else Style.DIM
    slots = list({id(slot): slot for pu in cell.pus for slot in owners.get(pu, ())}.values())
    if any(slot.outside for slot in slots):
        style = Style.DRIFT
    if len(slots) != 1:
        return Span("#" if slots else "-", style)
    number = slots[0].slot or 0
    return Span(_NUMBERS[number] if number < len(_NUMBERS) else "+", style)


# ---- Cells ----------------------------------------------------------------------------------


def _slot_name(slot: int | None) -> str:
    return "co" if slot is None else str(slot)


def _share(share: float | None) -> str:
    return "–" if share is None else percent(share)


def _cell(column: str, text: str, width: int) -> str:
    text = text if len(text) <= width else text[: width - 1] + "…"
    return text.ljust(width) if column == "CPUS" else text.rjust(width)


def _narrow(text: str) -> str:
    """One column for each character: others, as those of Chinese, are replaced."""
    if text.isascii():
        return text
    return "".join("?" if east_asian_width(one) in "WF" or combining(one) else one for one in text)


def _fitted(line: Iterable[Span], width: int, ascii_only: bool) -> Line:
    fitted: Line = []
    for span in line:
        text = _narrow(span.text)[:width]
        if ascii_only:
            text = text.translate(_AS_ASCII).encode("ascii", "replace").decode()
        fitted.append(Span(text, span.style))
        width -= len(fitted[-1].text)
    return fitted
