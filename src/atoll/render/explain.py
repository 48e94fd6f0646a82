"""Every setting of a deployment with the reason for it and the reason's source. Pure.

Instances differ only in numbers, so of files with the same name only the first is shown.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence

from atoll.engines.api import Layout
from atoll.engines.explained import Reasons, Why
from atoll.engines.userconfig.changes import masked, setting_lines, setting_name
from atoll.engines.userconfig.java import ARGUMENTS
from atoll.engines.userconfig.tree import UserTree
from atoll.schema.deployment import ProcessSpec

# Files that contain no settings, or only those of another file.
_OTHER_ENDINGS = (
    *(".json", ".md", ".xml", ".sql", "/user", "log.properties", "log4j2.properties"),
    f"/{ARGUMENTS}",
)
# Variables whose value is JVM flags.
_JVM_VARIABLES = frozenset({"JDK_JAVA_OPTIONS"})
UNKNOWN = Why("no reason is on record")


def explain(
    layout: Layout,
    processes: Sequence[ProcessSpec],
    *,
    tree: UserTree | None,
    width: int = 100,
) -> str:
    """Setting by setting. The user's own settings are only counted."""
    files = layout.files

    def explained(lines: Iterable[str]) -> list[str]:
        return [part for line in lines for part in _explained(line, layout.reasons, width)]

    sections: list[tuple[str, list[str]]] = []
    for path, alike in _one_of_each(files):
        settings, kept = setting_lines(files[path]), _users_lines(tree, path)
        lines = explained(line for line in settings if line not in kept)
        if unchanged := sum(line in kept for line in settings):
            lines.append(f"  yours, unchanged: {unchanged}")
        sections.append((f"{path}{alike}", lines))
    in_files = {line for text in files.values() for line in setting_lines(text)}
    for spec, alike in _one_of_each_role(processes):
        own = [
            flag
            for flag in _flags(spec)
            if flag not in in_files and flag.removeprefix("-D") not in in_files
        ]
        sections.append((f"command line of {spec.name}{alike}", explained(own)))
        for name in _JVM_VARIABLES & spec.env.keys():
            heading = f"{name} in the environment of {spec.name}{alike}"
            sections.append((heading, explained(spec.env[name].split())))
    return "\n".join("\n".join([title, *lines, ""]) for title, lines in sections if lines)


def _explained(line: str, reasons: Reasons, width: int) -> list[str]:
    why = reasons.get(line) or reasons.get(setting_name(line), UNKNOWN)
    source = f" [{why.source}]" if why.source else ""
    indent = " " * 6
    text = textwrap.wrap(why.text + source, width, initial_indent=indent, subsequent_indent=indent)
    return [f"  {masked(line)}", *text]


def _one_of_each(files: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """(path, how many files of that name other instances have)."""
    alike: dict[str, list[str]] = {}
    for path in sorted(files, key=_workers_first):
        if not f"/{path}".endswith(_OTHER_ENDINGS):
            alike.setdefault(_without_instance(path), []).append(path)
    for paths in alike.values():
        yield paths[0], _more(len(paths) - 1)


def _workers_first(path: str) -> tuple[bool, int, str]:
    """The workers' main files first: they are what most readers look for."""
    return not path.startswith("worker"), path.count("/"), path


def _one_of_each_role(processes: Sequence[ProcessSpec]) -> Iterator[tuple[ProcessSpec, str]]:
    for role in dict.fromkeys(spec.role for spec in processes):
        specs = [spec for spec in processes if spec.role is role]
        yield specs[0], _more(len(specs) - 1)


def _more(count: int) -> str:
    return f" (and {count} more like it)" if count else ""


def _without_instance(path: str) -> str:
    """'worker-3/etc/jvm.config' becomes 'worker-/etc/jvm.config'."""
    first, slash, rest = path.partition("/")
    stem = first.rstrip("0123456789")
    return f"{stem}{slash}{rest}" if slash else "".join(c for c in path if not c.isdigit())


def _users_lines(tree: UserTree | None, path: str) -> set[str]:
    """The settings of the user's file that the path ends with."""
    texts = tree.texts if tree else {}
    names = (name for name in texts if f"/{path}".endswith(f"/{name}"))
    return set(setting_lines(texts.get(max(names, key=len, default=""), "")))


def _flags(spec: ProcessSpec) -> Iterator[str]:
    """The command line's options, each with its value."""
    words = list(spec.argv[1:])
    for at, word in enumerate(words):
        if word.startswith("-") and word != "-cp":
            value = words[at + 1] if at + 1 < len(words) else "-"
            takes_value = word.startswith("--") and "=" not in word and value[0] != "-"
            yield f"{word} {value}" if takes_value else word
