"""How an engine's SQL differs from the texts of a suite: a table of rewrites, checked. Pure.

A rewrite whose left side is no longer found is an error and not silently skipped: then the
texts have changed, and the table must be looked at again.
"""

from __future__ import annotations

from collections.abc import Mapping

from atoll.errors import EngineFailed

Rewrites = Mapping[str, tuple[tuple[str, str], ...]]  # query -> (what is written, what to write)

# Standard SQL does not know the select list's names in `group by`; Trino and Presto hold to it.
_GROUPED_BY_COLUMN: Rewrites = {
    "q15": (("GROUP BY\n        supplier_no", "GROUP BY\n        l_suppkey"),),
}

# Spark 4, DuckDB and PostgreSQL take all 22 texts of DuckDB's tpch extension as they are.
TPCH: Mapping[str, Rewrites] = {
    "duckdb": {},
    "spark": {},
    "postgresql": {},
    "trino": _GROUPED_BY_COLUMN,
    "presto": _GROUPED_BY_COLUMN,
    "mariadb": {
        # It names the columns of a derived table inside it only.
        "q13": (
            ("count(o_orderkey)", "count(o_orderkey) AS c_count"),
            (" AS c_orders (c_custkey,\n        c_count)", " AS c_orders"),
        ),
    },
}


def in_dialect(
    texts: Mapping[str, str], engine: str, table: Mapping[str, Rewrites] = TPCH
) -> dict[str, str]:
    """The texts with the engine's rewrites done; an engine that the table does not name takes
    them as they are. Raises EngineFailed if a rewrite finds nothing to do."""
    rewrites = table.get(engine, {})
    done = dict(texts)
    for query, steps in rewrites.items():
        for old, new in steps:
            if old not in done.get(query, ""):
                raise EngineFailed(
                    f"the dialect of {engine} rewrites {old!r} in {query}, which is not there; "
                    "the query texts have changed, so mend atoll.suites.dialects"
                )
            done[query] = done[query].replace(old, new)
    return done
