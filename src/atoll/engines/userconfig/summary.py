"""The short list of what Atoll changes in a user's configuration, for the screen. Pure.

It has the settings that the user made and that an instance has with another value, or not at all,
each with the reason. Settings that Atoll adds are in `changes`, which has everything.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from atoll.engines.api import Layout
from atoll.engines.userconfig import agents
from atoll.engines.userconfig.changes import (
    INCLUDING,
    Change,
    Values,
    differences,
    setting_name,
    shown_value,
    values_of,
)
from atoll.engines.userconfig.java import INSTANCE_FLAGS, why_not_shared
from atoll.engines.userconfig.tree import UserTree

_MOST_CHARACTERS = 60  # of a value
_JVM_OPTIONS = "JavaOptions"  # ends the names of settings whose value is JVM flags
# A reason's first clause is enough for a list.
_FURTHER = re.compile(r"(?:; |\. | \().*", re.DOTALL)

_INCLUDE = re.compile(r"\s*!?include", re.IGNORECASE).match

_Place = tuple[int, str]  # (number of the layout, folder of the instance in it)


@dataclass(slots=True)
class _Entry:
    """A setting of the user's that not every instance has as it was."""

    name: str
    flag: str  # the kind of a flag within a setting's value; else empty
    old: list[str]
    rank: int  # in the user's file
    new: dict[_Place, list[str]] = field(default_factory=dict)  # without values: it is left out


def summary(
    before: UserTree, layouts: Sequence[Layout], *, any_ports: Collection[int] = ()
) -> list[str]:
    """Lines for the screen, those of a file below its name. Several layouts of one configuration
    are shown together. `any_ports`: stand for ports that are chosen later."""
    reasons: dict[str, str] = {}
    files: dict[str, dict[tuple[str, str], _Entry]] = {}
    places: dict[str, set[_Place]] = {}
    included = _included(before)
    for number, layout in enumerate(layouts):
        reasons |= {name: why.text for name, why in layout.reasons.items()}
        moved = _moved(layout.files)
        for change in differences(before, layout.files):
            for origin, name, old, becomes in _of_user(change, included):
                for flag, was, now in _parts(name, old, becomes, moved):
                    entry = _Entry(name, flag, was, rank=list(old).index(name))
                    entry = files.setdefault(origin, {}).setdefault((name, flag), entry)
                    entry.new[number, _folder(change.path)] = now
        for path in layout.files:
            for origin in files:
                if f"/{path}".endswith(f"/{origin}"):
                    places.setdefault(origin, set()).add((number, _folder(path)))
    lines: list[str] = []
    for origin, entries in sorted(files.items()):
        lines.append(f"{before.root}/{origin}")
        in_order = sorted(entries.values(), key=lambda entry: entry.rank)
        lines += [
            f"  {line}" for line in _lines(in_order, places.get(origin, ()), reasons, any_ports)
        ]
    return lines


def _of_user(
    change: Change, included: Mapping[str, Values]
) -> Iterator[tuple[str, str, Values, Values]]:
    """(file of the user's, setting, old values, new values) for each setting that differs and that
    the user made: in this file, or in one that it includes."""
    if not change.origin:
        return
    for name in change.names:
        if name in change.old:
            yield change.origin, name, change.old, change.new
        if name not in change.new or not change.origin.endswith(INCLUDING):
            continue
        for path, values in included.items():
            if path != change.origin and values.get(name, change.new[name]) != change.new[name]:
                yield path, name, values, change.new


def _included(before: UserTree) -> dict[str, Values]:
    """The user's files that a line of the user's includes, alone or with their folder."""
    texts = {path: text for path, text in before.texts.items() if path.endswith(INCLUDING)}
    including = [line for text in texts.values() for line in text.splitlines() if _INCLUDE(line)]

    def is_read(path: str) -> bool:
        folder, _, name = f"{before.root}/{path}".rpartition("/")
        names = "|".join(map(re.escape, (name, folder.rpartition("/")[2])))
        ends = re.compile(rf"[\s'\"/=](?:{names})/?['\"]?\s*(?:#.*)?$")
        return any(map(ends.search, including))

    return {path: values_of(text, path) for path, text in texts.items() if is_read(path)}


def _moved(files: Mapping[str, str]) -> dict[str, list[str]]:
    """Kind of a flag -> the flags of that kind that instances have in files of their own."""
    return _by_kind(text for path, text in files.items() if path.endswith(f"/{INSTANCE_FLAGS}"))


def _parts(
    name: str, old: Values, new: Values, moved: Mapping[str, list[str]]
) -> Iterator[tuple[str, list[str], list[str]]]:
    """(kind of a flag, what it was, what it is) for each of the user's values that differ."""
    if not name.endswith(_JVM_OPTIONS):
        if name in old:
            yield "", old[name], new.get(name, [])
        return
    was, becomes = (_by_kind(values.get(name, ())) for values in (old, new))
    for kind, flags in was.items():
        now = becomes.get(kind) or moved.get(kind, [])
        if now != flags:
            yield kind, flags, now


def _by_kind(values: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for value in values:
        for flag in shlex.split(value):
            found.setdefault(setting_name(flag), []).append(flag)
    return found


def _lines(
    entries: Iterable[_Entry],
    places: Collection[_Place],
    reasons: Mapping[str, str],
    any_ports: Collection[int],
) -> list[str]:
    lines: list[str] = []
    left_out: dict[str, list[str]] = {}  # where and why -> what
    for entry in entries:
        why = _why(entry, reasons)
        kept = [place for place, values in entry.new.items() if values]
        without = [place for place, values in entry.new.items() if not values]
        if kept:
            kept.sort(key=_rank)
            values = [value for place in kept for value in entry.new[place]]
            lines.append(f"{_change(entry, values, any_ports)}{_where(kept, places)}{why}")
        if without:
            what = f"{_label(entry)}{_listed(entry, entry.old)}"
            left_out.setdefault(f"{_where(without, places)}{why}", []).append(what)
    return lines + [f"left out: {', '.join(what)}{end}" for end, what in left_out.items()]


def _change(entry: _Entry, values: Sequence[str], any_ports: Collection[int]) -> str:
    ports = [agents.port_of(value) for value in (*entry.old, *values)]
    if None not in ports:  # everything else of these flags stays
        name = f"{_label(entry)}{entry.flag or entry.name}"
        old, new = ports[: len(entry.old)], ports[len(entry.old) :]
        return f"{name}: port {_in_short(map(str, old))} -> {_in_short(map(str, new))}"
    return f"{_label(entry)}{_listed(entry, entry.old)} -> {_listed(entry, values, any_ports)}"


def _label(entry: _Entry) -> str:
    # The value of a flag has its name in it, other than that of a property.
    is_named = entry.name.startswith("-") and not entry.name.startswith("-D")
    return f"{entry.name}: " if entry.flag or not is_named else ""


def _listed(entry: _Entry, values: Sequence[str], any_ports: Collection[int] = ()) -> str:
    shown = (shown_value(entry.flag or entry.name, value) for value in values)
    if any_ports:
        numbers = re.compile(rf"(?<!\d)(?:{'|'.join(map(str, any_ports))})(?!\d)")
        shown = (numbers.sub("PORT", value) for value in shown)
    return _in_short(
        value if len(value) <= _MOST_CHARACTERS else f"{value[:_MOST_CHARACTERS]}..."
        for value in shown
    )


def _in_short(values: Iterable[str]) -> str:
    """'a', 'a, b', or 'a, b ... z'; an empty value as ''."""
    different = [value or "''" for value in dict.fromkeys(values)]
    if len(different) <= 3:
        return ", ".join(different)
    return f"{different[0]}, {different[1]} ... {different[-1]}"


def _where(some: Collection[_Place], places: Collection[_Place]) -> str:
    """' on coordinator'; empty for all instances of a layout."""
    if {folder for _, folder in some} >= {folder for _, folder in places}:
        return ""
    return f" on {', '.join(dict.fromkeys(_role(folder) for _, folder in sorted(some, key=_rank)))}"


def _folder(path: str) -> str:
    return path.partition("/")[0]


def _role(folder: str) -> str:
    """'workers' for 'worker-3'."""
    role = re.sub(r"-\d+$", "", folder)
    return role if role == folder else f"{role}s"


def _rank(place: _Place) -> tuple[int, str, int]:
    layout, folder = place
    number = folder.rpartition("-")[2]
    return layout, _role(folder), int(number) if number.isdecimal() else -1


def _why(entry: _Entry, reasons: Mapping[str, str]) -> str:
    value = entry.old[-1]
    flag = value if entry.flag or entry.name.startswith("-") else ""
    text = (
        agents.why_changed(flag)
        or why_not_shared(flag)
        or reasons.get(entry.flag)
        or reasons.get(entry.name, "")
    )
    clause = _FURTHER.sub("", text)
    return f" ({clause})" if clause else ""
