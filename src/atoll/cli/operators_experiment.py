"""What `atoll experiment` does for a figure that compares placements of operators."""

from __future__ import annotations

import sys
from pathlib import Path

from atoll.cli.blocks import Blocks
from atoll.cli.operators_compare import DEPLOYMENTS, run_compare, show_runs
from atoll.cli.options import measured_profile
from atoll.experiments.here import too_large
from atoll.experiments.ours import Ours, of_operators
from atoll.schema.experiment import OperatorRun, OperatorScale
from atoll.schema.machine import Machine
from atoll.schema.span import span
from atoll.schema.text import plural


def run_operators(
    run: OperatorRun, scale: OperatorScale, machine: Machine, output: Path | None
) -> Ours:
    print(f"atoll: {_cost(scale)}", file=sys.stderr)
    found, path = run_compare(
        run.program,
        DEPLOYMENTS,
        Blocks(scale.measured_s, scale.warmup_s, scale.blocks, output),
        machine=machine,
        measured=measured_profile(machine, None),
    )
    show_runs(found)
    return of_operators(found, path.name)


def operators_text(run: OperatorRun, machine: Machine) -> list[str]:
    """The cost of each scale."""
    return [
        f"{size}: {f'cannot: {large}' if large else _cost(scale)}"
        for size, scale in run.scales.items()
        for large in [too_large(scale, machine)]
    ]


def _cost(scale: OperatorScale) -> str:
    runs = len(DEPLOYMENTS) * scale.blocks
    return (
        f"{plural(runs, 'run')} in {plural(scale.blocks, 'block')} and a profile, by our guess "
        f"about {span((runs + 1) * scale.run_s)}, and as much for each headroom that does not hold"
    )
