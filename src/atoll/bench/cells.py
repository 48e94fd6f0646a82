"""The cells of a grid: which value of each axis goes together, and what each is called. Pure.

The first cell is the baseline: WIM with every value that holds for all, except those that give WIM
a place (policy, n, memory, placement). Then one axis at a time is varied, or all together
(`Grid.product`). Where `n` has a value and no policy is named, the instances follow the chiplets
(olap-on-chiplets section 4.5.1: n instances, each on one chiplet and node where possible).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from atoll.bench.axes import ALL, Axis, Grid
from atoll.schema.plan import Policy

Values = Mapping[str, str]  # axis -> value; an axis that is absent has its default

PLAN = "plan"  # of a plan from a file: its label, in place of a policy's
_WIM = Policy.WIM.value
_OF_A_PLACE = ("n", "memory", "placement")


@dataclass(frozen=True, slots=True)
class Cell:
    label: str
    values: Values


def make_cells(engine: str, grid: Grid, plans: tuple[str, ...] = ()) -> list[Cell]:
    """The cells in order, the baseline first, no label twice.

    `plans`: labels of plan files; then their cells under all that the grid varies of a run.
    """
    base = baseline_of(grid)
    varied = list(grid.varied)
    if plans:
        varied = [Axis(PLAN, plans), *varied]
    elif grid.product:  # every condition has its baseline
        varied = [
            Axis(axis.name, tuple(dict.fromkeys((_WIM, *axis.values))))
            if axis.name == "policy"
            else axis
            for axis in varied
        ]
    if grid.product or plans:
        combined = [
            dict(zip((axis.name for axis in varied), values, strict=True))
            for values in product(*(axis.values for axis in varied))
        ]
    else:
        combined = [{}, *({axis.name: value} for axis in varied for value in axis.values)]
    cells: dict[str, Values] = {} if plans else {label_of(engine, base, base): base}
    names = [PLAN, *(axis.name for axis in grid.axes)]
    policies = any(axis.name == "policy" for axis in varied)
    for values in combined:
        both = {**grid.fixed, **values}
        if policies and "policy" not in values and "n" not in values:
            both.pop("n", None)  # of the policies; here another axis is varied, of WIM
        mine = _without_places({name: both[name] for name in names if name in both}, values)
        cells.setdefault(label_of(engine, mine, base), mine)
    return [Cell(label, values) for label, values in cells.items()]


def baseline_of(grid: Grid) -> Values:
    return {
        name: value for name, value in grid.fixed.items() if name not in ("policy", *_OF_A_PLACE)
    }


def policy_of(values: Values) -> str:
    return values.get("policy", Policy.WICP.value if "n" in values else _WIM)


def label_of(engine: str, values: Values, base: Values) -> str:
    """'ENGINE/n=8/memory=bind': the policy, and each value that differs from the baseline's."""
    parts = [values.get("policy", "" if "n" in values else _WIM)]
    if parts == [_WIM] and (values.get("cores", ALL) != ALL or values.get("smt") == "off"):
        parts = [f"{_WIM}, masked"]
    if PLAN in values:
        parts = [values[PLAN].removeprefix(f"{engine}/")]
    parts += [
        f"{name}={value}"
        for name, value in values.items()
        if name not in ("policy", "scheduler", PLAN) and base.get(name) != value
    ]
    # An engine's own scheduler has no name in a label.
    parts += ["atoll"] if values.get("scheduler") == "atoll" else []
    return "/".join([engine, *filter(None, parts)])


def baselines(values: Values, base: Values, own_scheduler: str | None) -> Iterator[Values]:
    """The cells whose time may be divided by this cell's; the first that is measured is.

    The same one under the engine's own scheduler; of that, WIM with all else equal, then WIM
    without a place.
    """
    if values.get("scheduler", own_scheduler) != own_scheduler and "scheduler" not in base:
        yield {name: value for name, value in values.items() if name != "scheduler"}
        return
    wim = {
        name: value
        for name, value in values.items()
        if name in base or name not in ("policy", "n", "scheduler", PLAN)
    }
    yield wim
    yield {name: value for name, value in wim.items() if name not in _OF_A_PLACE}


def _without_places(values: dict[str, str], chosen: Values) -> dict[str, str]:
    """WIM takes only what is varied of a place; what holds for all is not for it."""
    named = values.get("policy")
    if named == _WIM or (named is None and "n" not in values):
        return {
            name: value
            for name, value in values.items()
            if name not in _OF_A_PLACE or name in chosen
        }
    return values
