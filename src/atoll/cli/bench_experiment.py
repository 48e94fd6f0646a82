"""What `atoll experiment` does for a figure that is a bench. Not a command."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from atoll.bench.axes import Grid
from atoll.bench.cost import in_words
from atoll.bench.deploy import Deployer
from atoll.bench.job import Job
from atoll.bench.machines import MachinesDeployer
from atoll.cli.experiment_engines import traits, uncounted
from atoll.cli.workload_experiment import what_can
from atoll.errors import UsageError
from atoll.experiments.here import Possible, possible, too_large
from atoll.experiments.network import notes_on, rates_of
from atoll.experiments.planned import unjudged
from atoll.host.api import Host
from atoll.host.local import LocalHost
from atoll.schema.experiment import BenchRun, Experiment, Network, Scale
from atoll.schema.machine import Machine
from atoll.schema.plan import EngineTraits
from atoll.schema.results import AxisValues
from atoll.schema.span import span
from atoll.schema.text import plural


def over_network(
    job: Job, network: Network, can: Possible, machine: Machine, engines: Sequence[EngineTraits]
) -> Job:
    """The job with these deployments, over virtual machines, in place of its own."""
    notes = dict.fromkeys(note for traits in engines for note in notes_on(network, machine, traits))
    header = job.header.model_copy(
        update={
            "entrants": can.entrants,
            "axes": tuple(
                AxisValues(name=axis.name, values=axis.values) for axis in can.grid.varied
            ),
            "notes": (*job.header.notes, *notes),
            "rates_scaled": network.scaled,
        }
    )

    def deployer(machine: Machine, host: Host, say: Callable[[str], None]) -> MachinesDeployer:
        own = job.deployer(machine, host, say)
        assert isinstance(own, Deployer)
        rates = partial(rates_of, network)
        return MachinesDeployer(own.engines, host, own.data, own.name, say, rates)

    return replace(job, header=header, deployer=deployer)


def bench_text(experiment: Experiment, run: BenchRun, machine: Machine) -> list[str]:
    """What this machine can vary, cannot vary, and the cost of each scale."""
    lines: list[str] = []
    varied: list[str] = []
    means = what_can(LocalHost())
    for size, scale in run.scales.items():
        engines = scale.engines or run.engines
        try:
            can = possible(run, machine, traits(engines), means)
            lost = unjudged(experiment, run, scale, machine, can, uncounted())
        except UsageError as fault:
            lines.append(f"{size}: cannot: {fault}")
            continue
        large = too_large(scale, machine)
        lines.append(
            f"{size}: {f'cannot: {large}' if large else bench_cost(len(can.entrants), scale)}"
        )
        varied = [_as_bench(run, engines, can.grid)]
        varied += [f"cannot vary {one}" for one in can.cannot]
        varied += [*can.same, *(f"cannot be judged here: {one}" for one in lost)]
    return [*lines, *varied]


def _as_bench(run: BenchRun, engines: Sequence[str], grid: Grid) -> str:
    if run.network is not None:
        return f"over virtual machines: {in_words(grid)}"
    return f"as atoll bench {' '.join(engines)} --suite {run.suite} {in_words(grid)}"


def bench_cost(deployments: int, scale: Scale) -> str:
    seconds = deployments * scale.blocks * scale.deployment_s
    return (
        f"{plural(deployments, 'deployment')} in each of {plural(scale.blocks, 'block')}, by our "
        f"guess about {span(seconds)}"
    )
