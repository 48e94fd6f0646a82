"""Plan files, as `atoll plan -o` and `atoll render` write them."""

from __future__ import annotations

import os
from pathlib import Path

from atoll.errors import NotPermitted, UsageError
from atoll.schema.base import parse
from atoll.schema.deployment import check_slots
from atoll.schema.plan import Plan
from atoll.schema.rendered import FILE, Rendered


def is_plan_file(engine_or_plan: str) -> bool:
    """Whether the argument is a path: it ends in .json or contains a slash. Engines do neither."""
    return engine_or_plan.endswith(".json") or os.sep in engine_or_plan


def read_plan(path: str) -> Plan:
    """Raises UsageError if the file cannot be read or is not a plan."""
    try:
        return parse(Plan, Path(path).read_bytes(), where=path)
    except OSError as fault:
        raise UsageError(f"{path}: cannot be read ({fault.strerror})") from None


def read_rendered(folder: str) -> tuple[Rendered, Plan]:
    """The processes and the plan of a folder that `atoll render` wrote. Raises UsageError, and
    NotPermitted for a folder that is closed to this user."""
    path = Path(folder) / FILE
    try:
        text = path.read_bytes()
    except PermissionError:
        raise NotPermitted(f"{path}: run as root, or as the account that owns it") from None
    except OSError:
        raise UsageError(
            f"{folder}: has no {FILE}; name a folder that 'atoll render' wrote, or render it again"
        ) from None
    rendered = parse(Rendered, text, where=str(path))
    plan = read_plan(str(path.with_name("plan.json")))
    try:
        check_slots(rendered.processes, plan)
    except ValueError as fault:
        raise UsageError(f"{folder}: {fault}; render it again") from None
    return rendered, plan
