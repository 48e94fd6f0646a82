"""The deployments of a figure over several machines with several NICs, as virtual machines. Pure.

Each machine has the same CPUs, and an equal part of the memory. WIN has an instance for each NUMA
node; on a machine with one node, two instances with half the cores each stand for it. WIM with one
slow NIC is the baseline of all NICs (numa-distributed-engines, section V).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from atoll.errors import UsageError
from atoll.plan.cluster import over_machines, part_of
from atoll.plan.planner import comparable, make_plan
from atoll.plan.request import Choices
from atoll.schema.experiment import Network
from atoll.schema.machine import Machine
from atoll.schema.plan import EngineTraits, Plan, Slot
from atoll.schema.results import CellName, Entrant
from atoll.schema.size import bit_rate
from atoll.schema.text import plural

_PORT = 7077
_WIM, _WIN = "wim", "win"


def entrants_over(network: Network, machine: Machine, traits: EngineTraits) -> tuple[Entrant, ...]:
    """WIM and WIN of each number of machines, WIN with each choice of NICs. Raises UsageError."""
    found: list[Entrant] = []
    wim, win = _on_one(machine, traits, max(network.machines))
    for count in network.machines:
        label = f"{traits.name}/{_WIM}/machines={count}"
        found.append(_entrant(label, traits, _over(wim, count, "1"), _WIM, count, network.nics))
        # One machine sends nothing over its NICs.
        groups = [(one,) for one in network.nics] if count > 1 else [network.nics]
        for nics in groups:
            plan = _over(win, count, nics[0])
            name = f"{traits.name}/{_WIN}/machines={count}" + f"/nic={nics[0]}" * (count > 1)
            found.append(_entrant(name, traits, plan, _WIN, count, nics, baseline=label))
    return tuple(found)


def rates_of(network: Network, entrant: Entrant) -> Mapping[str, float]:
    """The rate of each NIC of a machine, in Mbit/s."""
    values = entrant.cells[0].values
    nics = "1" if values["policy"] == _WIM else values["nic"]
    return {
        f"nic{k}": float(each) * 1000 * network.scaled for k, each in enumerate(nics.split("+"))
    }


def notes_on(network: Network, machine: Machine, traits: EngineTraits) -> list[str]:
    """What a reader must know before trusting a figure."""
    most = max(network.machines)
    _, win = _on_one(machine, traits, most)
    rates = sorted({int(each) for nics in network.nics for each in nics.split("+")})
    scaled = (f"{each} for {bit_rate(round(each * 1000 * network.scaled))}" for each in rates)
    notes = [
        f"the machines are emulated: up to {most} network namespaces share these CPUs, so only "
        f"what the network limits can be compared; Gbit/s stand for less: {' and '.join(scaled)}",
        "the data do not grow with the number of machines, other than in the paper",
        f"WIM with one NIC of {bit_rate(round(1000 * network.scaled))} is the baseline of all NICs",
    ]
    if len(machine.nodes) < 2:
        notes.append(
            f"WIN is {plural(len(win.slots), 'instance')} with half the cores each, in place of "
            "one for each NUMA node: this machine has one node"
        )
    return notes


def _on_one(machine: Machine, traits: EngineTraits, machines: int) -> list[Plan]:
    """The plans of WIM and WIN on one of `machines` that share the memory."""
    shared = Choices(reserve_bytes=machine.memory_bytes * (machines - 1) // machines)
    parted: Choices = {**shared, "count": 2} if len(machine.nodes) < 2 else shared
    policy = "wicp" if len(machine.nodes) < 2 else _WIN
    return comparable(
        [
            partial(make_plan, machine, traits, _WIM, **shared),
            partial(make_plan, machine, traits, policy, **parted),
        ]
    )


def _over(plan: Plan, count: int, nics: str) -> Plan:
    """The head's plan."""
    number = len(nics.split("+"))
    if plan.coordinator is None:
        raise UsageError(f"{plan.engine} has no coordinator that instances elsewhere could join")

    def placed(slot: Slot) -> Slot:
        nic = slot.index % number
        return slot.model_copy(update={"address": f"10.{77 + nic}.0.1", "nic": f"nic{nic}"})

    home = plan.coordinator.model_copy(update={"address": "10.77.0.1"})
    slots = tuple(map(placed, plan.slots))
    alone = plan.model_copy(update={"slots": slots, "coordinator": home})
    if count == 1:
        return alone
    parts = {f"machine {each}": part_of(alone, each) for each in range(count)}
    return over_machines(parts, _PORT)["machine 0"]


def _entrant(
    label: str,
    traits: EngineTraits,
    plan: Plan,
    policy: str,
    count: int,
    nics: tuple[str, ...],
    baseline: str | None = None,
) -> Entrant:
    values = [{"policy": policy, "machines": str(count), "nic": nic} for nic in nics]
    return Entrant(
        label=label,
        engine=traits.name,
        plan=plan,
        baseline=baseline,
        cells=tuple(CellName(label=label, values=each) for each in values),
    )
