"""Which settings Atoll changes in a user's configuration, with secrets as ***. Pure.

A file of the layout belongs to the user's file whose path it ends with: 'worker-0/etc/
catalog/hive.properties' to 'catalog/hive.properties'.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from atoll.engines.userconfig.java import ARGUMENTS, flag_kind
from atoll.engines.userconfig.tree import UserTree

HIDDEN = "***"
_CONTINUED = re.compile(r"(?<!\\)((?:\\\\)*)\\\r?\n[ \t\f]*")
_SETTING = re.compile(r"(?:export\s+)?([^\s=:]+)(\s*[=:]?\s*)(.*)")
# The name of a secret. Searched from a word's first letter only: a value of 4 kB would otherwise
# take 10 s.
_SECRET = (
    r"(?<![\w.$-])[\w.$-]*(?:passw(?:or)?d|passphrase|secret|token|credential"
    r"|(?<![a-z0-9])sas(?![a-z0-9])"  # a shared access signature of Azure
    r"|(?:private|shared|access|account|api)[-_.]?(?:access[-_.]?)?key"
    r"|(?:key|pwd|pw|pass|auth|authorization|headers)(?![\w.$-]))[\w.$-]*"
)
_SECRET_NAME = re.compile(_SECRET, re.IGNORECASE)
_ASSIGNED = re.compile(rf"({_SECRET}[\"']?\s*[=:]\s*)\S.*", re.IGNORECASE)
# Up to the last '@', because a password may contain one. Oracle has 'thin:user/password@'.
_IN_URL = re.compile(
    r"(://[^/\s:@]{0,256}:|jdbc:oracle:\w{1,16}:[^/\s:@]{0,256}/)\S{0,2048}@", re.IGNORECASE
)


class _Change(NamedTuple):
    path: str  # in the layout
    origin: str  # in the user's tree; empty for a file that only Atoll has
    settings: dict[str, tuple[str, str]]  # name -> what it was and is, as it may be printed


def changes(before: UserTree, files: Mapping[str, str]) -> str:
    """The settings in which `Layout.files` differs from the user's files; empty if there are none.

    A line per setting: 'name: old -> new'.
    """
    lines: list[str] = []
    for path, origin, settings in _changes(before, files):
        if not origin:
            lines.append(f"{path}: added by Atoll")
        elif settings:
            lines.append(f"{before.root}/{origin} -> {path}")
            lines += [f"  {name}: {old} -> {new}" for name, (old, new) in settings.items()]
    return "".join(f"{line}\n" for line in lines)


def count_changes(before: UserTree, files: Mapping[str, str]) -> tuple[int, int]:
    """(settings, files) of the user's that differ. A setting counts once for all instances; a
    setting that Atoll adds counts, a file that Atoll adds does not."""
    settings = {
        (change.origin, name)
        for change in _changes(before, files)
        if change.origin
        for name in change.settings
    }
    return len(settings), len({origin for origin, _ in settings})


def _changes(before: UserTree, files: Mapping[str, str]) -> Iterator[_Change]:
    for path, after in sorted(files.items()):
        if path.endswith(f"/{ARGUMENTS}"):
            continue  # the same flags as in jvm.config
        ends = [name for name in before.texts if f"/{path}".endswith(f"/{name}")]
        origin = max(ends, key=len, default="")
        text = before.texts.get(origin, "")
        # Every instance has a copy of every file, and large rules (0.5 MB) take a while to read.
        if text == after:
            continue
        old, new = _values(text), _values(after)
        differing = [name for name in {**old, **new} if old.get(name) != new.get(name)]
        yield _Change(
            path, origin, {name: (_shown(old, name), _shown(new, name)) for name in differing}
        )


def _values(text: str) -> dict[str, list[str]]:
    values: dict[str, list[str]] = {}
    for line in setting_lines(text):
        name = setting_name(line)
        match = _SETTING.match(line)
        values.setdefault(name, []).append(match[3] if match and match[1] == name else line)
    return values


def _shown(values: Mapping[str, list[str]], name: str) -> str:
    if name not in values:
        return "(not set)"
    return ", ".join(masked(f"{name}={value}").removeprefix(f"{name}=") for value in values[name])


def setting_lines(text: str) -> list[str]:
    """The lines that set something, each with the lines that continue it."""
    lines = (line.strip() for line in _CONTINUED.sub(r"\1", text).splitlines())
    return [line for line in lines if line and line[0] not in "#!;["]


def setting_name(line: str) -> str:
    """The name of what a line of a configuration file sets: 'task.concurrency', '-Xmx'."""
    if line.startswith("-") and not line.startswith("--"):
        return flag_kind(line)
    match = _SETTING.match(line)
    return match[1] if match else line


def masked(line: str) -> str:
    """The line with *** for a value whose name says that it is secret, and for a URL's password."""
    match = _SETTING.match(line)
    if match and match[3] and _SECRET_NAME.fullmatch(match[1]):
        return line.removesuffix(match[3]) + HIDDEN
    return _IN_URL.sub(rf"\1{HIDDEN}@", _ASSIGNED.sub(rf"\1{HIDDEN}", line))
