"""The deployment `packed`: the phases of query-plan-deployment-poster, one after the other. Pure.

In this order: a placement is possible, has few cores, few nodes, and few bytes over distance.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from math import ceil, inf
from typing import NamedTuple

from atoll.errors import UsageError
from atoll.operators.assignment import Traffic
from atoll.operators.cores import SEARCHED, Item, fewest, pack
from atoll.operators.loads import Core, Load, Room
from atoll.operators.mapping import Mapped, map_cores
from atoll.operators.nodes import fewest as fewest_nodes
from atoll.operators.reasons import bottlenecks, doubts, reason
from atoll.operators.room import Node, Place
from atoll.operators.subgraph import densest
from atoll.operators.together import on_fewer, together
from atoll.operators.units import SCALE, Operators, Unit
from atoll.schema.placement import Bound, PlacedUnit
from atoll.schema.size import gib, percent
from atoll.schema.text import plural

_ROUND = SCALE // 100_000  # rounded duties must not cost a core


class _Cores(NamedTuple):
    units: list[Unit]
    traffic: Traffic  # between the units
    of: list[list[int]]  # of each core its units
    fewest: int  # with fewer cores it cannot be done


class Packed(NamedTuple):
    units: list[PlacedUnit]
    bound: Bound
    warnings: list[str]


def packed(operators: Operators, room: Place, headroom: float) -> Packed:
    """Raises UsageError if an operator's activity is missing or the machine is too small."""
    operators.require_activity()
    _require_nodes(operators, room)
    capacity = round((1 - headroom) * SCALE) + _ROUND
    _require_cores(_least_cores(operators, capacity), "at least ", room, headroom)
    cores = _fewest_cores(operators, capacity, room)
    if any(unit.replicas > 1 for unit in cores.units):
        cores = cores._replace(fewest=_fewest_if_uneven(operators, cores.units, capacity))
    about = "" if cores.fewest == len(cores.of) else "about "
    _require_cores(len(cores.of), about, room, headroom)
    _require_fixed(_needs(cores, room), room)
    mapped = _mapped(cores, room)
    enough = len(cores.of)
    if found := _together(operators, cores, mapped, capacity, room):
        cores, mapped = found
    core_of = _core_of(cores)
    traffic = _between_cores(cores)
    warnings = [*doubts(operators, room), *bottlenecks(operators, cores.units, headroom)]
    if len(cores.of) > enough:
        warnings.append(
            f"{plural(enough, 'core')} would do for the duties; {len(cores.of)} are used so that "
            "no node moves more bytes than it can"
        )
    if not mapped.holds:
        warnings.append(_too_much_memory(cores.units, mapped.places, room))
    if mapped.subset and mapped.subset.most > mapped.subset.weight:
        share = percent(mapped.subset.weight / mapped.subset.most)
        warnings.append(
            "there are too many sets of nodes to try all: the links in the chosen one have at "
            f"least {share} of the best one's bandwidth"
        )
    cpus = [0] * len(cores.of)
    inside_of: list[list[int]] = [[] for _ in room.nodes]
    for core, place in enumerate(mapped.places):
        inside_of[place].append(core)
    traffic_of: list[dict[tuple[int, int], float]] = [{} for _ in room.nodes]
    for (a, b), carried in traffic.items():
        if mapped.places[a] == mapped.places[b]:
            traffic_of[mapped.places[a]][a, b] = carried
    for node, inside, near in zip(room.nodes, inside_of, traffic_of, strict=True):
        caches = [sum(cores.units[one].cache_bytes for one in cores.of[core]) for core in inside]
        if inside and not _give_cpus(cpus, inside, node, caches, near):
            warnings.append(
                f"what operators use again and again on node {node.os_index}, "
                f"{gib(int(sum(caches)))}, is more than its L3"
            )
    units = _placed(operators, cores, core_of, cpus, headroom)
    return Packed(units, _bound(operators, cores, room, headroom, mapped.holds), warnings)


# ---- Cores ----------------------------------------------------------------------------------


def _fewest_cores(operators: Operators, capacity: int, room: Place) -> _Cores:
    """Chains are packed as one. If their operators alone need fewer cores, or a fixed node has too
    few cores for the chains, they are cut; so only a bound for single operators is one."""
    whole = operators.units(operators.chains(capacity), capacity)
    best = _pack(operators, whole, capacity, room)
    holds = not list(_overfull(_needs(best, room), room))
    alone, rest = _apart(whole, capacity)
    if holds and len(best.of) == len(alone) - (-sum(whole[at].size for at in rest) // capacity):
        return best._replace(fewest=len(best.of))
    single = operators.units([[one] for one in range(len(operators.all))], capacity)
    if len(whole) == len(single):
        return best
    cut = _pack(operators, single, capacity, room)
    if holds and len(cut.of) >= len(best.of):
        return best._replace(fewest=cut.fewest)
    return _joined(operators, cut, capacity)


def _apart(units: Sequence[Unit], capacity: int) -> tuple[list[int], list[int]]:
    """The units that must be alone on a core; the others."""
    apart: tuple[list[int], list[int]] = ([], [])
    for at, unit in enumerate(units):
        apart[unit.size <= capacity].append(at)
    return apart


def _pack(operators: Operators, units: list[Unit], capacity: int, room: Place) -> _Cores:
    alone, rest = _apart(units, capacity)
    cores_of = {node.os_index: node.cores for node in room.nodes}
    for at in alone:
        if (node := units[at].node) is not None:
            cores_of[node] -= 1
    position = {unit: at for at, unit in enumerate(rest)}
    near: list[list[int]] = [[] for _ in rest]
    traffic = operators.traffic(units)
    for a, b in sorted(traffic, key=lambda pair: (-traffic[pair], pair)):
        if a in position and b in position:
            near[position[a]].append(position[b])
            near[position[b]].append(position[a])
    items = [Item(units[at].size, units[at].node) for at in rest]
    found = pack(items, capacity, cores_of, near)
    cores = [[at] for at in alone] + [[rest[at] for at in core] for core in found.cores]
    return _Cores(units, traffic, cores, len(alone) + found.fewest)


def _joined(operators: Operators, cores: _Cores, capacity: int) -> _Cores:
    """Single operators on the same core as the units that they can be."""
    core_of = {
        (unit.operators[0], unit.replica): at
        for at, core in enumerate(cores.of)
        for unit in (cores.units[one] for one in core)
    }
    divided = {unit.operators[0] for unit in cores.units if unit.replicas > 1}
    chains = operators.chains(
        capacity,
        lambda giver, taker: (
            not {giver, taker} & divided and core_of[giver, 0] == core_of[taker, 0]
        ),
    )
    units = operators.units(chains, capacity)
    of: list[list[int]] = [[] for _ in cores.of]
    for at, unit in enumerate(units):
        of[core_of[unit.operators[0], unit.replica]].append(at)
    return _Cores(units, operators.traffic(units), of, cores.fewest)


def _require_nodes(operators: Operators, room: Place) -> None:
    here = {node.os_index for node in room.nodes}
    for one in operators.all:
        if one.node is not None and one.node not in here:
            raise UsageError(
                f"operator {one.id} must be on node {one.node}, of which no core may be used here"
            )


def _least_cores(operators: Operators, capacity: int) -> int:
    """By the sum of the duties; before operators are divided into very many replicas."""
    total = sum(
        size if one.parallel else min(size, capacity)
        for one, size in zip(operators.all, operators.sizes, strict=True)
    )
    return -(-total // capacity)


def _fewest_if_uneven(operators: Operators, units: Sequence[Unit], capacity: int) -> int:
    """A bound that holds however the replicas of an operator share its input."""
    whole = [one for unit in units if unit.replicas == 1 for one in unit.operators]
    items = [Item(min(operators.sizes[one], capacity), operators.all[one].node) for one in whole]
    return max(_least_cores(operators, capacity), fewest(items, capacity))


def _require_cores(count: int, about: str, room: Place, headroom: float) -> None:
    missing = count - len(room.cpus)
    if missing > 0:
        raise UsageError(
            f"the operators need {about}{plural(count, 'core')} with "
            f"{percent(headroom)} of each free, and only {len(room.cpus)} may be used here: "
            f"{missing} too few"
        )


def _require_fixed(needs: Sequence[Load], room: Place) -> None:
    for node, fixed in _overfull(needs, room):
        missing = fixed - node.cores
        raise UsageError(
            f"operators whose data is on node {node.os_index} need {plural(fixed, 'core')} "
            f"there, and only {node.cores} may be used: {missing} too few"
        )


def _overfull(needs: Sequence[Load], room: Place) -> Iterator[tuple[Node, int]]:
    """The nodes that have fewer cores than must be there, with that number."""
    fixed = Counter(need.place for need in needs)
    for at, node in enumerate(room.nodes):
        if fixed[at] > node.cores:
            yield node, fixed[at]


def _needs(cores: _Cores, room: Place) -> list[Load]:
    return [_load([cores.units[one] for one in core], room) for core in cores.of]


def _load(units: Sequence[Unit], room: Place, size: int = 1) -> Load:
    nodes = [node.os_index for node in room.nodes]
    fixed = {unit.node for unit in units} - {None}
    return Load(
        sum(unit.memory_gbs or 0 for unit in units),
        next((nodes.index(node) for node in fixed if node is not None), None),
        size,
    )


def _core_of(cores: _Cores) -> list[int]:
    found = [0] * len(cores.units)
    for core, chosen in enumerate(cores.of):
        for one in chosen:
            found[one] = core
    return found


def _between_cores(cores: _Cores) -> Traffic:
    found: defaultdict[tuple[int, int], float] = defaultdict(float)
    core_of = _core_of(cores)
    for (a, b), carried in cores.traffic.items():
        one, other = core_of[a], core_of[b]
        if one != other:
            found[(one, other) if one < other else (other, one)] += carried
    return found


# ---- Nodes ----------------------------------------------------------------------------------


def _mapped(cores: _Cores, room: Place, held: Sequence[int] | None = None) -> Mapped:
    return map_cores(
        _needs(cores, room),
        [node.room for node in room.nodes],
        _between_cores(cores),
        room.weights,
        room.distances,
        [node.merit for node in room.nodes],
        held,
    )


def _together(
    operators: Operators, cores: _Cores, mapped: Mapped, capacity: int, room: Place
) -> tuple[_Cores, Mapped] | None:
    """Single operators on other cores: on as many or more, if the nodes lack the bandwidth; else on
    as many of fewer nodes, for few operators. None: no way was found."""
    if mapped.holds and len(operators.all) > SEARCHED:
        return None
    single = operators.units([[one] for one in range(len(operators.all))], capacity)
    loads = [_load([unit], room, min(unit.size, capacity)) for unit in single]
    rooms = [node.room for node in room.nodes]
    if mapped.holds:
        found = on_fewer(loads, capacity, rooms, len(cores.of), _sets(loads, cores, mapped, room))
    else:
        at = {(unit.operators[0], unit.replica): one for one, unit in enumerate(single)}
        packed = [
            Core(place, [at[one, unit.replica] for unit in units for one in unit.operators])
            for core, place in zip(cores.of, mapped.places, strict=True)
            for units in [[cores.units[one] for one in core]]
        ]
        found = together(loads, capacity, rooms, packed)
    if found is None:
        return None
    of = [core.units for core in found]
    joined = _joined(operators, _Cores(single, {}, of, cores.fewest), capacity)
    return joined, _mapped(joined, room, [core.place for core in found])


def _sets(
    loads: Sequence[Load], cores: _Cores, mapped: Mapped, room: Place
) -> Iterator[tuple[int, ...]]:
    """Sets of fewer nodes than are used, the smallest and the densest first."""
    fixed = frozenset(load.place for load in loads if load.place is not None)
    rooms = [node.room for node in room.nodes]
    least = fewest_nodes(rooms, len(cores.of), sum(load.amount for load in loads))
    for size in range(max(least, len(fixed)), len({*mapped.places})):
        for subset in densest(room.weights, size, fixed, [node.merit for node in room.nodes]):
            yield subset.places


# ---- Inside a node --------------------------------------------------------------------------


def _give_cpus(
    cpus: list[int], inside: list[int], node: Node, caches: Sequence[float], traffic: Traffic
) -> bool:
    """Sets the CPUs of these cores: the fewest chiplets whose L3s hold what the cores use again and
    again. False: no chiplets do."""
    rank = {core: at for at, core in enumerate(inside)}
    between = {(rank[a], rank[b]): carried for (a, b), carried in traffic.items()}
    chiplets = range(len(node.chiplets))
    apart = [[float(a != b) for b in chiplets] for a in chiplets]
    mapped = map_cores(
        [Load(cache_bytes) for cache_bytes in caches],
        [Room(len(one.cpus), one.l3_bytes) for one in node.chiplets],
        between,
        apart,
        apart,
        [one.l3_bytes if one.l3_bytes < inf else 0 for one in node.chiplets],
    )
    free = [list(one.cpus) for one in node.chiplets]
    for core, place in zip(inside, mapped.places, strict=True):
        cpus[core] = free[place].pop(0)
    return mapped.holds


# ---- The result -----------------------------------------------------------------------------


def _placed(
    operators: Operators,
    cores: _Cores,
    core_of: Sequence[int],
    cpus: Sequence[int],
    headroom: float,
) -> list[PlacedUnit]:
    dearest: dict[int, tuple[float, str]] = {}
    for (a, b), carried in cores.traffic.items():
        if core_of[a] == core_of[b]:
            for one, other in ((a, b), (b, a)):
                name = operators.all[cores.units[other].operators[0]].id
                dearest[one] = max(dearest.get(one, (0.0, "")), (carried, name))
    loads = [sum(cores.units[one].duty for one in core) for core in cores.of]
    return [
        PlacedUnit(
            operators=tuple(operators.all[one].id for one in unit.operators),
            replica=unit.replica,
            replicas=unit.replicas,
            cpu=cpus[core_of[at]],
            duty=unit.duty,
            peak=unit.peak,
            memory_gbs=unit.memory_gbs,
            reason=reason(unit, loads[core_of[at]], dearest.get(at), headroom),
        )
        for at, unit in enumerate(cores.units)
    ]


def _too_much_memory(units: Sequence[Unit], places: Sequence[int], room: Place) -> str:
    moved = sum(unit.memory_gbs or 0 for unit in units)
    usable = sum(node.room.amount for node in room.nodes)
    why = "more than the nodes may be used for"
    if moved <= usable:
        why = f"and no way was found to divide them among nodes that may be used for {usable:.1f}"
    spread = ", and the cores are spread over nodes" if len({*places}) > 1 else ""
    return f"the operators move {moved:.1f} GB/s, {why}: memory is the bottleneck{spread}"


def _bound(operators: Operators, cores: _Cores, room: Place, headroom: float, holds: bool) -> Bound:
    """`holds`: whether the nodes have the memory bandwidth; if not, no number of them is enough."""
    fixed = {one.node for one in operators.all} - {None}
    memory_gbs = sum(unit.memory_gbs or 0 for unit in cores.units) if holds else 0
    nodes = fewest_nodes([node.room for node in room.nodes], cores.fewest, memory_gbs)
    total = sum(min(unit.duty, 1) for unit in cores.units)  # one above has no more than its core
    words = f"the operators keep {total:.2f} cores busy, and {percent(1 - headroom)} of each may be"
    if cores.fewest > ceil(total / (1 - headroom)):
        words += ", and their shares do not fit into fewer"
    return Bound(
        cores=cores.fewest,
        nodes=max(nodes, len(fixed)),
        reason=words,
    )
