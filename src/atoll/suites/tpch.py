"""TPC-H: data of tpchgen, queries and answers of the reference (`atoll.suites.reference`).

tpchgen makes the data of the specification's own generator (dbgen 3). The published answers, for
scale factors 0.01, 0.1 and 1, come from an older generator that differs only in the columns of
random text. So an answer is the published one with its text columns taken from the data. The
reference itself answers Q13, which counts by a word in o_comment, and all queries at other scale
factors, on the same data. Q11 uses the fraction 0.0001 at every scale factor, as the published
answers do (the specification says 0.0001 / SF).

The suite 'tpch:joins' has nested queries as joins where an engine's package says so in
tpch-joins.toml (numa-query-tuning, section IV-E), with the same data and answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from atoll.engines.api import Progress
from atoll.errors import UsageError
from atoll.host.api import Host
from atoll.suites import reference, tpch_data
from atoll.suites.answers import by_reference
from atoll.suites.base import Answer, DataSet
from atoll.suites.dialects import dialect_of
from atoll.suites.ordering import ordering_of

_RANDOM_TEXT = frozenset({"c_address", "c_comment", "s_address", "s_comment"})
_BY_RANDOM_TEXT = frozenset({"q13"})

JOINS = "tpch:joins"
QUERY_NAMES = tuple(f"q{number}" for number in range(1, 23))


class Tpch:
    """See `atoll.suites.base.Suite`."""

    tables = tpch_data.TABLES
    query_names = QUERY_NAMES

    def __init__(self, *, joins: bool = False) -> None:
        self._joins = joins

    @property
    def name(self) -> str:
        return JOINS if self._joins else "tpch"

    def queries(self, engine: str) -> Mapping[str, str]:
        texts = dialect_of(engine, "tpch").texts(reference.query_texts("tpch"))
        return dialect_of(engine, "tpch-joins").texts(texts) if self._joins else texts

    def ensure_data(self, scale_factor: float, *, host: Host, progress: Progress) -> DataSet:
        return tpch_data.ensure_data(scale_factor, host=host, progress=progress)

    def expected(self, query: str, data: DataSet) -> Answer:
        if query not in QUERY_NAMES:
            raise UsageError(f"tpch has no query {query!r}; it has q1 to q22")
        sql = reference.query_texts("tpch")[query]
        published = reference.published_answers(data.scale_factor).get(query)
        if published is None or query in _BY_RANDOM_TEXT:
            return by_reference(sql, data)
        columns, rows = published
        # At these scale factors no LIMIT cuts through rows of equal keys (a test checks it).
        order = ordering_of(sql, columns)[0]
        texts = [place for place, name in enumerate(columns) if name in _RANDOM_TEXT]
        if texts:
            rows = _with_texts(rows, texts, by_reference(sql, data).rows)
        return Answer(rows, order, as_text=True)


def _with_texts(
    rows: list[tuple[Any, ...]], texts: list[int], source: list[tuple[Any, ...]]
) -> list[tuple[Any, ...]]:
    """`rows` with the columns `texts` of `source`, row by row: these queries order all rows. If the
    numbers of rows differ, the comparison will find that."""
    if len(rows) != len(source):
        return rows
    return [
        tuple(other[place] if place in texts else row[place] for place in range(len(row)))
        for row, other in zip(rows, source, strict=True)
    ]
