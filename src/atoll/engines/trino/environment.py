"""${ENV:NAME} in properties: a value that Trino and Presto take from their environment. Pure.

Sources: Trino's manual, Secrets; Bootstrap of Presto 0.287.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping

from atoll.engines.userconfig.java import properties
from atoll.engines.userconfig.pieces import lines

_NAMED = re.compile(r"\$\{(?i:ENV):([^}]+)\}")


def numbered_properties(text: str, *, where: str) -> Iterator[tuple[int, str, str]]:
    """(line, key, value) of each. Raises UsageError as `read_properties` does."""
    number = 1
    for piece in properties(text, where=where):
        if piece.key:
            yield number, piece.key, piece.value
        number += sum(1 for _ in lines(piece.raw))


def holds_settings(path: str) -> bool:
    """Not log.properties, whose empty key is the root of all loggers."""
    return path.endswith(".properties") and os.path.basename(path) != "log.properties"


def variables(texts: Mapping[str, str], *, root: str = "") -> dict[str, str]:
    """The variables that properties files name, each with the first FILE:LINE that does."""
    found: dict[str, str] = {}
    for path, text in sorted(texts.items()):
        if holds_settings(path):
            for number, _, value in numbered_properties(text, where=root + path):
                for name in _NAMED.findall(value):
                    found.setdefault(name, f"{root}{path}:{number}")
    return found
