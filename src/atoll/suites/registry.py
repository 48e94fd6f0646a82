"""Suites by name."""

from __future__ import annotations

from collections.abc import Callable

from atoll.errors import UsageError
from atoll.suites.base import Suite
from atoll.suites.join import Join
from atoll.suites.tpcds import Tpcds
from atoll.suites.tpch import Tpch

_SUITES: dict[str, Callable[[], Suite]] = {"tpch": Tpch, "tpcds": Tpcds, "join": Join}


def names() -> tuple[str, ...]:
    return tuple(_SUITES)


def get(name: str) -> Suite:
    """The suite of that name. Raises UsageError if there is none."""
    if name not in _SUITES:
        raise UsageError(f"unknown suite {name!r}; known suites: {', '.join(_SUITES)}")
    return _SUITES[name]()
