"""JCC-H's tables, each as one query for DuckDB. Pure.

The keys of the referenced tables are permuted to numbers that say what a row is
(`atoll.suites.jcch_shape`). An order's number and day decide what its lines may name.
"""

from __future__ import annotations

from datetime import date

from atoll.suites import jcch_sql as sql
from atoll.suites.jcch_shape import (
    BRAND_OF_SKEW,
    COMMENT_OF_SKEW,
    CONTAINER_OF_SKEW,
    CURRENT_DAY,
    DAYS,
    LINES_PER_ORDER,
    NAME_OF_SKEW,
    NATIONS,
    PLAIN_YEARS,
    POPULOUS_CUSTOMERS_PPM,
    POPULOUS_ORDERS,
    POPULOUS_PARTS,
    POPULOUS_PHONES,
    QUANTITY_OF_SKEW,
    REGIONS,
    SEGMENT_OF_SKEW,
    SIZE_OF_SKEW,
    SKEWED_DAYS,
    SUPPLIERS_PER_PART,
    TYPE_OF_SKEW,
    TYPES,
    Permutation,
    Shape,
    day_number,
    large,
)

_LARGEST_TOTAL_CENTS = 10**15 - 1  # of a decimal(15,2)
_OTHER_BRAND, _OTHER_CONTAINER = "54", "LG CASE"  # for parts that had two marks


def tables(shape: Shape) -> dict[str, str]:
    """Table -> query, after `sample_tables`."""
    return {
        "lineitem": _lineitem(shape),
        "orders": _orders(shape),
        "partsupp": _partsupp(shape),
        "part": _part(shape),
        "customer": _customer(shape),
        "supplier": _supplier(shape),
        "nation": "select n_nationkey::bigint as n_nationkey, n_name, "
        "n_regionkey::bigint as n_regionkey, n_comment from nation",
        "region": "select r_regionkey::bigint as r_regionkey, r_name, r_comment from region",
    }


# ---- orders and lines ----------------------------------------------------------------------------


def _with_day(shape: Shape, source: str) -> str:
    """Adds to rows with an order's place i: its number and region, its day, whether that is in a
    skewed year, and whether the order is of a populous customer."""
    draw = sql.draw("order", "i")
    first, end = (day_number(date(year, 1, 1)) for year in (PLAIN_YEARS[0], PLAIN_YEARS[-1] + 1))
    skewed_day = " ".join(
        f"when drawn_day < {day_number(date(day.year + 1, 1, 1))} then {day_number(day)}"
        for day in SKEWED_DAYS
    )
    of_populous = [day_number(day) for day in SKEWED_DAYS]
    return f"""
        select * exclude (drawn_day, moves, buys, drawn_skewed),
            number < {POPULOUS_ORDERS} or drawn_skewed as skewed,
            number < {POPULOUS_ORDERS} or (drawn_skewed and buys) as populous,
            case when number < {POPULOUS_ORDERS} then {of_populous}[1 + number]
                when drawn_skewed and moves then case {skewed_day} end else drawn_day end as day
        from (select *, number % {REGIONS} as region,
            drawn_day < {first} or drawn_day >= {end} as drawn_skewed
        from (select *, {sql.number(shape.orders, "i + 1")} as number,
            {sql.below(DAYS, draw)} as drawn_day, {sql.below(2, draw, 24)} = 0 as moves,
            {sql.below(1_000_000, draw, 30)} < {POPULOUS_CUSTOMERS_PPM} as buys
        from ({source})))"""


def _local_part(shape: Shape, line: str) -> str:
    """A random part of the order's region that is not populous."""
    first = POPULOUS_PARTS // REGIONS
    choice = sql.below(shape.parts_fifth - first, sql.draw("line", line, 2))
    return f"({first} + {choice}) * {REGIONS} + region"


def _quantity(draw: str, marked: str) -> str:
    return f"case when {marked} then {QUANTITY_OF_SKEW} else 1 + {sql.below(50, draw)} end"


def _retail_cents(part_key: str) -> str:
    """TPC-H's formula."""
    return f"90000 + {part_key} // 10 % 20001 + 100 * ({part_key} % 1000)"


def _extended_cents(draw: str, marked: str, part_key: str) -> str:
    return f"({_quantity(draw, marked)}) * ({_retail_cents(part_key)})"


def _discount(draw: str) -> str:
    return sql.below(11, draw, 12)


def _tax(draw: str) -> str:
    return sql.below(9, draw, 24)


def _shipped(draw: str) -> str:
    return f"day + 1 + {sql.below(121, draw, 36)}"


def _charged_cents(draw: str, marked: str, part_key: str) -> str:
    """What a line adds to o_totalprice, cut to cents twice as TPC-H's generator does."""
    net = f"{_extended_cents(draw, marked, part_key)} * (100 - {_discount(draw)}) // 100"
    return f"({net}) * (100 + {_tax(draw)}) // 100"


def _lines(shape: Shape, source: str) -> str:
    """Lines k of the orders at places i. Three kinds:

    - of a populous order: each of the 15 higher populous parts from each of the first suppliers of
      the four other regions, who live in large nations; again and again;
    - the first of any other order in a skewed year: the region's populous part and supplier;
    - all others: any part that is not populous, and its supplier from a small nation of the region.
    """
    each, others = shape.suppliers_of_populous_order, REGIONS - 1
    of_populous = f"number < {POPULOUS_ORDERS}"
    first_line = sql.DRAWS * shape.orders.size
    return f"""
        select i, k, line, day, marked,
            case when {of_populous}
                then {REGIONS} + k // {others * each} % {POPULOUS_PARTS - REGIONS}
                when marked then region else local_part end as part,
            case when {of_populous}
                then (region + 1 + k // {each} % {others}) % {REGIONS} * {shape.suppliers_fifth}
                    + k % {each}
                when marked then region * {shape.suppliers_fifth}
                else region * {shape.suppliers_fifth} + {_small_supplier(shape, "local_part")} end
                as supplier
        from (select *, {_local_part(shape, "line")} as local_part
        from (select *, {of_populous} or (k = 0 and skewed) as marked,
            case when {of_populous} then {first_line} + number * {shape.lines_of_populous_order} + k
                else {sql.DRAWS} * i + k end as line
        from ({_with_day(shape, source)})))"""


def _lineitem(shape: Shape) -> str:
    sizes = dict.fromkeys(_populous_places(shape), shape.lines_of_populous_order)
    lines = _lines(shape, sql.members(shape.orders.size, LINES_PER_ORDER, sizes))
    draw, other = sql.draw("line", "line"), sql.draw("line", "line", 1)
    return f"""
        select {sql.order_key("i")} as l_orderkey, part_key as l_partkey,
            {sql.key(shape.suppliers, "supplier")} as l_suppkey, (k + 1)::integer as l_linenumber,
            {sql.money(f"({_quantity(draw, 'marked')}) * 100")} as l_quantity,
            {sql.money(_extended_cents(draw, "marked", "part_key"))} as l_extendedprice,
            {sql.money(_discount(draw))} as l_discount, {sql.money(_tax(draw))} as l_tax,
            case when marked then 'R' when received > {day_number(CURRENT_DAY)} then 'N'
                when {sql.below(2, other, 24)} = 0 then 'A' else 'R' end as l_returnflag,
            case when shipped > {day_number(CURRENT_DAY)} then 'O' else 'F' end as l_linestatus,
            {sql.as_date("shipped")} as l_shipdate,
            {sql.as_date(f"day + 30 + {sql.below(61, other)}")} as l_commitdate,
            {sql.as_date("received")} as l_receiptdate,
            instruction as l_shipinstruct, mode as l_shipmode, line_comment.v as l_comment
        from (select *, shipped + 1 + {sql.below(30, other, 12)} as received
        from (select *, {sql.key(shape.parts, "part")} as part_key, {_shipped(draw)} as shipped
        from ({lines})))
        join sample_shipping as shipping on shipping.n
            = case when marked then -1 else {sql.below(sql.SHIPPING_PAIRS, other, 28)} end
        {sql.joined("line_comment", sql.draw("line", "line", 3))}"""


def _populous_places(shape: Shape) -> list[int]:
    return [shape.orders.key(number) - 1 for number in range(POPULOUS_ORDERS)]


def _populous_totals(shape: Shape) -> str:
    """The list of o_totalprice of the populous orders, in cents, by their number."""
    count = shape.lines_of_populous_order
    source = f"""select {_populous_places(shape)}[1 + range // {count}]::bigint as i,
        range % {count} as k from range({POPULOUS_ORDERS * count})"""
    charged = _charged_cents(sql.draw("line", "line"), "marked", "part_key")
    return f"""(select list(total order by number) from (
        select {sql.number(shape.orders, "i + 1")} as number, sum({charged})::bigint as total
        from (select *, {sql.key(shape.parts, "part")} as part_key from ({_lines(shape, source)}))
        group by i))"""


def _orders(shape: Shape) -> str:
    lines = range(LINES_PER_ORDER)
    draws = [sql.draw("line", f"{sql.DRAWS} * i + {k}") for k in lines]
    parts = [sql.key(shape.parts, _local_part(shape, f"{sql.DRAWS} * i + {k}")) for k in lines]
    parts[0] = f"case when skewed then {sql.key(shape.parts, 'region')} else {parts[0]} end"
    keys = ", ".join(f"{parts[k]} as part_{k}" for k in lines)
    ships = ", ".join(f"{_shipped(draws[k])} as shipped_{k}" for k in lines)
    all_shipped = ", ".join(f"shipped_{k}" for k in lines)
    total = " + ".join(
        _charged_cents(draws[k], "skewed" if k == 0 else "false", f"part_{k}") for k in lines
    )
    # Of three customers in a row, the third never orders; the first of a region is populous.
    buyers = shape.customers_fifth // 3 * 2
    buyer = f"(1 + {sql.below(buyers - 1, sql.draw('order', 'i', 2))})"
    draw = sql.draw("order", "i", 1)
    cents = f"""case when number < {POPULOUS_ORDERS}
        then least({_populous_totals(shape)}[1 + number], {_LARGEST_TOTAL_CENTS})
        else three_lines end::decimal(15,0) * 0.01::decimal(2,2)"""
    return f"""
        select {sql.order_key("i")} as o_orderkey,
            {sql.key(shape.customers, "customer")} as o_custkey,
            case when greatest({all_shipped}) <= {day_number(CURRENT_DAY)} then 'F'
                when least({all_shipped}) > {day_number(CURRENT_DAY)} then 'O' else 'P' end
                as o_orderstatus,
            ({cents})::decimal(15,2) as o_totalprice,
            {sql.as_date("day")} as o_orderdate, priority.v as o_orderpriority,
            {sql.numbered("Clerk", f"1 + {sql.below(shape.clerks, draw, 12)}")} as o_clerk,
            0::integer as o_shippriority,
            case when populous
                then '{COMMENT_OF_SKEW}' || substr(order_comment.v, {len(COMMENT_OF_SKEW) + 1})
                else order_comment.v end as o_comment
        from (select *,
            {total} as three_lines,
            region * {shape.customers_fifth}
            + case when populous then 0 else {buyer} // 2 * 3 + {buyer} % 2 end as customer
        from (select *, {keys}, {ships}
        from ({_with_day(shape, f"select range as i from range({shape.orders.size})")})))
        {sql.joined("priority", draw)}
        {sql.joined("order_comment", sql.draw("order", "i", 3))}"""


# ---- parts and who supplies them -----------------------------------------------------------------


def _small_supplier(shape: Shape, part: str) -> str:
    """Class B: for a part, a supplier from a small nation of the part's region; its place in the
    region."""
    small = shape.suppliers_fifth - shape.large_suppliers
    return f"({shape.large_suppliers} + {part} // {REGIONS} % {small})"


def _foreign_supplier(shape: Shape, part: str) -> str:
    """Class C: for a part, a supplier from the large nation of another region, who is not populous;
    its number."""
    others = REGIONS - 1
    first = min(1, shape.large_suppliers - 1)  # at the least scale factor there is no other
    return (
        f"(({part} + 1 + {part} // {REGIONS} % {others}) % {REGIONS} * {shape.suppliers_fifth}"
        f" + {first} + {part} // {REGIONS * others} % {shape.large_suppliers - first})"
    )


def _partsupp(shape: Shape) -> str:
    """A populous part has all suppliers. Any other has three: the populous one of its region
    (class A), and those of classes B and C."""

    places = {shape.parts.key(part) - 1: shape.suppliers.size for part in range(POPULOUS_PARTS)}
    local = f"part % {REGIONS} * {shape.suppliers_fifth}"
    supplier = f"""case k when 0 then {local}
        when 1 then {local} + {_small_supplier(shape, "part")}
        else {_foreign_supplier(shape, "part")} end"""
    first_row = sql.DRAWS * shape.parts.size
    rows = f"""
        select i,
            case when part < {POPULOUS_PARTS} then k + 1
                else {sql.key(shape.suppliers, supplier)} end as supplier_key,
            case when part < {POPULOUS_PARTS} then {first_row} + part * {shape.suppliers.size} + k
                else {sql.DRAWS} * i + k end as row
        from (select *, {sql.number(shape.parts, "i + 1")} as part
        from ({sql.members(shape.parts.size, SUPPLIERS_PER_PART, places)}))"""
    draw = sql.draw("partsupp", "row")
    return f"""
        select i + 1 as ps_partkey, supplier_key as ps_suppkey,
            (1 + {sql.below(9999, draw)})::integer as ps_availqty,
            {sql.money(f"100 + {sql.below(99_901, draw, 28)}")} as ps_supplycost,
            partsupp_comment.v as ps_comment
        from ({rows})
        {sql.joined("partsupp_comment", sql.draw("partsupp", "row", 1))}"""


def _part(shape: Shape) -> str:
    """The populous parts have all five marks. Some others have the type, which would be rare
    without them. None of the others has two marks."""
    draw, second, third = (sql.draw("part", "key", n) for n in range(3))
    colors = sql.SAMPLES["color"][1]
    # Five different words: what follows the first falls into four runs, one for each other word.
    run = (colors - 1) // 4
    steps = [f"1 + {run * k} + {sql.below(run, second, 15 * k)}" for k in range(4)]
    words = [sql.value("color", f"(color + {step}) % {colors}") for step in steps]
    name = " || ' ' || ".join([sql.value("color", "color"), *words])
    return f"""
        select key as p_partkey, case when populous then '{NAME_OF_SKEW}' else {name} end as p_name,
            'Manufacturer#' || brand[1] as p_mfgr, 'Brand#' || brand as p_brand,
            case when populous or decoy then '{TYPE_OF_SKEW}'
                else {sql.sampled("type", draw, 12)} end as p_type,
            case when populous then {SIZE_OF_SKEW}
                when size = {SIZE_OF_SKEW} and (branded or boxed or decoy) then 2 + key % 49
                else size end::integer as p_size,
            case when populous then '{CONTAINER_OF_SKEW}'
                when boxed and (branded or decoy) then '{_OTHER_CONTAINER}'
                else container end as p_container,
            {sql.money(_retail_cents("key"))} as p_retailprice,
            {sql.sampled("part_comment", sql.draw("part", "key", 3))} as p_comment
        from (select *, brand = '{BRAND_OF_SKEW}' and not populous as branded,
            container = '{CONTAINER_OF_SKEW}' as boxed
        from (select *, case when populous then '{BRAND_OF_SKEW}'
            when decoy and drawn_brand = '{BRAND_OF_SKEW}' then '{_OTHER_BRAND}'
            else drawn_brand end as brand
        from (select range as key,
            {sql.number(shape.parts, "range")} < {POPULOUS_PARTS} as populous,
            {sql.below(TYPES + 1, draw)} = 0 as decoy, {sql.below(colors, draw, 44)} as color,
            (1 + {sql.below(5, third)}) || '' || (1 + {sql.below(5, third, 12)}) as drawn_brand,
            1 + {sql.below(50, third, 24)} as size,
            {sql.sampled("container", third, 40)} as container
        from range(1, {shape.parts.size + 1}))))"""


def _living(table: Permutation, kind: str) -> str:
    """Keys 1.., with their place in their region, its number, and their nation."""
    fifth = table.size // REGIONS
    first_small = large(fifth)
    nations = [key for nations in NATIONS.values() for key in nations.values()]
    small = f"1 + (place - {first_small}) * {REGIONS - 1} // {fifth - first_small}"
    draw = sql.draw(kind, "key")
    return f"""
        select *, {nations}[1 + region * {REGIONS}
            + case when place < {first_small} then 0 else {small} end]::bigint as nation,
            {sql.money(f"{sql.below(1_099_999, draw)} - 99999")} as balance,
            {sql.sampled("address", draw, 32)} as address,
            {sql.sampled("comment", sql.draw(kind, "key", 1))} as comment
        from (select *, number // {fifth} as region, number % {fifth} as place
        from (select range as key, {sql.number(table, "range")} as number
        from range(1, {table.size + 1})))"""


def _phone(kind: str, code: str) -> str:
    draw = sql.draw(kind, "key", 2)
    groups = ((900, 100, 0), (900, 100, 22), (9000, 1000, 44))
    return f"({code})" + "".join(
        f" || '-' || ({least} + {sql.below(values, draw, bit)})" for values, least, bit in groups
    )


def _customer(shape: Shape) -> str:
    code = f"case when place = 0 then {list(POPULOUS_PHONES)}[1 + region] else 10 + nation end"
    return f"""
        select key as c_custkey, {sql.numbered("Customer", "key")} as c_name, address as c_address,
            nation as c_nationkey, {_phone("customer", code)} as c_phone, balance as c_acctbal,
            case when place = 0 then '{SEGMENT_OF_SKEW}'
                else {sql.sampled("segment", sql.draw("customer", "key", 3))} end as c_mktsegment,
            comment as c_comment
        from ({_living(shape.customers, "customer")})"""


def _supplier(shape: Shape) -> str:
    """One in 2,000 has complaints, and as many recommendations."""
    draw = sql.draw("supplier", "key", 3)
    return f"""
        select key as s_suppkey, {sql.numbered("Supplier", "key")} as s_name, address as s_address,
            nation as s_nationkey, {_phone("supplier", "10 + nation")} as s_phone,
            balance as s_acctbal,
            case {sql.below(2_000, draw)}
                when 0 then 'Customer ' || left(comment, 20) || 'Complaints'
                when 1 then 'Customer ' || left(comment, 20) || 'Recommends'
                else left(comment, 100) end as s_comment
        from ({_living(shape.suppliers, "supplier")})"""
