"""Chiplets that the user gives: accepted forms, refused forms, and the resulting machine."""

from __future__ import annotations

import pytest

from atoll.errors import UsageError
from atoll.plan import make_plan
from atoll.plan.chiplets import assign_chiplets, parse_chiplets
from atoll.plan.identity import machine_id
from atoll.schema.machine import ChipletSource, L3Domain, Machine
from atoll.supervise.place import refuse_foreign
from tests.parts.faults import fails
from tests.parts.machines import GIB, NodeShape, build, milan, plain, restrict
from tests.parts.plan import DISTRIBUTED


def assign(machine: Machine, text: str) -> Machine:
    return assign_chiplets(machine, parse_chiplets(text, machine), ChipletSource.USER)


def test_sets_take_the_siblings_along() -> None:
    machine = assign(plain(8, smt=2), "0-3;4-7")
    assert [chiplet.pus for chiplet in machine.chiplets] == [
        (0, 1, 2, 3, 8, 9, 10, 11),
        (4, 5, 6, 7, 12, 13, 14, 15),
    ]
    assert {chiplet.source for chiplet in machine.chiplets} == {ChipletSource.USER}
    assert machine.summary.chiplets == 2


def test_a_size_cuts_neighbours_within_each_node() -> None:
    machine = assign(plain(28, nodes=2), "cores=14")
    assert [chiplet.cores for chiplet in machine.chiplets] == [
        tuple(range(start, start + 14)) for start in range(0, 56, 14)
    ]
    assert [chiplet.node for chiplet in machine.chiplets] == [0, 0, 1, 1]
    assert len(make_plan(machine, DISTRIBUTED, "auto").slots) == 4


def test_the_users_word_replaces_what_the_topology_showed() -> None:
    machine = assign(milan(1, 4, 4), "0-7;8-15")
    assert [chiplet.l3_bytes for chiplet in machine.chiplets] == [64 << 20, 64 << 20]
    assert make_plan(machine, DISTRIBUTED, "wicp").slots[0].cores == 8


def test_an_l3_that_chiplets_share_belongs_to_none() -> None:
    machine = plain(8)
    shared = machine.model_copy(
        update={"l3": (L3Domain(index=0, size_bytes=GIB, pus=machine.pus),)}
    )
    assert [chiplet.l3_bytes for chiplet in assign(shared, "0-3;4-7").chiplets] == [0, 0]


def test_sets_may_leave_cores_out_and_come_in_any_order() -> None:
    machine = assign(plain(8), "5,4;0-1")
    assert [chiplet.pus for chiplet in machine.chiplets] == [(0, 1), (4, 5)]
    assert [slot.cpus for slot in make_plan(machine, DISTRIBUTED, "wicp").slots] == [
        (0, 1),
        (2, 3, 6, 7),
        (4, 5),
    ]


def test_a_chiplet_over_two_nodes_has_none_of_its_own() -> None:
    machine = assign(build([[NodeShape((), 4), NodeShape((), 4), NodeShape((), 4)]]), "2-5;6-9")
    assert [chiplet.node for chiplet in machine.chiplets] == [None, None]
    mixed = make_plan(machine, DISTRIBUTED, "wicp-mixed")
    assert sum(slot.cores for slot in mixed.slots) == 12


def test_only_chiplets_with_an_allowed_cpu_are_counted() -> None:
    machine = assign(restrict(plain(8), pus=(0, 1)), "0-3;4-7")
    assert machine.summary.chiplets == 1
    assert len(make_plan(machine, DISTRIBUTED, "wicp").slots) == 1


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("", {"text": "''"}),
        ("0-3;", {"text": "'0-3;'"}),
        ("0-3;x", {"set": "'x'"}),
        ("3-0", {"set": "'3-0'"}),
        ("0-99999999999", {"set": "'0-99999999999'"}),
        ("cores=", {"text": "--chiplets cores=:"}),
        ("cores=x", {"text": "--chiplets cores=x:"}),
        ("cores=-2", {"text": "--chiplets cores=-2:"}),
        ("cores=²", {"text": "--chiplets cores=²:"}),
        ("l3=4", {"text": "--chiplets l3=4:"}),
        ("cores=1", {"size": "cores=1"}),
        ("cores=0", {"size": "cores=0"}),
        ("cores=3", {"size": 3, "cores": "8 cores"}),
        ("cores=99", {"size": 99, "cores": "8 cores"}),
        ("cores=8", {"cores": 8}),
        ("0-3;3-7", {"cpus": "3-7", "taken": "3,11"}),
        ("0-1,8;9,2", {"cpus": "2,9", "taken": "1,9"}),
        ("0;1", {"chiplet": "chiplet 0"}),
        ("0,8", {"chiplet": "chiplet 0,8"}),
        ("0-7", {"cores": 8}),
        ("0-3;40-41", {"cpus": "40-41"}),
    ],
)
def test_nonsense_is_refused_in_one_line(text: str, fields: dict[str, object]) -> None:
    with fails(UsageError, **fields):
        assign(plain(8, smt=2), text)


def test_a_chiplet_over_two_packages_is_refused() -> None:
    with fails(UsageError, cpus="6-9", packages="0-1"):
        assign(plain(8, nodes=2), "6-9")


def test_chiplets_that_are_named_make_no_other_machine() -> None:
    """A plan over them can be brought up where the system goes on hiding them."""
    machine = plain(8)
    named = assign(machine, "0-3;4-7")
    assert named.machine_id == machine.machine_id
    plan = make_plan(named, DISTRIBUTED, "wicp")
    refuse_foreign(plan, machine)
    other = milan(1, 2, 4)
    with fails(UsageError, theirs=plan.machine_id, ours=machine_id(other), command="atoll plan"):
        refuse_foreign(plan, other)
