"""What an axis may be, and that the short options are axes too."""

from __future__ import annotations

import pytest

from atoll.bench.axes import KINDS, Axis, axes_of, chosen, make_axis, make_grid, parse_axis
from atoll.errors import UsageError
from atoll.plan.coordinator import CoordinatorChoice
from atoll.plan.request import Choices
from atoll.schema.plan import CoordinatorKind, HugePages, Malloc, MemoryPolicy, Placement
from tests.parts.faults import fails


@pytest.mark.parametrize(
    ("text", "axis"),
    [
        ("memory=bind,interleave", Axis("memory", ("bind", "interleave"))),
        ("n=1, 2,08,2", Axis("n", ("1", "2", "8"))),
        ("cores=1,all", Axis("cores", ("1", "all"))),
        ("policy=wim,auto", Axis("policy", ("wim", "auto"))),
        ("coordinator=shared,reserved:2", Axis("coordinator", ("shared", "reserved:2"))),
        ("streams=4,02", Axis("streams", ("4", "2"))),
        ("scheduler=duckdb,atoll", Axis("scheduler", ("duckdb", "atoll"))),
        ("smt=on", Axis("smt", ("on",))),
        ("knob:swappiness=10,60", Axis("knob:swappiness", ("10", "60"))),
        ("knob:irq-affinity=24=0-3,8;24=4", Axis("knob:irq-affinity", ("24=0-3,8", "24=4"))),
    ],
)
def test_an_axis_of_the_command_line(text: str, axis: Axis) -> None:
    assert parse_axis(text) == axis


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("memory", {"text": "memory"}),
        ("memory=", {"option": "--axis memory"}),
        ("mem=bind", {"option": "--axis mem"}),
        ("memory=bond", {"option": "--axis memory", "value": "bond", "name": "memory"}),
        ("n=0", {"option": "--axis n", "value": "0", "name": "n"}),
        ("n=9999999", {"option": "--axis n", "value": "9999999", "name": "n"}),
        ("cores=-1", {"option": "--axis cores", "value": "-1", "name": "cores"}),
        ("streams=two", {"option": "--axis streams", "value": "two", "name": "streams"}),
        ("smt=yes", {"option": "--axis smt", "value": "yes", "name": "smt"}),
        ("knob:nonsense=1", {"knob": "nonsense"}),
    ],
)
def test_what_is_no_axis(text: str, fields: dict[str, str]) -> None:
    with fails(UsageError, **fields):
        parse_axis(text)


def test_a_coordinator_that_does_not_exist() -> None:
    with pytest.raises(UsageError, match="reserved:K"):
        parse_axis("coordinator=reserved")


def test_an_axis_stands_once_whatever_its_spelling() -> None:
    axis = make_axis("memory", ["bind"], option="--memory")
    with fails(UsageError, name="memory"):
        make_grid([axis, parse_axis("memory=bind,local")])


def test_axes_have_one_order() -> None:
    grid = make_grid(
        [Axis("knob:swappiness", ("1",)), Axis("streams", ("2",)), Axis("policy", ("win",))]
    )
    assert [axis.name for axis in grid.axes] == ["policy", "streams", "knob:swappiness"]


def test_the_options_of_a_plan_are_axes_of_one_value() -> None:
    choices = Choices(
        count=4,
        memory=MemoryPolicy.BIND,
        placement=Placement.DENSE,
        smt=True,
        coordinator=CoordinatorChoice(CoordinatorKind.RESERVED, 2),
        malloc=Malloc.JEMALLOC,
        thp=HugePages.NEVER,
        reserve_cores=1,
        heap_bytes=7,
    )
    axes, rest = axes_of(choices)
    assert rest == {"reserve_cores": 1, "heap_bytes": 7}
    fixed = make_grid(axes).fixed
    assert {**chosen(fixed), **rest} == choices
    assert set(fixed) <= set(KINDS)
    shared = Choices(coordinator=CoordinatorChoice(CoordinatorKind.SHARED))
    assert chosen(make_grid(axes_of(shared)[0]).fixed) == shared
