"""Reads and writes a file of one of Atoll's formats."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from atoll.errors import UsageError
from atoll.schema.base import Record, parse
from atoll.store.files import write_atomic

R = TypeVar("R", bound=Record)


def read_document(kind: type[R], path: Path) -> R:
    """Raises UsageError."""
    try:
        text = path.read_text("utf-8")
    except (OSError, ValueError) as fault:
        why = getattr(fault, "strerror", None) or fault
        raise UsageError(f"{path}: cannot be read ({why})") from None
    return parse(kind, text, where=str(path))


def write_document(path: str | Path, document: Record) -> None:
    """Raises as `write_atomic`."""
    write_atomic(path, document.model_dump_json(indent=1) + "\n")
