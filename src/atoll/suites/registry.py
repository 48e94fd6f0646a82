"""Suites by name. 'jcch:7' is jcch with the parameters of seed 7, 'tpch:joins' a variant."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from atoll.errors import UsageError
from atoll.suites.base import Suite
from atoll.suites.jcch import Jcch
from atoll.suites.join import Join
from atoll.suites.own import read_own
from atoll.suites.tpcds import Tpcds
from atoll.suites.tpch import JOINS, Tpch

_SUITES: dict[str, Callable[[], Suite]] = {
    "tpch": Tpch,
    "tpcds": Tpcds,
    "jcch": Jcch,
    "join": Join,
}


def names() -> tuple[str, ...]:
    return tuple(_SUITES)


def get(name: str) -> Suite:
    """The suite of that name, or the user's own in the folder of that path. Raises UsageError if
    there is none, or if a file of it is wrong."""
    if seeded := re.fullmatch(r"jcch:(\d{1,9})", name):
        return Jcch(int(seeded[1]))
    if name == JOINS:
        return Tpch(joins=True)
    if "/" in name or (name not in _SUITES and Path(name).is_dir()):
        return read_own(name)
    if name.partition(":")[0] in _SUITES and name not in _SUITES:
        raise UsageError(
            f"--suite {name}: only jcch has seeds, of 1 to 9 digits, as in jcch:7, and only tpch "
            f"has the variant {JOINS}"
        )
    if name not in _SUITES:
        raise UsageError(
            f"unknown suite {name!r}; known suites: {', '.join(_SUITES)}; "
            "your own is a folder of .sql files"
        )
    return _SUITES[name]()
