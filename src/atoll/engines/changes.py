"""What Atoll changes in a user's configuration: a unified diff, secrets as ***. Pure.

A file of the layout belongs to the file of the user's whose path it ends with: 'worker-0/etc/
catalog/hive.properties' to 'catalog/hive.properties'.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from atoll.engines.base import Base
from atoll.engines.settings_java import ARGUMENTS, flag_kind

_SECRET = re.compile(
    r"([\w.$-]*(?:passw(?:or)?d|passphrase|secret|token|credential|(?:private|access|api)[-_.]?key"
    # A name's last word: Trino's keystore.key is a password, gcs.json-key a whole key.
    r"|(?:key|pwd|pass)(?=\s*[=:]))"
    r"[\w.$-]*(?:\s*[=:]\s*|\s+))\S.*",
    re.IGNORECASE,
)
_IN_URL = re.compile(r"(://[^/\s:@]*:)[^@\s]*@")
_KEY = re.compile(r"[^\s=:]+")


class _Pair(NamedTuple):
    path: str  # in the layout
    origin: str  # in the user's tree; empty: a file that is ours alone
    before: str
    after: str


def changes(before: Base, files: Mapping[str, str]) -> str:
    """The difference of `Layout.files` to the user's, empty where there is none."""
    return "".join(line for pair in _pairs(before, files) for line in _diff(before.root, pair))


def count_changes(before: Base, files: Mapping[str, str]) -> tuple[int, int]:
    """(settings, files) of the user's that are changed; the same setting of two instances is one.
    A setting that is added counts, a file of ours beside the user's does not."""
    settings = {
        (pair.origin, key)
        for pair in _pairs(before, files)
        if pair.origin
        for key in _changed_keys(pair)
    }
    return len(settings), len({origin for origin, _ in settings})


def without_secrets(line: str) -> str:
    """The line with what looks like a secret's value, or a URL's password, as ***."""
    return _IN_URL.sub(r"\1***@", _SECRET.sub(r"\1***", line))


def _pairs(before: Base, files: Mapping[str, str]) -> Iterator[_Pair]:
    for path, after in sorted(files.items()):
        if path.endswith(f"/{ARGUMENTS}"):
            continue  # jvm.config again, as java reads it
        ends = [name for name in before.texts if f"/{path}".endswith(f"/{name}")]
        origin = max(ends, key=len, default="")
        yield _Pair(path, origin, before.texts.get(origin, ""), after)


def _diff(root: str, pair: _Pair) -> Iterator[str]:
    shown = _masked(pair.before) | _masked(pair.after)
    lines = difflib.unified_diff(
        pair.before.splitlines(),
        pair.after.splitlines(),
        f"{root}/{pair.origin}" if pair.origin else "/dev/null",
        pair.path,
        lineterm="",
    )
    for line in lines:
        known = shown.get(line[1:]) if line[:1] in " +-" else None
        yield f"{line if known is None else line[0] + known}\n"


def _masked(text: str) -> dict[str, str]:
    """Line to how it may be shown. What continues a secret's line is all secret."""
    shown: dict[str, str] = {}
    within = False
    for line in text.splitlines():
        shown[line] = "***" if within else without_secrets(line)
        continued = line.endswith("\\")
        within = continued and (within or shown[line] != line)
    return shown


def _changed_keys(pair: _Pair) -> set[str]:
    lines = difflib.unified_diff(pair.before.splitlines(), pair.after.splitlines(), lineterm="")
    changed = [line[1:].strip() for line in lines if line[:1] in "+-"][2:]  # less the two names
    return {setting_name(line) for line in changed if line and line[0] not in "#![;"}


def setting_name(line: str) -> str:
    """What a line of a configuration file sets: 'task.concurrency', '-Xmx'."""
    if line.startswith("-") and not line.startswith("--"):
        return flag_kind(line)
    match = _KEY.match(line)
    return match[0] if match else line
