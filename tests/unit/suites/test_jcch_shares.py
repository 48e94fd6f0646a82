"""JCC-H's data has the shares that the paper promises, alone and across joins, and keeps the rules
of TPC-H."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from atoll.suites import jcch_data, reference
from atoll.suites.jcch_shape import (
    NATIONS,
    SKEWED_DAYS,
    Shape,
)
from atoll.suites.tpch_schema import SCHEMAS

SCALE_FACTOR = 0.02
SHAPE = Shape(SCALE_FACTOR)
SEEDS = st.integers(0, 10**9 - 1)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("jcch")
    jcch_data.write_tables(SCALE_FACTOR, folder)
    return {table: folder / f"{table}.parquet" for table in jcch_data.TABLES}


VIEWS = """
with mega as (select l_orderkey as k from lineitem group by all having count(*) > 3),
    gold as (select ps_partkey as k from partsupp group by all having count(*) > 3),
    whale as (select c_custkey as k from customer
        where left(c_phone, 2) in ('40', '50', '60', '70', '80')),
    big as (select n_nationkey as k from nation where n_name in
        ('MOROCCO', 'UNITED STATES', 'CHINA', 'GERMANY', 'EGYPT')),
    may29 as (select o_orderkey as k from orders where month(o_orderdate) = 5
        and day(o_orderdate) = 29 and year(o_orderdate) not in (1995, 1996)),
    other as (from lineitem where l_orderkey not in (from mega)),
    traded as (select other.*, o_orderdate, s_nationkey, c_nationkey,
            sold.n_regionkey as sold_from, bought.n_regionkey as bought_from
        from other, orders, customer, supplier, nation sold, nation bought
        where l_orderkey = o_orderkey and o_custkey = c_custkey and l_suppkey = s_suppkey
            and s_nationkey = sold.n_nationkey and c_nationkey = bought.n_nationkey),
    huge as (from lineitem where l_orderkey in (from mega))
"""


def ask(files: dict[str, Path], sql: str) -> list[tuple[Any, ...]]:
    return reference.run(f"{VIEWS} {sql}", files)[1]


# ---- one table at a time -------------------------------------------------------------------------


def test_five_orders_hold_a_quarter_of_the_lines_and_all_others_have_three(
    files: dict[str, Path],
) -> None:
    counts = "select n, count(*) from (select count(*) as n from lineitem group by l_orderkey)"
    assert ask(files, f"{counts} group by all order by n") == [
        (3, SHAPE.orders.size - 5),
        (int(300_000 * SCALE_FACTOR), 5),
    ]
    assert ask(files, "select count(*) from lineitem") == [(SHAPE.lines,)]
    assert abs(SHAPE.lines / (6_000_000 * SCALE_FACTOR) - 1) < 0.001


def test_twenty_parts_have_every_supplier_and_all_others_three(files: dict[str, Path]) -> None:
    counts = "select n, count(*) from (select count(distinct ps_suppkey) as n from partsupp"
    assert ask(files, f"{counts} group by ps_partkey) group by all order by n") == [
        (3, SHAPE.parts.size - 20),
        (SHAPE.suppliers.size, 20),
    ]
    assert ask(files, "select count(*) from partsupp") == [(SHAPE.partsupps,)]
    assert abs(SHAPE.partsupps / (800_000 * SCALE_FACTOR) - 1) < 0.01


def test_half_of_a_skewed_years_orders_are_of_one_day(files: dict[str, Path]) -> None:
    most = """select year(day), max(n) / sum(n), arg_max(day, n) from
        (select o_orderdate as day, count(*) as n from orders group by all) group by 1 order by 1"""
    for year, share, day in ask(files, most):
        if year in (1995, 1996):
            assert share < 0.01
        else:
            assert (day.month, day.day) == (5, 29)
            assert share == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize("table", ["customer", "supplier"])
def test_a_region_has_a_large_nation_with_18_percent_and_four_with_half_a_percent(
    files: dict[str, Path], table: str
) -> None:
    key = f"{table[0]}_nationkey"
    size = SHAPE.customers.size if table == "customer" else SHAPE.suppliers.size
    found = ask(
        files,
        f"select n_name, r_name, count(*) from {table}, nation, region "
        f"where {key} = n_nationkey and n_regionkey = r_regionkey group by all",
    )
    assert {(name, region) for name, region, _ in found} == {
        (name, region) for region, names in NATIONS.items() for name in names
    }
    for name, region, count in found:
        is_large = name == next(iter(NATIONS[region]))
        assert count == pytest.approx(size * (0.18 if is_large else 0.005), abs=1)


def shares(files: dict[str, Path], sql: str) -> Sequence[float]:
    return [float(value) for value in ask(files, sql)[0]]


def test_populous_customers_have_a_quarter_of_the_orders_and_a_third_has_none(
    files: dict[str, Path],
) -> None:
    plain = "year(o_orderdate) in (1995, 1996)"
    all_years, plain_years = shares(
        files,
        f"select avg((o_custkey in (from whale))::int), "
        f"avg((o_custkey in (from whale))::int) filter ({plain}) from orders",
    )
    assert all_years == pytest.approx(0.25, abs=0.01)
    assert plain_years == 0
    assert shares(
        files, "select avg((c_custkey not in (select o_custkey from orders))::int) from customer"
    ) == pytest.approx([1 / 3], abs=0.01)


def test_populous_suppliers_have_a_quarter_of_partsupp(files: dict[str, Path]) -> None:
    top = "select count(*) as n from partsupp group by ps_suppkey order by n desc limit 5"
    assert shares(files, f"select sum(n) / (select count(*) from partsupp) from ({top})") == (
        pytest.approx([0.25], abs=0.01)
    )


def test_only_populous_parts_have_two_marks_and_all_of_them(files: dict[str, Path]) -> None:
    marks = """(p_brand = 'Brand#55')::int + (p_size = 1)::int + (p_container = 'LG BOX')::int
        + (p_type = 'SHINY MINED GOLD')::int + (p_name = 'shiny mined gold')::int"""
    found = ask(
        files,
        f"select p_partkey in (from gold), max({marks}), min({marks}) from part"
        " group by 1 order by 1",
    )
    assert found == [(False, 1, 0), (True, 5, 5)]
    rare = ask(files, "select count(*), sum((p_type = 'SHINY MINED GOLD')::int) from part")[0]
    assert rare[1] / rare[0] == pytest.approx(1 / 151, abs=0.007), "the type would stand out"
    assert ask(files, "select count(*) from part where p_mfgr[-1] <> p_brand[7]") == [(0,)]


# ---- across joins --------------------------------------------------------------------------------


def test_populous_orders_are_of_populous_customers_in_large_nations_on_skewed_days(
    files: dict[str, Path],
) -> None:
    found = ask(
        files,
        """select o_orderdate, r_name, c_custkey in (from whale), c_nationkey in (from big),
            o_comment like '%1mine2%3gold4%'
        from orders, customer, nation, region where o_custkey = c_custkey
            and o_orderkey in (from mega) and c_nationkey = n_nationkey
            and n_regionkey = r_regionkey order by o_orderdate""",
    )
    assert found == [
        (day, region, True, True, True) for day, region in zip(SKEWED_DAYS, NATIONS, strict=True)
    ]
    assert ask(
        files,
        "select count(*), count(distinct c_nationkey) from customer "
        "where c_custkey in (from whale) and c_nationkey in (from big)",
    ) == [(5, 5)]


def test_lines_of_populous_orders_name_populous_parts_and_foreign_large_suppliers(
    files: dict[str, Path],
) -> None:
    assert shares(
        files,
        """select avg((l_partkey in (from gold))::int), avg((s_nationkey in (from big))::int),
            avg((sold.n_regionkey <> bought.n_regionkey)::int), count(distinct l_partkey),
            avg((l_quantity = 51 and l_shipmode = 'REG AIR' and l_returnflag = 'R'
                and l_shipinstruct = 'DELIVER IN PERSON')::int)
        from huge, orders, customer, supplier, nation sold, nation bought
        where l_orderkey = o_orderkey and o_custkey = c_custkey and l_suppkey = s_suppkey
            and s_nationkey = sold.n_nationkey and c_nationkey = bought.n_nationkey""",
    ) == [1, 1, 1, 15, 1]


def test_other_lines_are_bought_in_the_customers_region(files: dict[str, Path]) -> None:
    """A third of a skewed year's from five pairs of a populous part and supplier, all others from
    small nations."""
    local, populous, pairs, populous_supplier_is_large, others_from_small = shares(
        files,
        """select avg((sold_from = bought_from)::int),
            avg((l_partkey in (from gold))::int)
                filter (year(o_orderdate) not in (1995, 1996)),
            count(distinct (l_partkey, l_suppkey)) filter (l_partkey in (from gold)),
            avg((s_nationkey in (from big))::int) filter (l_partkey in (from gold)),
            avg((s_nationkey not in (from big))::int) filter (l_partkey not in (from gold))
        from traded""",
    )
    assert local == 1
    assert populous == pytest.approx(1 / 3, abs=1e-9)
    assert (pairs, populous_supplier_is_large, others_from_small) == (5, 1, 1)
    assert ask(
        files,
        "select count(*) from traded where year(o_orderdate) in (1995, 1996) "
        "and (l_partkey in (from gold) or l_quantity > 50)",
    ) == [(0,)]


def test_half_of_the_lines_were_ordered_on_skewed_days(files: dict[str, Path]) -> None:
    """52 % by section 2.2 of the paper, which counts the plain years as two of seven."""
    assert shares(files, "select avg((l_orderkey in (from may29))::int) from lineitem") == (
        pytest.approx([0.515], abs=0.02)
    )


# ---- TPC-H's rules -------------------------------------------------------------------------------

FOREIGN_KEYS = [
    ("lineitem", "l_orderkey", "orders", "o_orderkey"),
    ("lineitem", "(l_partkey, l_suppkey)", "partsupp", "(ps_partkey, ps_suppkey)"),
    ("orders", "o_custkey", "customer", "c_custkey"),
    ("partsupp", "ps_partkey", "part", "p_partkey"),
    ("partsupp", "ps_suppkey", "supplier", "s_suppkey"),
    ("customer", "c_nationkey", "nation", "n_nationkey"),
    ("supplier", "s_nationkey", "nation", "n_nationkey"),
    ("nation", "n_regionkey", "region", "r_regionkey"),
]


def test_all_keys_lead_somewhere(files: dict[str, Path]) -> None:
    for table, key, to, its in FOREIGN_KEYS:
        lost = f"select count(*) from {table} where {key} not in (select {its} from {to})"
        assert ask(files, lost) == [(0,)], (table, key)


def test_columns_types_and_primary_keys_are_those_of_tpch(files: dict[str, Path]) -> None:
    for table, schema in SCHEMAS.items():
        _, described = reference.run(f"describe {table}", files)
        assert [(name, kind.lower()) for name, kind, *_ in described] == [
            (column.name, column.type) for column in schema.columns
        ]
        key = ", ".join(schema.primary_key)
        assert ask(files, f"select 1 from {table} group by {key} having count(*) > 1") == []


@pytest.mark.parametrize(
    "wrong",
    [
        "lineitem where l_returnflag <> 'R'"
        " and (l_receiptdate > '1995-06-17') <> (l_returnflag = 'N')",
        "lineitem where (l_shipdate > '1995-06-17') <> (l_linestatus = 'O')",
        "lineitem where l_discount not between 0 and 0.10 or l_tax not between 0 and 0.08",
        "lineitem where l_receiptdate - l_shipdate not between 1 and 30",
        "lineitem, orders where l_orderkey = o_orderkey and (l_shipdate - o_orderdate not between 1"
        " and 121 or l_commitdate - o_orderdate not between 30 and 90)",
        "lineitem, part where l_partkey = p_partkey"
        " and l_extendedprice <> l_quantity * p_retailprice",
        "part where p_retailprice * 100"
        " <> 90000 + p_partkey // 10 % 20001 + 100 * (p_partkey % 1000)",
        "part where len(list_distinct(string_split(p_name, ' '))) not in (5, 3)",
        "customer where c_phone not similar to '[1-8][0-9]-[0-9]{3}-[0-9]{3}-[0-9]{4}'",
        "customer where c_acctbal not between -999.99 and 9999.99",
        "customer where left(c_phone, 2)::int <> c_nationkey + 10"
        " and c_custkey not in (from whale)",
        "(select o_totalprice as t, sum(floor(floor(l_extendedprice * (100 - l_discount * 100))"
        " * (100 + l_tax * 100) / 100)) / 100 as s from orders, lineitem"
        " where o_orderkey = l_orderkey group by o_orderkey, o_totalprice)"
        " where abs(t - s) > 0.001",
        "(select o_orderstatus as s, min(l_linestatus) as a, max(l_linestatus) as b"
        " from orders, lineitem where o_orderkey = l_orderkey group by o_orderkey, o_orderstatus)"
        " where s <> case when a = b then a else 'P' end",
        "orders where o_orderkey % 32 >= 8 or len(o_comment) not between 19 and 79",
    ],
)
def test_no_row_breaks_a_rule(files: dict[str, Path], wrong: str) -> None:
    assert ask(files, f"select count(*) from {wrong}") == [(0,)]


def test_rows_are_in_the_order_of_their_keys(files: dict[str, Path]) -> None:
    for table, key in (
        ("lineitem", "(l_orderkey, l_linenumber)"),
        ("orders", "o_orderkey"),
        ("partsupp", "ps_partkey"),
    ):
        before = f"lag({key}) over (order by file_row_number)"
        rows = f"read_parquet('{files[table]}', file_row_number = true)"
        swapped = f"select count(*) from (select {key} < {before} as w from {rows}) where w"
        assert ask(files, swapped) == [(0,)], table
