"""TPC-H: data by tpchgen, queries and answers by DuckDB's tpch extension.

Answers are published for scale factors 0.01, 0.1 and 1; for others DuckDB's own answer on the
same data is the reference. Q11 takes the fraction 0.0001 at every scale factor, as those
answers do (the specification says 0.0001 / SF).
"""

from __future__ import annotations

from collections.abc import Mapping

from atoll.errors import UsageError
from atoll.suites import reference, tpch_data
from atoll.suites.base import Answer, DataSet, Progress
from atoll.suites.dialects import in_dialect
from atoll.suites.ordering import ordering_of, with_limit

QUERY_NAMES = tuple(f"q{number}" for number in range(1, 23))


class Tpch:
    """See `atoll.suites.base.Suite`."""

    name = "tpch"
    tables = tpch_data.TABLES
    query_names = QUERY_NAMES

    def queries(self, engine: str) -> Mapping[str, str]:
        return in_dialect(reference.query_texts(), engine)

    def ensure_data(self, scale_factor: float, *, progress: Progress) -> DataSet:
        return tpch_data.ensure_data(scale_factor, progress=progress)

    def expected(self, query: str, data: DataSet) -> Answer:
        if query not in QUERY_NAMES:
            raise UsageError(f"tpch has no query {query!r}; it has q1 to q22")
        sql = reference.query_texts()[query]
        published = reference.published_answers(data.scale_factor).get(query)
        if published is None:
            return _by_duckdb(sql, data)
        columns, rows = published
        # At these scale factors no LIMIT cuts through rows of equal keys (a test holds it).
        return Answer(rows, ordering_of(sql, columns)[0], as_text=True)


def _by_duckdb(sql: str, data: DataSet) -> Answer:
    limit = ordering_of(sql, ())[1]
    # One row more than asked for shows whether the LIMIT cuts through rows of equal keys.
    asked = sql if limit is None else with_limit(sql, limit + 1)
    columns, rows = reference.run(asked, data.files)
    order = ordering_of(sql, columns)[0]
    if limit is None or len(rows) <= limit:
        return Answer(rows, order)
    last, beyond = rows[limit - 1], rows[limit]
    return Answer(rows[:limit], order, open_end=all(last[key] == beyond[key] for key in order))
