"""Which files of a user's configuration a server reads: the first one, and those it includes. Pure.

A server refuses to start without an included file or folder. A tree of texts cannot contain an
empty folder, so an empty folder gets a file without settings.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from atoll.engines.userconfig.pieces import Piece, lines
from atoll.engines.userconfig.tree import UserTree, unreadable
from atoll.errors import UsageError


@dataclass(frozen=True, slots=True)
class Including:
    """How a server includes."""

    line: re.Pattern[str]  # groups: 'path', 'folder' if it is one, 'maybe' if it may be missing
    ending: str  # of the files that the server reads in a folder
    beside_first: bool  # a relative path begins at the first file's folder, not at the line's file


@dataclass(frozen=True, slots=True)
class Included:
    """Path below the root -> text."""

    texts: dict[str, str]  # the first file, and those included by a relative path
    in_place: dict[str, str]  # files in the tree, included by their absolute path
    elsewhere: bool  # whether files outside the tree are included
    inside: dict[tuple[str, int], tuple[str, ...]]  # (path, line) -> what is included there

    @property
    def all_texts(self) -> dict[str, str]:
        return {**self.in_place, **self.texts}


def refuse_closed(tree: UserTree, paths: Iterable[str]) -> None:
    """Raises NotPermitted if this user cannot read one of them."""
    for path in paths:
        if path in tree.closed:
            raise unreadable(f"{tree.root}/{path}", "Permission denied")


def first_file(tree: UserTree, names: Sequence[str], *, printed_by: str) -> str:
    """The first of these files that the tree has. Raises UsageError if it has none, NotPermitted if
    this user cannot read one. `printed_by`: the command that prints the file's path."""
    refuse_closed(tree, names)
    for name in names:
        if name in tree.texts:
            return name
    raise UsageError(
        f"{tree.root}: no {' or '.join(names)} found; give the folder that contains it "
        f"({printed_by!r} prints its path)"
    )


def included(tree: UserTree, first: str, how: Including) -> Included:
    """Raises UsageError 'FILE:LINE: ...' for an included file that does not exist, NotPermitted for
    one that this user cannot read."""
    texts: dict[str, str] = {}
    in_place: dict[str, str] = {}
    elsewhere = False
    inside_of: dict[tuple[str, int], tuple[str, ...]] = {}
    waiting = [(first, texts)]
    while waiting:
        path, found = waiting.pop()
        if path in found:
            continue
        refuse_closed(tree, (path,))
        found[path] = tree.texts[path]
        for number, body, _ in lines(tree.texts[path]):
            match = how.line.match(body)
            if match is None:
                continue
            given = match["path"]
            folder = posixpath.dirname(first if how.beside_first else path)
            full = posixpath.normpath(posixpath.join(tree.root, folder, given))
            inside = full.startswith(f"{tree.root}/")
            if not inside and given.startswith("/"):
                elsewhere = True
                continue
            where = f"{tree.root}/{path}:{number}"
            if not inside:
                raise UsageError(
                    f"{where}: {given!r} is outside {tree.root}; write its absolute path"
                )
            name = full.removeprefix(f"{tree.root}/")
            target = in_place if given.startswith("/") else found
            if match["folder"]:
                there = list(_in_folder(tree, name, how.ending))
                waiting += [(each, target) for each in there]
                inside_of[path, number] = tuple(there)
                if not there and target is texts:
                    texts[f"{name}/empty{how.ending}"] = "# your folder contains no files\n"
            elif name in tree.texts or name in tree.closed:
                waiting.append((name, target))
                inside_of[path, number] = (name,)
            elif not match.groupdict().get("maybe"):
                raise UsageError(f"{where}: {given!r} does not exist, or is not text")
    return Included(texts, in_place, elsewhere, inside_of)


def in_order(
    files: Included, first: str, pieces: Callable[[str, str], Sequence[Piece]]
) -> Iterator[Piece]:
    """The pieces of all files in the order in which the server reads them: of a setting that occurs
    several times, the last applies. `pieces`: (path, text) -> the pieces of a file, one a line."""

    def read(path: str, above: tuple[str, ...]) -> Iterator[Piece]:
        for number, piece in enumerate(pieces(path, files.all_texts[path]), start=1):
            yield piece
            for each in files.inside.get((path, number), ()):
                if each not in above:  # the server refuses a circle
                    yield from read(each, (*above, each))

    return read(first, (first,))


def _in_folder(tree: UserTree, folder: str, ending: str) -> Iterator[str]:
    for path in (*tree.texts, *tree.closed):
        if posixpath.dirname(path) == folder and path.endswith(ending):
            yield path
