"""Advice files, as `atoll advise --json` writes them."""

from __future__ import annotations

from pathlib import Path

from atoll.errors import UsageError
from atoll.schema.advice import Advice
from atoll.schema.base import parse


def read_advice(path: str) -> Advice:
    """Raises UsageError if the file cannot be read or is not advice."""
    try:
        return parse(Advice, Path(path).read_bytes(), where=path)
    except OSError as fault:
        raise UsageError(f"{path}: cannot be read ({fault.strerror})") from None
