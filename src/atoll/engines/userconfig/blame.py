"""Names the user's file and line where an engine complains about a setting. Pure.

An engine knows only its copy of the user's file, or only the name of the setting.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from atoll.engines.userconfig.changes import setting_name
from atoll.engines.userconfig.pieces import lines
from atoll.engines.userconfig.tree import MARKLESS, UserTree
from atoll.errors import EngineFailed

_MOST_PLACES = 3
# A name in quotes, also with its value; or a name with dots.
_NAMES = re.compile(r"[\"']([\w.$-]+)(?:=[^\"']*)?[\"']|(?<![\w./-])([a-z][\w-]*(?:\.[\w-]+)+)")


@contextmanager
def naming_users_files(tree: UserTree | None) -> Iterator[None]:
    """An EngineFailed from within names the user's files, if a setting in them is at fault."""
    try:
        yield
    except EngineFailed as fault:
        if tree is None or (text := in_users_files(str(fault), tree)) == str(fault):
            raise
        raise type(fault)(text) from None


def in_users_files(message: str, tree: UserTree) -> str:
    """The message with the user's own files in place of their copies; if it has none, with the
    places of the settings that it names."""
    for path in sorted(tree.texts, key=len, reverse=True):
        own = f"{tree.root}/{path}"
        copy = re.compile(rf"(?<![^\s\"'(=])/[^\s\"':]*/{re.escape(path)}(?![\w.-])")
        if copies := set(copy.findall(message)):
            for found in copies:
                message = message.replace(found, own)
            return message
    named = dict.fromkeys(quoted or dotted for quoted, dotted in _NAMES.findall(message))
    places = [place for name in named for place in _places(name, tree)]
    return f"{message}; the setting is in {', '.join(places[:_MOST_PLACES])}" if places else message


def _places(name: str, tree: UserTree) -> Iterator[str]:
    """FILE:LINE of each line that sets it."""
    for path, text in sorted(tree.texts.items()):
        if not path.endswith(MARKLESS):
            continue
        for number, line, _ in lines(text):
            if _same(setting_name(line.strip().removeprefix("-D")), name):
                yield f"{tree.root}/{path}:{number}"


def _same(one: str, other: str) -> bool:
    return one == other or one.replace("-", "_") == other.replace("-", "_")
