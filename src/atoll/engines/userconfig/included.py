"""Which files of a user's configuration a server reads: the first one, and what is included. Pure.

A server refuses to start where an included file or folder is not there, and a tree of texts knows
nothing of an empty folder: such a one gets a file without settings.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from atoll.engines.userconfig.pieces import lines
from atoll.engines.userconfig.tree import UserTree, unreadable
from atoll.errors import UsageError


@dataclass(frozen=True, slots=True)
class Including:
    """How a server includes."""

    line: re.Pattern[str]  # 'path'; 'folder' where it is one; 'maybe' where it may be missing
    ending: str  # of the files that are read in a folder
    beside_first: bool  # a relative path begins at the first file's folder, not at the line's


@dataclass(frozen=True, slots=True)
class Included:
    """Paths below the root, and what lies there."""

    texts: dict[str, str]  # the first, and what is included by a relative path
    in_place: dict[str, str]  # what is included by its absolute path, and is in the tree
    elsewhere: bool  # whether something else is included that this tree does not have


def refuse_closed(base: UserTree, paths: Iterable[str]) -> None:
    """Raises NotPermitted if one of them is a file that this user cannot read."""
    for path in paths:
        if path in base.closed:
            raise unreadable(f"{base.root}/{path}", "Permission denied")


def included(base: UserTree, first: str, how: Including) -> Included:
    """Raises UsageError 'FILE:LINE: what is wrong' for what is included and not there, NotPermitted
    for what cannot be read."""
    texts: dict[str, str] = {}
    in_place: dict[str, str] = {}
    elsewhere = False
    waiting = [(first, texts)]
    while waiting:
        path, found = waiting.pop()
        if path in found:
            continue
        refuse_closed(base, (path,))
        found[path] = base.texts[path]
        for number, body, _ in lines(base.texts[path]):
            match = how.line.match(body)
            if match is None:
                continue
            given = match["path"]
            folder = posixpath.dirname(first if how.beside_first else path)
            full = posixpath.normpath(posixpath.join(base.root, folder, given))
            inside = full.startswith(f"{base.root}/")
            if not inside and given.startswith("/"):
                elsewhere = True
                continue
            where = f"{base.root}/{path}:{number}"
            if not inside:
                raise UsageError(
                    f"{where}: {given!r} is outside of {base.root}; write its absolute path"
                )
            name = full.removeprefix(f"{base.root}/")
            target = in_place if given.startswith("/") else found
            if match["folder"]:
                there = list(_in_folder(base, name, how.ending))
                waiting += [(each, target) for each in there]
                if not there and target is texts:
                    texts[f"{name}/empty{how.ending}"] = "# nothing is in this folder of yours\n"
            elif name in base.texts or name in base.closed:
                waiting.append((name, target))
            elif not match.groupdict().get("maybe"):
                raise UsageError(f"{where}: {given!r} is not there, or is no text")
    return Included(texts, in_place, elsewhere)


def _in_folder(base: UserTree, folder: str, ending: str) -> Iterator[str]:
    for path in (*base.texts, *base.closed):
        if posixpath.dirname(path) == folder and path.endswith(ending):
            yield path
