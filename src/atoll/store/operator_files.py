"""Files of operator graphs and placements, which `atoll operators` reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypeVar

from atoll.errors import UsageError
from atoll.schema.base import parse
from atoll.schema.operator_graph import OperatorGraph
from atoll.schema.operator_runs import OperatorRuns
from atoll.schema.placement import Placement

_F = TypeVar("_F", OperatorGraph, Placement, OperatorRuns)


def read_graph(path: str) -> OperatorGraph:
    """Raises UsageError."""
    return _read(OperatorGraph, path)


def read_placement(path: str) -> Placement:
    """Raises UsageError."""
    return _read(Placement, path)


def read_operator_runs(path: str) -> OperatorRuns:
    """Raises UsageError."""
    return _read(OperatorRuns, path)


def read_any(path: str) -> OperatorGraph | Placement | OperatorRuns:
    """Raises UsageError, which names the format of graphs if it has no known format."""
    try:
        found = json.loads(_bytes(path))
    except (ValueError, RecursionError):
        found = None  # `parse` says what is wrong
    name = found.get("format") if isinstance(found, dict) else None
    if name == Placement.model_fields["format"].default:
        return read_placement(path)
    if name == OperatorRuns.model_fields["format"].default:
        return read_operator_runs(path)
    return read_graph(path)


def _read(kind: type[_F], path: str) -> _F:
    return parse(kind, _bytes(path), where=path)


def _bytes(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as fault:
        raise UsageError(f"{path}: cannot be read ({fault.strerror})") from None
