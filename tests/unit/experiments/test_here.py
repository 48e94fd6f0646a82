"""What machines of several shapes can repeat."""

from __future__ import annotations

from typing import Literal

import pytest

from atoll.errors import UsageError
from atoll.experiments.catalog import experiments
from atoll.experiments.here import (
    Can,
    Counts,
    counts,
    possible,
    require_meaning,
    too_large,
    unmet,
)
from atoll.schema.experiment import BenchRun, Experiment, Needs, Scale
from tests.parts.bench import SPARK_TRAITS
from tests.parts.machines import NodeShape, build

TWO_CORES = build([[NodeShape(rest=2)]])
MILAN = build([[NodeShape(chiplets=(4,) * 4)], [NodeShape(chiplets=(4,) * 4)]])
CHIPLET_A_NODE = build([[NodeShape(chiplets=(4,))]] * 2, smt=2)
SMT = build([[NodeShape(chiplets=(4, 4))]], smt=2)
SCALES: dict[Literal["smoke", "small", "paper"], Scale] = {"smoke": Scale(sf=0.01, deployment_s=1)}


def run(product: bool = False, **axes: tuple[str, ...]) -> BenchRun:
    return BenchRun(engines=("spark",), axes=axes, product=product, scales=SCALES)


def test_words_are_numbers_of_the_machine() -> None:
    assert counts(MILAN) == Counts(nodes=2, chiplets=8, cores=32)
    assert counts(TWO_CORES) == Counts(nodes=1, chiplets=1, cores=2)
    have = Counts(nodes=2, chiplets=8, cores=24)
    assert have.numbers(("doubling",)) == ["1", "2", "4", "8", "16", "24"]
    assert have.numbers(("cores", "nodes", "chiplets", "1")) == ["1", "2", "8", "24"]
    assert have.numbers(("wim", "win")) == ["wim", "win"]


def test_what_is_missing_is_said_with_what_is_there() -> None:
    needs = Needs(nodes=2, chiplets=2, cores=4, threads_per_core=2)
    missing = unmet(needs, TWO_CORES)
    assert missing == [
        "it needs 2 NUMA nodes, and this machine has 1",
        "it needs 2 chiplets, and none are known here ('atoll measure' finds hidden ones)",
        "it needs 4 cores, and this machine has 2",
        "it needs 2 threads a core, and a core has 1 here",
    ]
    assert unmet(Needs(nodes=2, chiplets=8, cores=32), MILAN) == []
    assert unmet(Needs(threads_per_core=2), SMT) == []
    within = Needs(chiplets_per_node=2)
    assert unmet(within, MILAN) == []
    assert unmet(Needs(chiplets=2), CHIPLET_A_NODE) == []
    assert unmet(within, CHIPLET_A_NODE) == [
        "it needs 2 chiplets a NUMA node, and a node has 1 here"
    ]
    assert "none are known" in unmet(within, TWO_CORES)[0]


@pytest.mark.parametrize(
    "one", [one for one in experiments() if one.bench], ids=lambda one: one.name
)
def test_what_wicp_claims_means_nothing_where_wicp_is_win(one: Experiment) -> None:
    wicp = any(word in one.check.shape for word in ("wicp", "chiplets"))
    assert bool(unmet(one.needs, CHIPLET_A_NODE)) == wicp


def test_memory_limits_the_scale() -> None:
    assert "needs 9999 GiB" in too_large(Scale(sf=1, memory_gib=9999, deployment_s=1), MILAN)
    assert too_large(Scale(sf=1, deployment_s=1), MILAN) == ""


def test_values_that_the_machine_cannot_have_are_left_out_with_the_reason() -> None:
    can = possible(run(n=("2", "8", "99")), MILAN, [SPARK_TRAITS])
    assert can.grid.values("n") == ("2", "8")
    assert len(can.cannot) == 1 and can.cannot[0].startswith("n=99: spark: ")
    assert len(can.entrants) == 3


def test_what_coincides_is_one_deployment_with_all_names() -> None:
    can = possible(run(True, policy=("win", "wicp"), cores=("1", "2")), TWO_CORES, [SPARK_TRAITS])
    assert len(can.entrants) == 2
    assert any("win/cores=2" in line and line.endswith("the same as wim") for line in can.same)


def test_knobs_and_mallocs_that_cannot_be_had_are_not_varied() -> None:
    axes = {
        "malloc": ("system", "jemalloc"),
        "knob:numa-balancing": ("1", "0"),
        "knob:swappiness": ("1", "60"),
    }
    of_all = run(n=("1",)).model_copy(update={"axes": axes})
    found = possible(of_all, TWO_CORES, [SPARK_TRAITS], Can((), "only root"))
    assert [one.split(": ")[1] for one in found.cannot] == [
        "it cannot be loaded; 'atoll-exec --malloc jemalloc true' names its package",
        *2 * ("it means nothing with one memory node",),
        *2 * ("only root",),
    ]
    assert [one.name for one in found.grid.axes] == ["malloc"]
    assert len(possible(of_all, MILAN, [SPARK_TRAITS]).grid.axes) == 3


@pytest.mark.parametrize("experiment", experiments(), ids=lambda one: one.name)
def test_a_small_machine_gets_an_answer_to_every_experiment(experiment: Experiment) -> None:
    if unmet(experiment.needs, TWO_CORES):
        with pytest.raises(UsageError, match="means nothing on this machine: it needs"):
            require_meaning(experiment, TWO_CORES)
    elif experiment.bench:
        possible(experiment.bench, TWO_CORES, [SPARK_TRAITS])


@pytest.mark.parametrize("experiment", experiments(), ids=lambda one: one.name)
def test_a_large_machine_can_run_every_bench_of_one_machine(experiment: Experiment) -> None:
    large = build([[NodeShape(chiplets=(4,) * 4, memory_gib=512)] for _ in range(2)], smt=2)
    if experiment.bench:
        require_meaning(experiment, large)
        assert not possible(experiment.bench, large, [SPARK_TRAITS]).cannot
