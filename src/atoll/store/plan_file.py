"""Plan files, as `atoll plan -o` writes them."""

from __future__ import annotations

import os
from pathlib import Path

from atoll.errors import UsageError
from atoll.schema.base import parse
from atoll.schema.plan import Plan


def is_plan_file(engine_or_plan: str) -> bool:
    """Whether the argument is a path: it ends in .json or contains a slash. Engines do neither."""
    return engine_or_plan.endswith(".json") or os.sep in engine_or_plan


def read_plan(path: str) -> Plan:
    """Raises UsageError if the file cannot be read or is not a plan."""
    try:
        return parse(Plan, Path(path).read_bytes(), where=path)
    except OSError as fault:
        raise UsageError(f"{path}: cannot be read ({fault.strerror})") from None
