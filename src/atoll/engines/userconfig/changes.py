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
# How commands and SQL within a value give a password.
_IN_COMMAND = re.compile(
    r"((?<!\S)(?:-u|--(?:proxy-)?user)[\s=]+[\"']?[^\s:\"']{1,256}:|(?<!\S)--[\w-]*(?:password|token|secret)"
    r"[\s=]+|\bidentified\s+(?:by|via\s+\w+\s+using)\s+(?:password\s*)?)\S.*",
    re.IGNORECASE,
)
_AGENTS = ("-javaagent:", "-agentpath:", "-agentlib:")
# Up to the last '@', because a password may contain one. Oracle has 'thin:user/password@'.
_IN_URL = re.compile(
    r"(://[^/\s:@]{0,256}:|jdbc:oracle:\w{1,16}:[^/\s:@]{0,256}/)\S{0,2048}@", re.IGNORECASE
)


# Files that may include others, and have comments behind values.
INCLUDING = (".conf", ".cnf")
_OPTIONS = ".cnf"  # in which an option has several spellings
_BEFORE_COMMENT = re.compile(r"(?:'(?P<quoted>[^'#]*)'|(?P<plain>[^'#]*?))\s*(?:\s#.*)?")
# Setting -> its values, in order: it may occur several times.
Values = Mapping[str, list[str]]


class Change(NamedTuple):
    path: str  # in the layout
    origin: str  # in the user's tree; empty for a file that only Atoll has
    names: list[str]  # of the settings that differ
    old: Values
    new: Values


def changes(before: UserTree, files: Mapping[str, str]) -> str:
    """The settings in which `Layout.files` differs from the user's files; empty if there are none.

    A line per setting: 'name: old -> new'.
    """
    lines: list[str] = []
    for path, origin, names, old, new in differences(before, files):
        if not origin:
            lines.append(f"{path}: added by Atoll")
        elif names:
            lines.append(f"{before.root}/{origin} -> {path}")
            lines += [f"  {name}: {_shown(old, name)} -> {_shown(new, name)}" for name in names]
    return "".join(f"{line}\n" for line in lines)


def differences(before: UserTree, files: Mapping[str, str]) -> Iterator[Change]:
    """For each file of the layout, the settings that differ from the user's file."""
    for path, after in sorted(files.items()):
        if path.endswith(f"/{ARGUMENTS}"):
            continue  # the same flags as in jvm.config
        ends = [name for name in before.texts if f"/{path}".endswith(f"/{name}")]
        origin = max(ends, key=len, default="")
        text = before.texts.get(origin, "")
        # Every instance has a copy of every file, and large rules (0.5 MB) take a while to read.
        if text == after:
            continue
        old, new = values_of(text, origin), values_of(after, origin)
        differing = [name for name in {**old, **new} if old.get(name) != new.get(name)]
        yield Change(path, origin, differing, old, new)


def values_of(text: str, path: str) -> dict[str, list[str]]:
    values: dict[str, list[str]] = {}
    for line in setting_lines(text):
        name = setting_name(line)
        match = _SETTING.match(line)
        value = match[3] if match and match[1] == name else line
        if path.endswith(_OPTIONS):
            name = name.replace("-", "_").removeprefix("loose_")
        if path.endswith(INCLUDING) and (server := _BEFORE_COMMENT.fullmatch(value)):
            value = server["quoted"] or server["plain"] or ""
        values.setdefault(name, []).append(value)
    return values


def _shown(values: Values, name: str) -> str:
    if name not in values:
        return "(not set)"
    return ", ".join(shown_value(name, value) for value in values[name])


def shown_value(name: str, value: str) -> str:
    """The value as it may be printed."""
    return masked(f"{name}={value}").removeprefix(f"{name}=")


def setting_lines(text: str) -> list[str]:
    """The lines that set something, each with the lines that continue it."""
    lines = (line.strip() for line in _CONTINUED.sub(r"\1", text).splitlines())
    return [line for line in lines if line and line[0] not in "#!;["]


def setting_name(line: str) -> str:
    """The name of what a line of a configuration file sets: 'task.concurrency', '-Xmx'."""
    if line.startswith(_AGENTS):
        return line.partition("=")[0]
    if line.startswith("-") and not line.startswith("--"):
        return flag_kind(line)
    match = _SETTING.match(line)
    return match[1] if match else line


def masked(line: str) -> str:
    """The line with *** for a value whose name says that it is secret, for a URL's password, and
    for one that a command or a statement in the value gives."""
    match = _SETTING.match(line)
    if match and match[3] and _SECRET_NAME.fullmatch(match[1]):
        return line.removesuffix(match[3]) + HIDDEN
    line = _IN_COMMAND.sub(rf"\1{HIDDEN}", _ASSIGNED.sub(rf"\1{HIDDEN}", line))
    return _IN_URL.sub(rf"\1{HIDDEN}@", line)
