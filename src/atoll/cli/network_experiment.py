"""What `atoll experiment` does for a figure over several machines and NICs. Not a command."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from atoll.bench.deploy import Deployer
from atoll.bench.job import Job
from atoll.bench.machines import MachinesDeployer
from atoll.experiments.here import Possible
from atoll.experiments.network import notes_on, rates_of
from atoll.host.api import Host
from atoll.schema.experiment import Network
from atoll.schema.machine import Machine
from atoll.schema.plan import EngineTraits
from atoll.schema.results import AxisValues


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
