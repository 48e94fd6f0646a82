"""Why a placement is as it is, in words. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from atoll.operators.room import Place
from atoll.operators.units import Operators, Unit
from atoll.schema.operator_graph import Source
from atoll.schema.size import decimal_size, percent
from atoll.schema.text import first_of, plural


def reason(unit: Unit, load: float, dearest: tuple[float, str] | None, headroom: float) -> str:
    """Of the core that a unit got. `load`: of all units on it; `dearest`: the operator there with
    which it exchanges most, and how many bytes/s."""
    words = []
    if unit.replicas > 1:
        words.append(f"replica {unit.replica + 1} of {unit.replicas}")
    if unit.node is not None:
        words.append(f"its data is on node {unit.node}")
    if unit.duty > 1 - headroom + 1e-5:
        words.append("alone, as it needs more than a core's share")
    elif dearest is not None:
        words.append(f"beside {dearest[1]}, {decimal_size(int(dearest[0]))}/s between them")
    elif load > unit.duty:
        words.append(f"fits: {percent(load)} of the core in all")
    else:
        words.append("alone: no other unit was left for it")
    return "; ".join(words)


def bottlenecks(operators: Operators, units: Sequence[Unit], headroom: float) -> Iterator[str]:
    for unit in units:
        duty = unit.duty
        name = operators.all[unit.operators[0]].id
        if duty > 1:
            yield bottleneck(name, duty)
        elif duty > 1 - headroom + 1e-5:
            yield f"{name} takes {percent(duty)} of its core, which leaves less than the headroom"


def bottleneck(name: str, duty: float) -> str:
    """A line about an operator that needs more than one core."""
    return (
        f"bottleneck: {name} needs {duty:.2f} cores and cannot be divided, so its rate is not "
        "reached"
    )


def doubts(operators: Operators, room: Place) -> Iterator[str]:
    """What the figures leave open."""
    known = [one for one in operators.all if one.activity and one.activity.memory_gbs]
    if not known:
        yield (
            "no operator says how much memory bandwidth it uses, so only the number of cores "
            "counts in a node"
        )
    elif unmeasured := [node.os_index for node in room.nodes if node.memory_gbs is None]:
        nodes = first_of([f"node {node}" for node in unmeasured], 3)
        yield (
            f"the memory bandwidth of {nodes} was not measured, so only the number of cores counts "
            "there; 'atoll measure' measures it"
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
