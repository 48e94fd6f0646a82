"""The machine that a command works on: as it is read, with chiplets by the user's word, else by
the topology, else by a profile. One way for all commands, so that their plans agree.

Not a command. Kept light: `atoll topo` has 300 ms.
"""

from __future__ import annotations

import click

from atoll.errors import UsageError
from atoll.host.topology import read_machine
from atoll.schema.machine import ChipletSource, Machine
from atoll.schema.text import one_line

profile_option = click.option(
    "--profile",
    metavar="FILE",
    help="Take chiplets that the system hides from this profile (default: the one that "
    "'atoll measure' saved for this machine).",
)


def machine_for(
    source: str | None = None,
    synthetic: str | None = None,
    *,
    chiplets: str | None = None,
    profile: str | None = None,
) -> Machine:
    """What came from a profile, or why not, is said on stderr. Raises UsageError, TopologyError."""
    if chiplets is not None and profile is not None:
        raise UsageError("give either --chiplets or --profile, not both")
    machine = read_machine(source, synthetic)
    if chiplets is not None:
        from atoll.plan.chiplets import assign_chiplets, parse_chiplets

        return assign_chiplets(machine, parse_chiplets(chiplets, machine), ChipletSource.USER)
    if profile is not None:
        from atoll.probing.profiles import use_given

        return _say(*use_given(machine, profile))
    # What was measured here says nothing of a file; and the system's own word comes first.
    if source is not None or synthetic is not None or machine.chiplets:
        return machine
    from atoll.probing.profiles import use_saved

    return _say(*use_saved(machine))


def _say(machine: Machine, said: str) -> Machine:
    if said:
        click.echo(f"atoll: {one_line(said)}", err=True)
    return machine
