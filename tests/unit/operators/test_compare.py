"""Deployments side by side: order, refusals, and the loop that raises the headroom."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from atoll.engines.placeable import Throughput
from atoll.errors import UsageError
from atoll.operators.compare import Comparison, Planner, Setup
from atoll.operators.judge import judge, shown, verdict
from atoll.operators.place import place
from atoll.operators.used import cores_used
from atoll.schema.machine import Machine
from atoll.schema.operator_graph import OperatorGraph
from atoll.schema.operator_runs import OperatorRuns
from atoll.schema.placement import Deployment, Placement
from tests.parts.machines import NodeShape, build
from tests.parts.placed import Program, ProgramHost, placement

NAMES = ["a", "b", "c"]
ALL: tuple[Deployment, ...] = ("os", "per-core", "packed")
FOUR_CORES = build([[NodeShape(rest=4)]])
TWO_CORES = build([[NodeShape(rest=2)]])


def gives(rate: float = 100, p99_ms: float = 10, *, backlog: bool = False) -> Throughput:
    return Throughput("works/s", (rate - 1, rate, rate + 1), 1, 5, p99_ms, backlog)


def planner(machine: Machine) -> Planner:
    """With more headroom, packed takes another core."""

    def plan(graph: OperatorGraph, headroom: float, deployment: Deployment) -> Placement:
        if deployment != "packed":
            return place(graph, machine, None, headroom, deployment)
        cores = 1 if headroom < 0.3 else 2
        made = placement({name: k % cores for k, name in enumerate(NAMES)})
        return made.model_copy(update={"headroom": headroom})

    return plan


def compare(
    results: Sequence[Throughput],
    *,
    cores: int = 4,
    deployments: Sequence[Deployment] = ALL,
    blocks: int = 2,
    most_headroom: float = 0.5,
    model: str = "",
) -> tuple[OperatorRuns, Program, list[OperatorRuns]]:
    host = ProgramHost(NAMES)
    host.files["/proc/cpuinfo"] = f"model name\t: {model}\n"
    program = Program(host, results)
    machine = FOUR_CORES if cores == 4 else TWO_CORES
    setup = Setup(program, deployments, planner(machine), 0.2, most_headroom, 1, 3, blocks)
    kept: list[OperatorRuns] = []
    comparison = Comparison(host, machine, setup, lambda line: None, longest_wait_s=0)
    return comparison.run(kept.append), program, kept


def holds(found: OperatorRuns) -> bool:
    result = judge(found.rounds[-1])
    return result is not None and result.holds


def test_every_deployment_runs_once_in_a_block_and_every_second_block_is_reversed() -> None:
    found, program, kept = compare([gives()] * 6)
    assert [(run.block, run.deployment) for run in found.rounds[0].runs] == [
        *((0, name) for name in ALL),
        *((1, name) for name in reversed(ALL)),
    ]
    assert [len(one.rounds[0].runs) for one in kept] == [3, 6]
    assert program.placed[0].deployment == "per-core"  # the profile's
    assert holds(found) and len(found.rounds) == 1
    assert not any(run.drifted for run in found.rounds[0].runs)
    assert found.unit == "works/s"


def test_what_it_shows_of_a_deployment() -> None:
    found, _, _ = compare([gives(100), gives(120), gives(119)], blocks=1)
    one = shown(found.rounds[0], "per-core")
    assert one is not None
    assert (one.throughput, one.p99_ms) == (120, 10)
    assert one.deviation == pytest.approx((2 / 3) ** 0.5)


@pytest.mark.parametrize(
    ("packed", "good"),
    [
        (gives(97.5), True),
        (gives(96), False),
        (gives(100, 10.9), True),
        (gives(100, 11.2), False),
        (gives(100, backlog=True), False),
    ],
)
def test_packed_must_be_as_good_as_an_operator_per_core(packed: Throughput, good: bool) -> None:
    found, _, _ = compare([gives(), gives(), packed], blocks=1, most_headroom=0.2)
    result = judge(found.rounds[0])
    assert result is not None
    assert result.holds is good


def test_the_headroom_is_raised_until_it_holds() -> None:
    found, _, _ = compare([gives(), gives(), gives(90), *[gives()] * 3], blocks=1)
    assert [one.headroom for one in found.rounds] == [0.2, 0.3]
    assert holds(found)


def test_an_emulated_cpu_raises_no_headroom() -> None:
    found, _, _ = compare([gives(), gives(), gives(90)], blocks=1, model="QEMU TCG CPU")
    assert [one.headroom for one in found.rounds] == [0.2]


def test_headrooms_that_give_the_same_plan_are_not_measured_again() -> None:
    found, _, _ = compare([gives(), gives(), gives(90)] * 2, blocks=1)
    assert [one.headroom for one in found.rounds] == [0.2, 0.3]  # 0.4 and 0.5 are as 0.3
    assert not holds(found)


def test_without_enough_cores_the_comparison_is_refused_and_the_rest_runs() -> None:
    found, program, _ = compare([gives()] * 2, cores=2, blocks=1)
    assert {run.deployment for run in found.rounds[0].runs} == {"os", "packed"}
    assert program.placed[0].deployment == "os"  # the profile's
    assert "per-core" in found.refused
    assert judge(found.rounds[0]) is None
    assert found.refused["per-core"] in verdict(found)


def test_if_nothing_can_run_it_is_refused() -> None:
    with pytest.raises(UsageError):
        compare([], cores=2, deployments=["per-core"])


def test_a_core_with_little_of_the_cpu_time_is_not_used() -> None:
    machine = build([[NodeShape(rest=4)]], smt=2)  # CPU 5 is a thread of core 1
    assert cores_used({0: 10.0, 1: 5.0, 5: 5.0, 2: 0.1}, machine) == 2
    assert cores_used({}, machine) == 0
