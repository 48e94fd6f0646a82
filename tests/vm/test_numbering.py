"""CPU numbers without order: SMT siblings anywhere, packages in turn, holes where CPUs are
offline. Topology, plans and landing hold all the same.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from atoll.guest import topology
from atoll.guest.guest import Guest
from tests.vm import expected
from tests.vm.landing import plan_faults
from tests.vm.proof import ask, case, judge, landing_steps, online, product, proof, weights

SCRAMBLED = str(Path(__file__).parent / "numbering/scrambled.toml")
# Half of chiplet 0, the whole of chiplet 3, half of chiplet 6 of milan2.
HOLES = (1, 6, 7, 12)


def test_the_scrambled_machine_has_no_order() -> None:
    layout = expected.layout(topology.load(SCRAMBLED))
    apart = {max(core) - min(core) for core in layout.cores if len(core) == 2}
    assert len(apart) >= 4  # no 'sibling at +1' or '+N/2' comes out right
    packages = [layout.package_of[cpu] for cpu in layout.cpus]
    assert packages != sorted(packages)
    assert set(range(max(layout.cpus))) - set(layout.cpus)
    assert any(len(core) == 1 for core in layout.cores)  # a sibling is offline


@pytest.mark.parametrize("guest", [SCRAMBLED], indirect=True, ids=["scrambled"])
def test_scrambled_numbers_do_not_matter(guest: Guest) -> None:
    found = proof(guest)
    layout = found.layout
    assert sorted(tuple(core["pus"]) for core in found.topo["cores"]) == sorted(layout.cores)
    assert {frozenset(chiplet["pus"]) for chiplet in found.topo["chiplets"]} == set(layout.chiplets)
    assert found.topo["offline_cpus"] == sorted(guest.topology.offline)
    for core in found.topo["cores"]:
        assert {layout.node_of[pu] for pu in core["pus"]} == {core["node"]}
    for answer in found.plans:
        asked = answer["case"]
        faults = plan_faults(
            answer["plan"], layout, asked["policy"], asked["memory"], smt=asked["smt"]
        )
        assert not faults, asked
    for one in found.landed:
        assert not one.plan_faults, one.case
        assert not one.verdict.faults, (one.case, one.verdict.faults[:10])
        assert one.verdict.threads >= one.plan["total_threads"]


@pytest.mark.parametrize("guest", ["milan2"], indirect=True)
def test_holes_in_the_numbers(guest: Guest) -> None:
    layout = expected.layout(replace(guest.topology, offline=HOLES))
    shares = weights(layout)
    cases = [case("wicp"), case("wicp-mixed", "local"), case("spmwin"), case("wim", "interleave")]
    answers = ask(
        guest,
        [
            *(online(cpu, on=False) for cpu in HOLES),
            ("run", ["cat", "/sys/devices/system/cpu/online"]),
            ("plans", product(layout)),
            *landing_steps(cases, shares),
            *(online(cpu, on=True) for cpu in HOLES),
        ],
    )
    seen, plans, _, _, landed = answers[len(HOLES) : len(HOLES) + 5]
    assert seen[1] == "0,2-5,8-11,13-15\n"
    assert list(map(sorted, layout.chiplets)) == [[2, 3], [4, 5], [8, 9], [10, 11], [14, 15]]
    for answer in plans:
        asked = answer["case"]
        faults = plan_faults(
            answer["plan"], layout, asked["policy"], asked["memory"], smt=asked["smt"]
        )
        assert not faults, asked
    for one in judge(landed, layout, shares):
        assert not one.plan_faults, one.case
        assert not one.verdict.faults, (one.case, one.verdict.faults[:10])
