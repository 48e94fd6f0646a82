"""The plan that a command works on: from a file, or made for an engine. Not a command."""

from __future__ import annotations

import os
from pathlib import Path

import click

from atoll.errors import UsageError
from atoll.schema.base import parse
from atoll.schema.plan import Plan, Policy

POLICIES = ("auto", *(policy.value for policy in Policy))

base_option = click.option(
    "--base",
    metavar="DIR",
    help="Take the engine's configuration from this folder of yours, and change only what "
    "placement needs. Nothing is written into it.",
)


def is_plan_file(engine_or_plan: str) -> bool:
    """A path ends in .json or holds a slash; everything else is an engine's name."""
    return engine_or_plan.endswith(".json") or os.sep in engine_or_plan


def read_plan(path: str) -> Plan:
    """Raises UsageError for what is no plan."""
    try:
        return parse(Plan, Path(path).read_bytes(), where=path)
    except OSError as fault:
        raise UsageError(f"{path}: cannot be read ({fault.strerror})") from None


def refuse_choices(policy: str | None, count: int | None) -> None:
    """Raises UsageError where a plan file is to be planned anew."""
    if policy is not None or count is not None:
        raise UsageError("a plan file says its policy itself; leave out --policy and -n")


def say_warnings(plan: Plan) -> None:
    for warning in plan.warnings:
        click.echo(f"atoll: warning: {warning}", err=True)
