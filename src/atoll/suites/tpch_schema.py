"""TPC-H's tables as engines create them: columns, primary keys and the usual indexes. Pure.

Columns and keys are those of the specification (clause 1.4). Types are those of the Parquet files
that tpchgen writes. The indexes are on the foreign keys and on the dates that queries select by, as
is usual in servers tuned for TPC-H. Clause 1.5.7 allows exactly these.
"""

from __future__ import annotations

from collections.abc import Mapping

from atoll.engines.api import Column
from atoll.suites.base import TableSchema

_MONEY = "decimal(15,2)"


def _columns(**types: str) -> tuple[Column, ...]:
    return tuple(Column(name, kind) for name, kind in types.items())


SCHEMAS: Mapping[str, TableSchema] = {
    "lineitem": TableSchema(
        _columns(
            l_orderkey="bigint",
            l_partkey="bigint",
            l_suppkey="bigint",
            l_linenumber="integer",
            l_quantity=_MONEY,
            l_extendedprice=_MONEY,
            l_discount=_MONEY,
            l_tax=_MONEY,
            l_returnflag="varchar",
            l_linestatus="varchar",
            l_shipdate="date",
            l_commitdate="date",
            l_receiptdate="date",
            l_shipinstruct="varchar",
            l_shipmode="varchar",
            l_comment="varchar",
        ),
        ("l_orderkey", "l_linenumber"),
        (("l_partkey", "l_suppkey"), ("l_suppkey",), ("l_shipdate",)),
    ),
    "orders": TableSchema(
        _columns(
            o_orderkey="bigint",
            o_custkey="bigint",
            o_orderstatus="varchar",
            o_totalprice=_MONEY,
            o_orderdate="date",
            o_orderpriority="varchar",
            o_clerk="varchar",
            o_shippriority="integer",
            o_comment="varchar",
        ),
        ("o_orderkey",),
        (("o_custkey",), ("o_orderdate",)),
    ),
    "partsupp": TableSchema(
        _columns(
            ps_partkey="bigint",
            ps_suppkey="bigint",
            ps_availqty="integer",
            ps_supplycost=_MONEY,
            ps_comment="varchar",
        ),
        ("ps_partkey", "ps_suppkey"),
        (("ps_suppkey",),),
    ),
    "part": TableSchema(
        _columns(
            p_partkey="bigint",
            p_name="varchar",
            p_mfgr="varchar",
            p_brand="varchar",
            p_type="varchar",
            p_size="integer",
            p_container="varchar",
            p_retailprice=_MONEY,
            p_comment="varchar",
        ),
        ("p_partkey",),
    ),
    "customer": TableSchema(
        _columns(
            c_custkey="bigint",
            c_name="varchar",
            c_address="varchar",
            c_nationkey="bigint",
            c_phone="varchar",
            c_acctbal=_MONEY,
            c_mktsegment="varchar",
            c_comment="varchar",
        ),
        ("c_custkey",),
        (("c_nationkey",),),
    ),
    "supplier": TableSchema(
        _columns(
            s_suppkey="bigint",
            s_name="varchar",
            s_address="varchar",
            s_nationkey="bigint",
            s_phone="varchar",
            s_acctbal=_MONEY,
            s_comment="varchar",
        ),
        ("s_suppkey",),
        (("s_nationkey",),),
    ),
    "nation": TableSchema(
        _columns(n_nationkey="bigint", n_name="varchar", n_regionkey="bigint", n_comment="varchar"),
        ("n_nationkey",),
        (("n_regionkey",),),
    ),
    "region": TableSchema(
        _columns(r_regionkey="bigint", r_name="varchar", r_comment="varchar"),
        ("r_regionkey",),
    ),
}
