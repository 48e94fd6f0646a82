"""Why an entrant is faster or slower than its baseline: operator by operator. Pure.

Operators of two plans are the same if they are of one kind and read the same tables, themselves or
below them, in the same query. So a join keeps its identity if the planner distributes it otherwise,
and a join order that differs shows as joins of other tables.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

from atoll.bench.results import Results
from atoll.schema.operators import Kind, Operator
from atoll.schema.results import QueryProfiled
from atoll.schema.summary import OperatorChange, PlanChange, Why

Profiles = Mapping[str, Sequence[Operator]]  # by query

MOST_SHARE = 0.8  # of the gain or loss, that the named operators hold
MOST = 8  # operators to name
NOTHING = "–"


def explanations(results: Results) -> tuple[Why, ...]:
    """For each entrant with a baseline of which the results contain profiles."""
    profiles: dict[str, dict[str, Sequence[Operator]]] = defaultdict(dict)
    queries = results.queries
    for line in results.lines:
        if isinstance(line, QueryProfiled) and line.profile and line.query in queries:
            profiles[line.label][line.query] = line.profile.operators
    found = []
    for entrant in results.header.entrants:
        before, after = profiles[entrant.baseline or ""], profiles[entrant.label]
        if both := [query for query in queries if query in before and query in after]:
            pair = [{query: side[query] for query in both} for side in (before, after)]
            found.append(explanation(entrant.label, entrant.baseline or "", *pair))
    return tuple(found)


def explanation(label: str, baseline: str, before: Profiles, after: Profiles) -> Why:
    """Of two profiles of the same queries."""
    return Why(
        label=label,
        baseline=baseline,
        queries=len(before),
        before_s=_whole(before),
        after_s=_whole(after),
        operators=holders(changes(before, after)),
        plan=plan_changes(before, after),
    )


def changes(before: Profiles, after: Profiles) -> list[OperatorChange]:
    """What became of every operator, the largest change first. The differences add up to the whole
    difference; the shares of those that became faster to 1, and of the others too."""
    sides = [_sums(profiles) for profiles in (before, after)]
    names = [_names(profiles) for profiles in (before, after)]
    times = {key: (sides[0][key], sides[1][key]) for key in sides[0].keys() | sides[1].keys()}
    gross = {
        is_gain: sum(abs(old - new) for old, new in times.values() if (new < old) == is_gain)
        for is_gain in (True, False)
    }
    found = [
        OperatorChange(
            query=key[0],
            operator=" → ".join(dict.fromkeys(side[key] for side in names if key in side)),
            tables=key[2],
            before_s=old,
            after_s=new,
            share=min(abs(old - new) / gross[new < old], 1.0) if old != new else 0.0,
        )
        for key, (old, new) in times.items()
    ]
    return sorted(found, key=lambda one: (-abs(one.after_s - one.before_s), _place(one)))


def holders(all_changes: Sequence[OperatorChange]) -> tuple[OperatorChange, ...]:
    """The fewest that hold MOST_SHARE of the gain or loss, at most MOST."""
    whole = sum(one.after_s - one.before_s for one in all_changes)
    same_way = [one for one in all_changes if (one.after_s - one.before_s) * whole > 0]
    sums = list(accumulate((one.share for one in same_way), initial=0.0))
    return tuple(one for one, held in zip(same_way, sums, strict=False) if held < MOST_SHARE)[:MOST]


def plan_changes(before: Profiles, after: Profiles) -> tuple[PlanChange, ...]:
    """Where the plans differ; what differs alike in several queries stands once."""
    queries: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for query in before:
        old, new = plan_facts(before[query]), plan_facts(after[query])
        for what in sorted(old.keys() | new.keys()):
            pair = old.get(what, NOTHING), new.get(what, NOTHING)
            if pair[0] != pair[1]:
                queries[(what, *pair)].append(query)
    return tuple(
        PlanChange(queries=tuple(found), what=what, before=old, after=new)
        for (what, old, new), found in queries.items()
    )


def plan_facts(operators: Iterable[Operator]) -> dict[str, str]:
    """What a planner decides: how each join is carried out, the exchanges, the number of tasks."""
    joins: dict[str, list[str]] = defaultdict(list)
    exchanges: Counter[str] = Counter()
    tasks = 0
    for one in operators:
        tasks = max(tasks, one.tasks or 0)
        if one.kind is Kind.JOIN:
            words = f"{one.operator} {one.join}".strip()
            how = ", ".join(filter(None, (words, one.distribution)))
            joins[f"join of {', '.join(one.tables)}"].append(how)
        elif one.kind is Kind.EXCHANGE:
            exchanges[one.distribution or "local"] += 1
    facts = {what: "; ".join(sorted(found)) for what, found in joins.items()}
    if exchanges:
        facts["exchanges"] = ", ".join(f"{n} {how}" for how, n in sorted(exchanges.items()))
    if tasks:
        facts["most tasks of an operator"] = str(tasks)
    return facts


_Key = tuple[str, Kind, tuple[str, ...]]


def _key(query: str, one: Operator) -> _Key:
    return query, one.kind, one.tables


def _sums(profiles: Profiles) -> defaultdict[_Key, float]:
    """Seconds of each operator; 0 of one that is not there."""
    each: defaultdict[_Key, list[float]] = defaultdict(list)
    for query, operators in profiles.items():
        for one in operators:
            each[_key(query, one)].append(one.own_s or 0.0)
    return defaultdict(float, {key: math.fsum(found) for key, found in each.items()})


def _names(profiles: Profiles) -> dict[_Key, str]:
    """The engine's name of each operator: of several, that of the one that took longest."""
    return {
        _key(query, one): one.operator
        for query, operators in profiles.items()
        for one in sorted(operators, key=lambda one: (one.own_s or 0, one.operator))
    }


def _whole(profiles: Profiles) -> float:
    return math.fsum(one.own_s or 0 for operators in profiles.values() for one in operators)


def _place(one: OperatorChange) -> tuple[str, str, tuple[str, ...]]:
    return one.query, one.operator, one.tables
