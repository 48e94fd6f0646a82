"""Options that several commands share, and the machine that they select. Not a command.

Kept light for `atoll topo`: it imports no plan and no engine.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

from atoll.errors import UsageError
from atoll.host.topology import read_machine
from atoll.schema.machine import ChipletSource, Machine
from atoll.schema.policy import Policy
from atoll.schema.span import parse_span
from atoll.schema.text import one_line

if TYPE_CHECKING:
    from atoll.plan.network import Listen
    from atoll.schema.profile import Profile


class FiniteRange(click.FloatRange):
    """A number within bounds. To click, 'nan' is within all, and 'inf' needs an upper bound."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        found = float(super().convert(value, param, ctx))
        if not math.isfinite(found):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return found


class Span(click.ParamType[float]):
    """A span of time, in seconds."""

    name = "time"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        try:
            return parse_span(str(value))
        except ValueError as fault:
            self.fail(str(fault), param, ctx)


def gathered(
    name: str, record: type, options: Sequence[Callable[..., Any]]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command these options, which it receives as one argument: a record with a field for
    each."""

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def wrapped(**given: Any) -> None:
            shared = {field.name: given.pop(field.name) for field in fields(record)}
            command(**{name: record(**shared)}, **given)

        for option in reversed(options):
            wrapped = option(wrapped)
        return wrapped

    return decorated


POLICIES = ("auto", *(policy.value for policy in Policy))

policy_option = click.option(
    "--policy",
    type=click.Choice(POLICIES),
    help="How to divide the machine into worker instances (default: auto).",
)
count_option = click.option(
    "-n",
    "count",
    metavar="N",
    type=click.IntRange(min=1),
    help="Number of worker instances, all of equal size.",
)
listen_option = click.option(
    "--listen",
    metavar="loopback|nic|ADDRESS",
    help="Where instances listen: each slot at the address of a NIC on its node, or all at one "
    "IPv4 address (default: loopback).",
)
base_option = click.option(
    "--base",
    metavar="DIR",
    help="Start from your own configuration in this folder and change only what placement needs. "
    "Atoll never writes to the folder.",
)
machine_option = click.option(
    "--machine",
    "source",
    metavar="FILE",
    help="Use another machine: an hwloc XML file, a captured sysfs folder or tarball, a machine "
    "file, output of lscpu, or a NodeResourceTopology of Kubernetes.",
)
synthetic_option = click.option(
    "--synthetic",
    metavar="TEXT",
    help='Use a made-up machine, for example "Package:2 L3:8 Core:8 PU:2".',
)
chiplets_option = click.option(
    "--chiplets",
    metavar="SETS",
    help='Define hidden chiplets: CPU sets ("0-13;14-27") or a size ("cores=14").',
)
profile_option = click.option(
    "--profile",
    metavar="FILE",
    help="Take hidden chiplets from this profile (default: the one that 'atoll measure' saved "
    "for this machine).",
)


rendered_option = click.option(
    "--rendered",
    metavar="DIR",
    multiple=True,
    help="Also watch what runs from this folder of 'atoll render'; may be repeated.",
)


def machine_for(
    source: str | None = None,
    synthetic: str | None = None,
    *,
    chiplets: str | None = None,
    profile: str | None = None,
) -> Machine:
    """The machine that the options select, with its chiplets.

    The user's chiplets come first, then those of the topology, then those of a profile. Prints on
    stderr which profile was used, or why none was. Raises UsageError or TopologyError.
    """
    if source is not None and synthetic is not None:
        raise UsageError("give either --machine or --synthetic, not both")
    if chiplets is not None and profile is not None:
        raise UsageError("give either --chiplets or --profile, not both")
    machine = read_machine(source, synthetic)
    if chiplets is not None:
        from atoll.plan.chiplets import assign_chiplets, parse_chiplets

        return assign_chiplets(machine, parse_chiplets(chiplets, machine), ChipletSource.USER)
    if profile is not None:
        from atoll.probing.profiles import use_given

        return _print(*use_given(machine, profile))
    # A saved profile describes only this machine, and the topology's own chiplets come first.
    if source is not None or synthetic is not None or machine.chiplets:
        return machine
    from atoll.probing.profiles import use_saved

    return _print(*use_saved(machine))


def measured_profile(machine: Machine, path: str | None, *, here: bool = True) -> Profile | None:
    """The figures of the profile that the user named, else of the newest of this machine. Raises
    UsageError."""
    from atoll.probing.profiles import find, read

    if path is not None:
        return read(path)
    return find(machine) if here else None


def _print(machine: Machine, remark: str) -> Machine:
    if remark:
        click.echo(f"atoll: {one_line(remark)}", err=True)
    return machine


def listen_places(text: str | None, machine: Machine, *, here: bool) -> Listen:
    """The places that --listen names. `here`: `machine` is this machine. Raises UsageError."""
    if text is None:
        return ()
    from atoll.host.local import LocalHost
    from atoll.plan.network import parse_listen

    return parse_listen(text, machine, LocalHost().addresses() if here else None)
