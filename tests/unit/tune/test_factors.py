"""Which values mean something on which machine, and how a setting is made."""

from __future__ import annotations

import pytest

from atoll.advice.situation import Situation
from atoll.errors import UsageError
from atoll.tune.factors import FACTORS, Factor, Recipe, factors, line, recipe
from tests.parts import advice as parts
from tests.parts.advice import situation, subject
from tests.parts.faults import fails
from tests.parts.machines import milan, plain

SMT = plain(cores=4, smt=2)


def made(where: Situation, *names: str) -> dict[str, Factor]:
    return {one.name: one for one in factors(names or tuple(FACTORS), where)}


def words(where: Situation, **values: str) -> str:
    return recipe(tuple(sorted(values.items())), factors((), where), where).prefix


def test_on_one_node_there_are_no_memory_policies_and_it_is_said() -> None:
    found = made(situation(parts.ONE))
    for name in ("memory", "autonuma", "placement", "smt"):
        assert not found[name].values and found[name].why_none, name
    assert found["malloc"].values == ("jemalloc", "tbbmalloc")
    assert found["workers"].values == ("2", "1")


def test_on_several_nodes_all_mean_something() -> None:
    found = made(situation(parts.TWO))
    assert found["memory"].values == ("interleave:0-1",)
    assert found["autonuma"].values == ("0",)
    assert found["placement"].values == ("sparse", "dense")
    assert found["thp"].values == ("never",)
    confined = made(situation(parts.TWO, parts.on_node(parts.TWO, 1)))
    assert confined["memory"].values == ("interleave:0-1", "bind:1")


@pytest.mark.parametrize(
    ("where", "name"),
    [
        (situation(parts.TWO, subject(parts.TWO, preload=parts.NO_EFFECT)), "malloc"),
        (situation(parts.TWO, mallocs=()), "malloc"),
        (situation(parts.TWO, subject(parts.TWO, binding_fault="no OpenMP")), "placement"),
        (situation(parts.TWO, policy_fault="EPERM"), "memory"),
        (situation(parts.TWO, root=False), "autonuma"),
        (situation(parts.TWO, knobs_fault="/sys is read-only"), "autonuma"),
        (situation(parts.TWO, knobs=parts.without("numa-balancing")), "autonuma"),
        (situation(parts.TWO, knobs=parts.without("thp-enabled")), "thp"),
        (situation(parts.TWO, subject(parts.TWO, may_have_thp=False)), "thp"),
        (situation(parts.TWO, subject(parts.TWO, cpus=frozenset({0}))), "workers"),
    ],
)
def test_what_is_not_possible_here_has_its_reason(where: Situation, name: str) -> None:
    found = made(where, name)[name]
    assert not found.values and found.why_none


def test_switches_of_the_whole_system_are_turned_only_if_named() -> None:
    where = situation(parts.TWO, knobs=parts.KNOBS | {"thp-enabled": "madvise"})
    unnamed = {one.name: one for one in factors((), where)}
    assert not unnamed["autonuma"].values and "--factors" in unnamed["autonuma"].why_none
    assert not unnamed["thp"].values
    named = factors(("thp", "autonuma", "thp"), where)
    assert [one.values for one in named] == [("always",), ("0",)]
    made = recipe((("autonuma", "0"), ("thp", "always")), named, where)
    assert made.knobs == {"thp-enabled": "always", "numa-balancing": "0"}
    assert made.prefix == ""


def test_a_prefix_is_what_a_person_writes() -> None:
    where = situation(parts.TWO)
    assert words(where) == ""
    assert words(where, malloc="jemalloc", thp="never") == (
        "atoll-exec --malloc jemalloc --no-thp --"
    )
    assert words(where, memory="interleave:0-1") == "atoll-exec -i 0-1 --"
    assert words(where, placement="sparse") == "OMP_PLACES=cores OMP_PROC_BIND=spread"


def test_options_of_up_are_the_axes_of_a_plan_as_far_as_it_has_them() -> None:
    assert Recipe(axes={"malloc": "--smt on"}).options == "--malloc '--smt on'"
    assert Recipe(axes={"smt": "on", "thp": "never"}).options == "--thp never --smt"
    assert Recipe(axes={"smt": "off"}).options == ""  # without --smt, a plan sets no mask
    assert Recipe(axes={"cores": "2", "thp": "never"}).options == ""


def test_smt_and_workers_are_one_mask_chiplet_by_chiplet() -> None:
    where = situation(SMT)
    cores = [core.pus for core in SMT.cores]
    first = sorted(pus[0] for pus in cores)
    assert words(where, smt="off") == f"atoll-exec -C {spelled(first)} --"
    both = words(where, smt="off", workers="2")
    assert both == f"atoll-exec -C {spelled(sorted(pus[0] for pus in cores[:2]))} --"
    big = situation(milan(packages=1, chiplets=2, cores=4))
    chiplet = sorted(big.machine.chiplets[0].pus)
    assert words(big, workers="4") == f"atoll-exec -C {spelled(chiplet)} --"


def spelled(cpus: list[int]) -> str:
    from atoll.schema.cpulist import format_cpulist

    return format_cpulist(cpus)


def test_the_present_malloc_is_no_candidate_and_the_systems_is() -> None:
    where = situation(parts.TWO, subject(parts.TWO, malloc="jemalloc"))
    assert made(where)["malloc"].values == ("system", "tbbmalloc")


def test_an_unknown_factor_is_refused() -> None:
    with fails(UsageError, factor="cache"):
        factors(("malloc", "cache"), situation(parts.ONE))


def test_a_prefix_stands_behind_a_commands_own_atoll_exec() -> None:
    prefix = "atoll-exec --malloc jemalloc --"
    assert line(["./prog", "a b"], prefix) == f"{prefix} ./prog 'a b'"
    own = ["atoll-exec", "-C", "0", "--", "./prog"]
    assert line(own, prefix) == f"atoll-exec -C 0 -- {prefix} ./prog"
    assert line(own, "OMP_PLACES=cores") == "atoll-exec -C 0 -- env OMP_PLACES=cores ./prog"
