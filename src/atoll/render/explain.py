"""Every setting of a deployment with the reason for it and the reason's source. Pure.

Instances are alike but for their numbers, so of files with the same name the first is told.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence

from atoll.engines.reasons import Reasons, Why
from atoll.engines.userconfig.changes import masked, setting_lines, setting_name
from atoll.engines.userconfig.java import ARGUMENTS
from atoll.engines.userconfig.tree import UserTree
from atoll.schema.deployment import ProcessSpec

# Files whose lines are no settings, or those of another file again.
_OTHER_ENDINGS = (
    *(".json", ".md", ".xml", ".sql", "/user", "log.properties", "log4j2.properties"),
    f"/{ARGUMENTS}",
)
# Whose value is JVM flags.
_JVM_VARIABLES = frozenset({"JDK_JAVA_OPTIONS"})
UNKNOWN = Why("no reason is on record", "")


def explain(
    files: Mapping[str, str],
    processes: Sequence[ProcessSpec],
    reasons: Reasons,
    *,
    base: UserTree | None,
    width: int = 100,
) -> str:
    """Line by line; what is the user's own is counted, not told."""
    lines: list[str] = []
    for path, alike in _one_of_each(files):
        told, theirs = [], 0
        kept = _lines_of(base, path)
        for line in setting_lines(files[path]):
            if line in kept:
                theirs += 1
            else:
                told += _told(line, reasons, width)
        if not told and not theirs:
            continue
        also = f" (and {alike} more like it)" if alike else ""
        lines += [f"{path}{also}", *told]
        if theirs:
            lines.append(f"  yours, unchanged: {theirs}")
        lines.append("")
    in_files = {line for text in files.values() for line in setting_lines(text)}
    for spec, alike in _one_of_each_role(processes):
        told = [
            part
            for words in _flags(spec)
            if words not in in_files and words.removeprefix("-D") not in in_files
            for part in _told(words, reasons, width)
        ]
        if told:
            also = f" (and {alike} more like it)" if alike else ""
            lines += [f"command line of {spec.name}{also}", *told, ""]
        for name in _JVM_VARIABLES & spec.env.keys():
            told = [part for flag in spec.env[name].split() for part in _told(flag, reasons, width)]
            also = f" (and {alike} more like it)" if alike else ""
            lines += [f"{name} in the environment of {spec.name}{also}", *told, ""]
    return "\n".join(lines)


def _told(line: str, reasons: Reasons, width: int) -> list[str]:
    why = reasons.get(setting_name(line), UNKNOWN)
    source = f" [{why.source}]" if why.source else ""
    said = textwrap.wrap(
        why.text + source, width, initial_indent=" " * 6, subsequent_indent=" " * 6
    )
    return [f"  {masked(line)}", *said]


def _one_of_each(files: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    """(path, how many more there are of that name in the folders of other instances)."""
    alike: dict[str, list[str]] = {}
    for path in sorted(files, key=_workers_first):
        if not f"/{path}".endswith(_OTHER_ENDINGS):
            alike.setdefault(_without_instance(path), []).append(path)
    for paths in alike.values():
        yield paths[0], len(paths) - 1


def _workers_first(path: str) -> tuple[bool, int, str]:
    """What people ask most stands first: the workers' main files."""
    return not path.startswith("worker"), path.count("/"), path


def _one_of_each_role(processes: Sequence[ProcessSpec]) -> Iterator[tuple[ProcessSpec, int]]:
    for role in dict.fromkeys(spec.role for spec in processes):
        mine = [spec for spec in processes if spec.role is role]
        yield mine[0], len(mine) - 1


def _without_instance(path: str) -> str:
    """'worker-3/etc/jvm.config' is 'worker-N/etc/jvm.config'."""
    first, slash, rest = path.partition("/")
    stem = first.rstrip("0123456789")
    return f"{stem}{slash}{rest}" if slash else "".join(c for c in path if not c.isdigit())


def _lines_of(base: UserTree | None, path: str) -> set[str]:
    name = _origin(base, path)
    if base is None or not name:
        return set()
    return set(setting_lines(base.texts[name]))


def _origin(base: UserTree | None, path: str) -> str:
    """The file of the user's that the path ends with."""
    names = base.texts if base else ()
    return max((name for name in names if f"/{path}".endswith(f"/{name}")), key=len, default="")


def _flags(spec: ProcessSpec) -> Iterator[str]:
    """The command line's options, each with its value."""
    words = list(spec.argv[1:])
    for at, word in enumerate(words):
        if word.startswith("-") and word != "-cp":
            value = words[at + 1] if at + 1 < len(words) else "-"
            takes_value = word.startswith("--") and "=" not in word and value[0] != "-"
            yield f"{word} {value}" if takes_value else word
