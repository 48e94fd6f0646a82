"""What `atoll experiment` does for a figure that is measured with transactions."""

from __future__ import annotations

import sys
from pathlib import Path

from atoll.cli.blocks import Blocks
from atoll.cli.oltp import run_oltp, show_oltp, sizes_of
from atoll.errors import UsageError
from atoll.experiments.here import too_large
from atoll.experiments.oltp_readings import CanSeat, transactions_here
from atoll.experiments.ours import Ours, of_oltp
from atoll.schema.experiment import Experiment, TransactionRun, TransactionScale
from atoll.schema.machine import Machine
from atoll.schema.span import span
from atoll.schema.text import plural

_WARMUP_S = 5


def run_transactions(
    experiment: Experiment,
    run: TransactionRun,
    scale: TransactionScale,
    machine: Machine,
    output: Path | None,
) -> Ours:
    """Raises UsageError at once if both placements are the same here."""
    can = _here(run, machine)
    for line in can.cannot:
        print(f"atoll: not varied here: {line}", file=sys.stderr)
    print(f"atoll: {_cost(run, scale, can)}", file=sys.stderr)
    found, path = run_oltp(
        sizes_of(run.workloads, scale.warehouses, scale.records),
        can.cores,
        Blocks(scale.measured_s, _WARMUP_S, scale.blocks, output),
        machine=machine,
        name=experiment.name,
    )
    show_oltp(found)
    return of_oltp(found, path.name)


def transactions_text(run: TransactionRun, machine: Machine) -> list[str]:
    """What this machine can vary, cannot vary, and the cost of each scale."""
    try:
        can = _here(run, machine)
    except UsageError as fault:
        return [f"cannot: {fault}"]
    costs = [
        f"{size}: {f'cannot: {large}' if large else _cost(run, scale, can)}"
        for size, scale in run.scales.items()
        for large in [too_large(scale, machine)]
    ]
    return [*costs, *(f"cannot vary {one}" for one in can.cannot)]


def _here(run: TransactionRun, machine: Machine) -> CanSeat:
    from atoll.engines import registry

    return transactions_here(run, machine, registry.get(run.engine).traits)


def _cost(run: TransactionRun, scale: TransactionScale, can: CanSeat) -> str:
    runs = len(can.seats) * len(run.workloads) * scale.blocks
    return (
        f"{plural(runs, 'run')} in {plural(scale.blocks, 'block')}, by our guess about "
        f"{span(runs * scale.run_s)}"
    )
