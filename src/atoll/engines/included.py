"""Folders that a user's configuration includes: a server refuses to start where one is not there,
and a tree of texts knows nothing of an empty one. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping


def with_folders(texts: Mapping[str, str], include: re.Pattern[str], ending: str) -> dict[str, str]:
    """`texts`, and an empty one in each included folder that has none. `include` finds the folder
    in a line; an absolute one is where it is."""
    found = dict(texts)
    for path, text in texts.items():
        for match in include.finditer(text):
            folder = posixpath.normpath(posixpath.join(posixpath.dirname(path), match[1]))
            if folder.startswith(("/", "..")) or any(
                name.startswith(f"{folder}/") for name in texts
            ):
                continue
            found[f"{folder}/empty{ending}"] = "# nothing is in this folder of yours\n"
    return found
