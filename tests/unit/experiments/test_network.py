"""The deployments of the figures over several machines, and how their terms are read."""

from __future__ import annotations

from itertools import combinations

import pytest

from atoll.bench.analysis import summarise
from atoll.bench.results import Results
from atoll.bench.sameness import coincide
from atoll.errors import UsageError
from atoll.experiments.catalog import experiments
from atoll.experiments.claims import Reading, parse_term
from atoll.experiments.here import Can, possible
from atoll.experiments.network import entrants_over, notes_on, rates_of
from atoll.experiments.readings import BenchReadings
from atoll.plan.cluster import part_of
from atoll.schema.experiment import Network
from atoll.schema.machine import Machine
from atoll.schema.results import Entrant
from tests.parts.bench import header
from tests.parts.faults import fails
from tests.parts.machines import NodeShape, build
from tests.parts.plan import DISTRIBUTED, SINGLE

TRAITS = DISTRIBUTED.model_copy(update={"listens": True, "shuffles": True})
NETWORK = Network(machines=(1, 2, 3), nics=("1", "1+10", "10"), scaled=0.01)
TWO_CORES = build([[NodeShape((2,), memory_gib=16)]])
TWO_NODES = build([[NodeShape((4,), memory_gib=16)], [NodeShape((4,), memory_gib=16)]])
MACHINES = pytest.mark.parametrize("machine", [TWO_CORES, TWO_NODES], ids=["cores", "nodes"])


def found(machine: Machine) -> dict[str, Entrant]:
    return {
        one.label.removeprefix(f"{TRAITS.name}/"): one
        for one in entrants_over(NETWORK, machine, TRAITS)
    }


@MACHINES
def test_one_deployment_for_each_choice_that_makes_a_difference(machine: Machine) -> None:
    several = [f"machines={count}" for count in (2, 3)]
    assert [*found(machine)] == [
        *("wim/machines=1", "win/machines=1"),
        *(
            label
            for many in several
            for label in (f"wim/{many}", *(f"win/{many}/nic={nic}" for nic in NETWORK.nics))
        ),
    ]
    assert all(
        one.baseline is None or one.baseline.endswith(label.split("/")[1])
        for label, one in found(machine).items()
    )


@MACHINES
def test_all_deployments_have_equal_heaps_and_fit_into_the_memory(machine: Machine) -> None:
    plans = [one.plan for one in found(machine).values()]
    assert len({plan.total_heap_bytes for plan in plans if plan}) == 1
    for plan in plans:
        assert plan
        count = plan.cluster.machines if plan.cluster else 1
        taken = sum(slot.memory_bytes for slot in plan.slots)
        assert count * taken <= machine.memory_bytes
        assert len(plan.slots) == (1 if plan.policy == "wim" else 2)
        assert plan.joining == count * len(plan.slots)


def test_instances_take_the_nics_in_turn_at_addresses_of_their_machine() -> None:
    entrant = found(TWO_CORES)["win/machines=3/nic=1+10"]
    assert entrant.plan and entrant.plan.cluster
    assert rates_of(NETWORK, entrant) == {"nic0": 10, "nic1": 100}
    parts = [part_of(entrant.plan, number) for number in range(3)]
    assert [[slot.address for slot in part.slots] for part in parts] == [
        [f"10.77.0.{number}", f"10.78.0.{number}"] for number in (1, 2, 3)
    ]
    assert [slot.nic for slot in parts[2].slots] == ["nic0", "nic1"]
    assert [bool(part.cluster and part.cluster.leads) for part in parts] == [True, False, False]
    assert [part.coordinator is None for part in parts] == [False, True, True]
    assert parts[0] == entrant.plan


def test_wim_has_one_slow_nic_and_is_the_baseline_of_all() -> None:
    of_two = found(TWO_CORES)["wim/machines=2"]
    assert rates_of(NETWORK, of_two) == {"nic0": 10}
    entrants = list(found(TWO_CORES).values())
    seconds = {one.label: 1.0 + place for place, one in enumerate(entrants)}
    times = {label: {"q1": dict.fromkeys(range(5), value)} for label, value in seconds.items()}
    readings = BenchReadings(entrants, TRAITS.name, TWO_CORES, ("machines", "nic"), times, ("q1",))
    for count, nic, label in (("2", "10", "machines=2"), ("all", "1+10", "machines=3")):
        read = readings(parse_term(f"speedup(policy=win, machines={count}, nic={nic})"))
        assert isinstance(read, Reading)
        base, own = (
            seconds[f"{TRAITS.name}/{one}"] for one in (f"wim/{label}", f"win/{label}/nic={nic}")
        )
        assert read.estimate.value == pytest.approx(base / own)


@MACHINES
def test_no_two_of_them_coincide(machine: Machine) -> None:
    for one, other in combinations(found(machine).values(), 2):
        assert not coincide(one, other, machine)


def test_what_stands_for_what_is_noted() -> None:
    notes = " ".join(notes_on(NETWORK, TWO_CORES, TRAITS))
    for words in ("emulated", "1 for 10 Mbit/s and 10 for 100 Mbit/s", "has one node"):
        assert words in notes
    assert "has one node" not in " ".join(notes_on(NETWORK, TWO_NODES, TRAITS))


def test_where_there_can_be_no_network_the_reason_is_given() -> None:
    run = next(one.bench for one in experiments() if one.name == "numa-fig16")
    assert run
    with fails(UsageError, fault="because"):
        possible(run, TWO_CORES, [TRAITS], Can(network_fault="because"))
    with fails(UsageError, engine=SINGLE.name):
        possible(run, TWO_CORES, [SINGLE])


def test_an_emulated_network_is_in_the_results_and_an_emulated_cpu_comes_first() -> None:
    made = header(*entrants_over(NETWORK, TWO_CORES, TRAITS), rates_scaled=0.01)
    assert summarise(Results(made, ())).basis == "emulated network"
    emulated = made.fingerprint.model_copy(update={"emulated": True})
    both = made.model_copy(update={"fingerprint": emulated})
    assert summarise(Results(both, ())).basis == "emulated"
