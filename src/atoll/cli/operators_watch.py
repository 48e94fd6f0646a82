"""`atoll operators watch`: whether a placement still fits the program that runs."""

from __future__ import annotations

import sys
from functools import partial

import click

from atoll.cli.options import (
    Span,
    chiplets_option,
    machine_for,
    measured_profile,
    profile_option,
)
from atoll.cli.terminal import show, width
from atoll.errors import CheckFailed, UsageError
from atoll.host.local import LocalHost
from atoll.schema.text import printable
from atoll.store.document import write_document
from atoll.store.operator_files import read_graph, read_placement


@click.command(
    "watch",
    epilog="Example: atoll operators watch packed.json graph.json --url http://localhost:8081 "
    "-o new.json",
)
@click.argument("placement_file", metavar="PLACEMENT")
@click.argument("graph_file", metavar="GRAPH")
@click.option("--url", metavar="URL", required=True, help="Where the program listens.")
@click.option("--for", "for_s", type=Span(), metavar="TIME", help="How long (default: for ever).")
@click.option("-o", "--output", metavar="FILE", help="Write the offered placement to this file.")
@chiplets_option
@profile_option
def command(
    placement_file: str,
    graph_file: str,
    url: str,
    for_s: float | None,
    output: str | None,
    chiplets: str | None,
    profile: str | None,
) -> None:
    """Offer a new plan if a running program changes.

    PLACEMENT is what was applied, a packed one, and GRAPH what it was planned by. If a figure of an
    operator is more than 20 % off its plan for 60 s, the command prints a new placement and ends
    with exit code 1. It changes nothing; 'atoll operators apply' does. It also reports threads that
    ended, were made again or were moved. Exit code 0: nothing drifted within the TIME of --for.
    """
    from atoll.engines import registry
    from atoll.operators.place import place
    from atoll.operators.watch import watch
    from atoll.report.terminal.operators import placement_table, placement_text

    placement, graph = read_placement(placement_file), read_graph(graph_file)
    if placement.deployment != "packed":
        raise UsageError(
            f"{placement_file}: the deployment {placement.deployment} does not depend on what "
            "operators use; give a packed placement"
        )
    program = registry.get_attachable(placement.engine)
    machine = machine_for(chiplets=chiplets, profile=profile)
    host = LocalHost()
    with program.attach(host, url) as running:
        offer = watch(
            host,
            running,
            placement,
            graph,
            partial(
                place,
                machine=machine,
                profile=measured_profile(machine, profile),
                headroom=placement.headroom,
            ),
            lambda line: print(printable(line), file=sys.stderr, flush=True),
            for_s=for_s,
        )
    if offer is None:
        print("no operator has drifted")
        return
    for drift in offer.drifts:
        print(printable(str(drift)))
    if offer.placement is None:
        raise CheckFailed(f"the operators drifted, and there is no new plan: {offer.why_none}")
    show(placement_table(offer.placement))
    print(placement_text(offer.placement, width()))
    if output is not None:
        write_document(output, offer.placement)
    raise CheckFailed(
        "the operators drifted from the plan; the new one is "
        + (f"in {output}" if output is not None else "above; -o FILE writes it")
    )
