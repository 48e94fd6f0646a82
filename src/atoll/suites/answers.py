"""The right answer to a query, by the reference."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Sequence
from typing import Any

from atoll.engines.facts import STANDARD_SQL
from atoll.suites import reference
from atoll.suites.base import Answer, DataSet
from atoll.suites.compare import FLOAT_TOLERANCE
from atoll.suites.folder import bare
from atoll.suites.ordering import Key, Outline, hidden_keys, outline_of, with_keys


def by_reference(sql: str, data: DataSet) -> Answer:
    """DuckDB's answer. Raises DuckDB's errors.

    The reference is asked for one row more than the LIMIT, which shows whether the LIMIT cuts
    through rows of equal keys. It also returns the keys that are no columns of the result.
    """
    outline = outline_of(bare(sql, STANDARD_SQL))
    limit = outline.limit
    columns, rows, hidden = _ask(sql, outline, data)
    width = len(columns) - len(hidden)
    order: list[int] = []  # the columns of the result among the keys
    keys: list[int] = []  # the columns that hold the keys
    for key in outline.keys:
        place = key.column(columns[:width])
        if key in hidden:
            keys.append(width + hidden.index(key))
            if place is None or any(row[place] != row[keys[-1]] for row in rows):
                continue
        elif place is None:
            break  # from here on the result does not show the order
        else:
            keys.append(place)
        order.append(place)
    edges = [
        not all(_same(before[key], after[key]) for key in keys)
        for before, after in itertools.pairwise(rows)
    ]
    kept = [row[:width] for row in rows[:limit]]
    is_cut = limit is not None and 0 < limit < len(rows) and not edges[limit - 1]
    ties = tuple(itertools.accumulate(edges[: len(kept) - 1], initial=0)) if hidden and kept else ()
    return Answer(kept, tuple(order), open_end=is_cut, ties=ties)


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=FLOAT_TOLERANCE)
    return bool(one == other)


def _ask(
    sql: str, outline: Outline, data: DataSet
) -> tuple[Sequence[str], list[tuple[Any, ...]], list[Key]]:
    """(columns, rows, the keys that are the last columns of each row)."""
    limit = None if outline.limit is None else outline.limit + 1
    if outline.columns is not None and any(not key.name.isdecimal() for key in outline.keys):
        described = reference.run(f"describe {sql}", data.files)[1]
        hidden = hidden_keys(outline, [name for name, *_ in described])
        # DuckDB refuses what sorts but is no column (ORDER BY ALL); then the others must do.
        with contextlib.suppress(Exception):
            return *reference.run(with_keys(sql, outline, hidden, limit), data.files), hidden
    return *reference.run(with_keys(sql, outline, (), limit), data.files), []
