"""What Atoll changes in a user's configuration: a unified diff, secrets as ***. Pure.

A file of the layout belongs to the file of the user's whose path it ends with: 'worker-0/etc/
catalog/hive.properties' to 'catalog/hive.properties'.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from atoll.engines.userconfig.java import ARGUMENTS, flag_kind
from atoll.engines.userconfig.masking import masked_lines
from atoll.engines.userconfig.pieces import bodies
from atoll.engines.userconfig.tree import UserTree

_KEY = re.compile(r"[^\s=:]+")


class _Pair(NamedTuple):
    path: str  # in the layout
    origin: str  # in the user's tree; empty: a file that is ours alone
    before: str
    after: str


def changes(before: UserTree, files: Mapping[str, str]) -> str:
    """The difference of `Layout.files` to the user's, empty where there is none."""
    return "".join(line for pair in _pairs(before, files) for line in _diff(before.root, pair))


def count_changes(before: UserTree, files: Mapping[str, str]) -> tuple[int, int]:
    """(settings, files) of the user's that are changed; the same setting of two instances is one.
    A setting that is added counts, a file of ours beside the user's does not."""
    settings = {
        (pair.origin, key)
        for pair in _pairs(before, files)
        if pair.origin
        for key in _changed_keys(pair)
    }
    return len(settings), len({origin for origin, _ in settings})


def _pairs(before: UserTree, files: Mapping[str, str]) -> Iterator[_Pair]:
    """Those that differ: every instance has a copy of all, and of large rules (0.5 MB) a comparison
    line by line takes seconds."""
    for path, after in sorted(files.items()):
        if path.endswith(f"/{ARGUMENTS}"):
            continue  # jvm.config again, as java reads it
        ends = [name for name in before.texts if f"/{path}".endswith(f"/{name}")]
        origin = max(ends, key=len, default="")
        pair = _Pair(path, origin, before.texts.get(origin, ""), after)
        if pair.before != pair.after:
            yield pair


def _diff(root: str, pair: _Pair) -> Iterator[str]:
    """A unified diff. Written here, since a line may be shown in one place and not in another."""
    before, after = bodies(pair.before), bodies(pair.after)
    shown_before = masked_lines(pair.before, path=pair.origin)
    shown_after = masked_lines(pair.after, path=pair.origin or pair.path)
    groups = difflib.SequenceMatcher(None, before, after).get_grouped_opcodes(3)
    for number, group in enumerate(groups):
        if number == 0:
            yield f"--- {f'{root}/{pair.origin}' if pair.origin else '/dev/null'}\n"
            yield f"+++ {pair.path}\n"
        (_, i1, _, j1, _), (_, _, i2, _, j2) = group[0], group[-1]
        yield f"@@ -{_range(i1, i2)} +{_range(j1, j2)} @@\n"
        for kind, i1, i2, j1, j2 in group:
            if kind == "equal":
                # As the one hides it, or the other.
                for at, raw in enumerate(before[i1:i2]):
                    mine, theirs = shown_before[i1 + at], shown_after[j1 + at]
                    yield f" {mine if mine != raw else theirs}\n"
            else:
                yield from (f"-{line}\n" for line in shown_before[i1:i2])
                yield from (f"+{line}\n" for line in shown_after[j1:j2])


def _range(start: int, stop: int) -> str:
    """As unified diffs count: from 1, and an empty range by the line before it."""
    length = stop - start
    return f"{start + 1}" if length == 1 else f"{start + (length > 0)},{length}"


def _changed_keys(pair: _Pair) -> set[str]:
    lines = difflib.unified_diff(bodies(pair.before), bodies(pair.after), lineterm="")
    changed = [line[1:].strip() for line in lines if line[:1] in "+-"][2:]  # less the two names
    return {setting_name(line) for line in changed if line and line[0] not in "#![;"}


def setting_name(line: str) -> str:
    """What a line of a configuration file sets: 'task.concurrency', '-Xmx'."""
    if line.startswith("-") and not line.startswith("--"):
        return flag_kind(line)
    match = _KEY.match(line)
    return match[0] if match else line
