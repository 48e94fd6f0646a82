"""The options of a plan that plan, up, bench and render share. Not a command."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from atoll.errors import UsageError
from atoll.plan.coordinator import parse_coordinator
from atoll.plan.request import Choices
from atoll.plan.sizing import parse_page_cache
from atoll.schema.plan import HugePages, Malloc, MemoryPolicy, Placement
from atoll.schema.size import parse_size

_OPTIONS = (
    click.option(
        "--memory",
        type=click.Choice(list(map(str, MemoryPolicy))),
        help="Memory policy (default: bind if there are several NUMA nodes).",
    ),
    click.option(
        "--placement",
        type=click.Choice(list(map(str, Placement))),
        help="Placement of an instance's threads on its cores (default: none).",
    ),
    click.option("--smt", is_flag=True, help="Use all threads of each core instead of one."),
    click.option(
        "--coordinator",
        metavar="shared|in-worker|reserved:K",
        help="Place of the coordinator (default: shared, anywhere on the machine).",
    ),
    click.option(
        "--heap",
        metavar="SIZE",
        help="Heap (or a server's own memory) of each worker instance, for example 24GiB "
        "(default: the engine's share of the instance's memory).",
    ),
    click.option(
        "--page-cache",
        metavar="SIZE|PERCENT",
        help="Memory to keep free for the page cache, in total (64GiB) or as a share (10%). 0 is "
        "for data that is not in local files.",
    ),
    click.option(
        "--reserve", metavar="SIZE", help="Memory to leave to other services on the machine."
    ),
    click.option(
        "--reserve-cores",
        metavar="K",
        type=click.IntRange(min=1),
        help="Leave the machine's first K cores to other services.",
    ),
    click.option(
        "--malloc",
        type=click.Choice(list(map(str, Malloc))),
        help="The malloc that every process preloads (default: system, which preloads none).",
    ),
    click.option(
        "--thp",
        type=click.Choice(list(map(str, HugePages))),
        help="Transparent huge pages of every process: as the system has them (default), or never.",
    ),
)
_NAMES = (
    *("memory", "placement", "smt", "coordinator", "heap", "page_cache", "reserve"),
    *("reserve_cores", "malloc", "thp", "count"),
)


def planning_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the shared options, which it receives as `choices`, with the `-n` of a
    command that has one."""

    @functools.wraps(command)
    def wrapped(**given: Any) -> None:
        names = [name for name in _NAMES if name in given]
        asked = {name: value for name in names if (value := given.pop(name)) not in (None, False)}
        command(choices=_choices(asked), **given)

    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped


def _choices(asked: dict[str, Any]) -> Choices:
    """Only what the user chose. Raises UsageError."""
    choices = Choices()
    if "count" in asked:
        choices["count"] = asked["count"]
    if "memory" in asked:
        choices["memory"] = MemoryPolicy(asked["memory"])
    if "placement" in asked:
        choices["placement"] = Placement(asked["placement"])
    if "smt" in asked:
        choices["smt"] = True
    if "coordinator" in asked:
        choices["coordinator"] = parse_coordinator(asked["coordinator"])
    if "heap" in asked:
        choices["heap_bytes"] = size_of("--heap", asked["heap"])
    if "page_cache" in asked:
        choices["page_cache"] = parse_page_cache(asked["page_cache"])
    if "reserve" in asked:
        choices["reserve_bytes"] = size_of("--reserve", asked["reserve"])
    if "reserve_cores" in asked:
        choices["reserve_cores"] = asked["reserve_cores"]
    if "malloc" in asked:
        choices["malloc"] = Malloc(asked["malloc"])
    if "thp" in asked:
        choices["thp"] = HugePages(asked["thp"])
    return choices


def size_of(option: str, text: str | None) -> int:
    """Raises UsageError."""
    try:
        return parse_size(text) if text is not None else 0
    except ValueError as fault:
        raise UsageError(f"{option}: {fault}") from None


def refuse_choices(policy: str | None, choices: Choices, listen: str | None) -> None:
    """Raises UsageError if an option that only the planner reads accompanies a plan file."""
    if policy is not None or choices or listen is not None:
        raise UsageError(
            "a plan file has its own policy and settings; leave out --policy, -n, --listen and "
            "the other options of a plan"
        )
