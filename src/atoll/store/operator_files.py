"""Files of operator graphs, placements and comparisons, which `atoll operators` reads."""

from __future__ import annotations

import json
from pathlib import Path

from atoll.schema.operator_graph import OperatorGraph
from atoll.schema.operator_runs import OperatorRuns
from atoll.schema.placement import Placement
from atoll.store.document import read_document


def read_graph(path: str) -> OperatorGraph:
    """Raises UsageError."""
    return read_document(OperatorGraph, Path(path))


def read_placement(path: str) -> Placement:
    """Raises UsageError."""
    return read_document(Placement, Path(path))


def read_any(path: str) -> OperatorGraph | Placement | OperatorRuns:
    """Raises UsageError, which names the format of graphs if it has no known format."""
    try:
        found = json.loads(Path(path).read_bytes())
    except (OSError, ValueError, RecursionError):
        found = None  # `read_document` says what is wrong
    name = found.get("format") if isinstance(found, dict) else None
    if name == Placement.model_fields["format"].default:
        return read_placement(path)
    if name == OperatorRuns.model_fields["format"].default:
        return read_document(OperatorRuns, Path(path))
    return read_graph(path)
