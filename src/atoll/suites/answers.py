"""The right answer to a query, by the reference."""

from __future__ import annotations

from collections.abc import Sequence

from atoll.suites import reference
from atoll.suites.base import Answer, DataSet
from atoll.suites.ordering import ordering_of, with_limit


def by_reference(sql: str, data: DataSet, keys: Sequence[str] = ()) -> Answer:
    """DuckDB's answer. `keys`: what the ORDER BY sorts by, in terms of the result's columns, if
    it is more than columns."""
    limit = ordering_of(sql, ())[1]
    # One more row shows whether the LIMIT cuts through rows of equal keys.
    asked = sql if limit is None else with_limit(sql, limit + 1)
    columns, rows = reference.run(asked, data.files)
    order = ordering_of(sql, columns)[0]
    if keys:
        # DuckDB keeps the order of a subquery that has an ORDER BY.
        _, ranks = reference.run(f"select {', '.join(keys)} from ({asked})", data.files)
    else:
        ranks = [tuple(row[place] for place in order) for row in rows]
    is_cut = limit is not None and len(rows) > limit and ranks[limit - 1] == ranks[limit]
    ties = tuple(map(ranks.index, ranks[:limit])) if keys else ()
    return Answer(rows[:limit], order, open_end=is_cut, ties=ties)
