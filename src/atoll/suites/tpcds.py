"""TPC-DS: 99 queries over 24 tables, checked against DuckDB's answers on the same data.

The texts are those of DuckDB's tpcds extension, with the parameters that it chose. They order NULLs
as DuckDB does where they do not say: last. The extension's own answers are not used: they do not
belong to its data.
"""

from __future__ import annotations

from collections.abc import Mapping

from atoll.engines.api import Progress
from atoll.errors import UsageError
from atoll.host.api import Host
from atoll.suites import reference, tpcds_data
from atoll.suites.answers import by_reference
from atoll.suites.base import Answer, DataSet
from atoll.suites.dialects import dialect_of

QUERY_NAMES = tuple(f"q{number}" for number in range(1, 100))


class Tpcds:
    """See `atoll.suites.base.Suite`."""

    name = "tpcds"
    tables = tpcds_data.TABLES
    query_names = QUERY_NAMES

    def queries(self, engine: str) -> Mapping[str, str]:
        return dialect_of(engine, self.name).texts(reference.query_texts("tpcds"))

    def ensure_data(self, scale_factor: float, *, host: Host, progress: Progress) -> DataSet:
        return tpcds_data.ensure_data(scale_factor, host=host, progress=progress)

    def expected(self, query: str, data: DataSet) -> Answer:
        if query not in QUERY_NAMES:
            raise UsageError(f"tpcds has no query {query!r}; it has q1 to q99")
        return by_reference(reference.query_texts("tpcds")[query], data)
