"""Why a placement is as it is, in words. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from atoll.operators.room import Place
from atoll.operators.units import Operators, Unit
from atoll.schema.operator_graph import Source
from atoll.schema.size import decimal_size, percent
from atoll.schema.text import first_of, plural


def reason(
    operators: Operators,
    units: Sequence[Unit],
    at: int,
    core: Sequence[int],
    near: Mapping[int, float],
    headroom: float,
) -> str:
    """Of the core that a unit got. `core`: all units on it; `near`: bytes/s to other units."""
    unit = units[at]
    beside = [other for other in core if other != at]
    words = []
    if unit.replicas > 1:
        words.append(f"replica {unit.replica + 1} of {unit.replicas}")
    node = operators.node_of(unit)
    if node is not None:
        words.append(f"its data is on node {node}")
    dearest = max(beside, key=lambda other: near.get(other, 0), default=None)
    if operators.duty(unit) > 1 - headroom + 1e-5:
        words.append("alone, as it needs more than a core's share")
    elif dearest is None:
        words.append("no other unit is left for this core")
    elif carried := near.get(dearest, 0):
        name = operators.all[units[dearest].operators[0]].id
        words.append(f"beside {name}, {decimal_size(int(carried))}/s between them")
    else:
        load = sum(operators.duty(units[other]) for other in core)
        words.append(f"fits: {percent(load)} of the core in all")
    return "; ".join(words)


def bottlenecks(operators: Operators, units: Sequence[Unit], headroom: float) -> Iterator[str]:
    for unit in units:
        duty = operators.duty(unit)
        name = operators.all[unit.operators[0]].id
        if duty > 1:
            yield (
                f"bottleneck: {name} needs {duty:.2f} cores and cannot be divided, so its rate is "
                "not reached"
            )
        elif duty > 1 - headroom + 1e-5:
            yield f"{name} takes {percent(duty)} of its core, which leaves less than the headroom"


def doubts(operators: Operators, room: Place) -> Iterator[str]:
    """What the figures leave open."""
    known = [one for one in operators.all if one.activity and one.activity.memory_gbs]
    if not known:
        yield "no operator says how much memory bandwidth it uses, so nodes hold cores by number"
    elif unmeasured := [node.os_index for node in room.nodes if node.memory_gbs is None]:
        nodes = first_of([str(node) for node in unmeasured], 5)
        yield (
            f"the memory bandwidth of node {nodes} was not measured, so nodes hold cores by "
            "number; 'atoll measure' measures it"
        )
    elif len(known) < len(operators.all):
        silent = [one.id for one in operators.all if one.activity and not one.activity.memory_gbs]
        yield f"memory bandwidth is counted as 0 where it is not known: {first_of(silent, 5)}"
    guessed = [
        one.id
        for one in operators.all
        if one.activity and one.activity.duty.source is Source.ESTIMATED
    ]
    if guessed:
        yield f"the duty of {plural(len(guessed), 'operator')} is an estimate, and so is the plan"
