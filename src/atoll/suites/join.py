"""Two joins whose results nothing can be pruned from.

Both are of Fogli, Pietzuch and Makreshanski, "Towards NUMA-Aware Distributed Query Engines", V-C.

- q1: the synthetic join (Fig. 16) on `atoll.suites.join_data`.
- q2: lineitem and partsupp joined by columns that are no primary key of lineitem (Fig. 15), on
  TPC-H's tables at the same scale factor.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace

from atoll.engines.api import Progress
from atoll.errors import UsageError
from atoll.host.api import Host
from atoll.suites import join_data, tpch_data
from atoll.suites.answers import by_reference
from atoll.suites.base import Answer, DataSet
from atoll.suites.dialects import dialect_of

_TPCH_TABLES = ("lineitem", "partsupp")
_TEXTS = {
    # The sums keep an engine from leaving out the payloads.
    "q1": "select count(*), sum(a.payload), sum(b.payload) "
    f"from {join_data.SMALL} a, {join_data.LARGE} b where a.join_key = b.join_key",
    "q2": "select count(*) from lineitem, partsupp "
    "where l_partkey = ps_partkey and l_suppkey = ps_suppkey",
}


class Join:
    """See `atoll.suites.base.Suite`."""

    name = "join"
    tables = (*join_data.SCHEMAS, *_TPCH_TABLES)
    query_names = tuple(_TEXTS)

    def queries(self, engine: str) -> Mapping[str, str]:
        return dialect_of(engine, self.name).texts(_TEXTS)

    def ensure_data(self, scale_factor: float, *, host: Host, progress: Progress) -> DataSet:
        ours = join_data.ensure_data(scale_factor, host=host, progress=progress)
        tpch = tpch_data.ensure_data(scale_factor, host=host, progress=progress)
        theirs = tuple(table for table in tpch.tables if table.name in _TPCH_TABLES)
        both = hashlib.sha256(f"{ours.checksum} {tpch.checksum}".encode()).hexdigest()
        return replace(ours, tables=(*ours.tables, *theirs), checksum=both)

    def expected(self, query: str, data: DataSet) -> Answer:
        if query not in _TEXTS:
            raise UsageError(f"join has no query {query!r}; it has {', '.join(_TEXTS)}")
        return by_reference(_TEXTS[query], data)
