"""The expressions of which JCC-H's tables are made, for DuckDB. Pure.

Every value is a function of its row's place in the table: DuckDB's `hash` draws 63 bits for it. So
DuckDB streams a table in order, and the rows are the same whatever the number of threads.

Words and comments are those of TPC-H. They are drawn from a small data set that DuckDB's tpch
extension makes (`sample_tables`).
"""

from __future__ import annotations

from collections.abc import Mapping

from atoll.suites.jcch_shape import (
    FIRST_DAY,
    INSTRUCTION_OF_SKEW,
    MODE_OF_SKEW,
    Permutation,
    gaps,
)

# The statement that makes the sample, and the samples: name -> (its values as a query for a column
# v, how many of them are used). Words are sorted; comments and addresses are those of the first
# rows.
SAMPLE = "call dbgen(sf = 0.01)"
SAMPLES: Mapping[str, tuple[str, int]] = {
    "line_comment": ("select l_comment as v from lineitem", 60_000),
    "order_comment": ("select o_comment as v from orders", 15_000),
    "partsupp_comment": ("select ps_comment as v from partsupp", 8_000),
    "part_comment": ("select p_comment as v from part", 2_000),
    "comment": ("select c_comment as v from customer", 1_500),
    "address": ("select c_address as v from customer", 1_500),
    "priority": ("select distinct o_orderpriority as v from orders order by v", 5),
    "segment": ("select distinct c_mktsegment as v from customer order by v", 5),
    "type": ("select distinct p_type as v from part order by v", 150),
    "container": ("select distinct p_container as v from part order by v", 40),
    "color": ("select distinct unnest(string_split(p_name, ' ')) as v from part order by v", 92),
}
# How a line is shipped: all pairs of instructions and modes, and number -1 for the lines of skew.
SHIPPING_PAIRS = 28

# Each kind of row draws from its own numbers, DRAWS of them for a row.
DRAWS = 4
_FIRST_DRAW = {
    kind: number << 58
    for number, kind in enumerate(("line", "order", "partsupp", "part", "customer", "supplier"))
}


def sample_tables() -> list[str]:
    """Statements that turn SAMPLE's tables into tables sample_NAME (n, v); n counts from 0."""
    pairs = "(select distinct l_shipinstruct as i from lineitem), (select distinct l_shipmode as m"
    return [
        *(
            f"create table sample_{name} as "
            f"select row_number() over () - 1 as n, v from ({values}) limit {size}"
            for name, (values, size) in SAMPLES.items()
        ),
        f"create table sample_shipping as select row_number() over (order by i, m) - 1 as n, "
        f"i as instruction, m as mode from {pairs} from lineitem) "
        f"union all select -1, '{INSTRUCTION_OF_SKEW}', '{MODE_OF_SKEW}'",
    ]


# ---- expressions ---------------------------------------------------------------------------------


def draw(kind: str, row: str, n: int = 0) -> str:
    """63 random bits: the n-th draw for a row."""
    return f"(hash({_FIRST_DRAW[kind] + n} + {DRAWS} * ({row})) >> 1)::bigint"


def below(values: int, draw: str, bit: int = 0) -> str:
    """A random number from 0, out of the bits from `bit` on. Twelve more bits than `values` has
    belong to it, so that the next number does not depend on it."""
    return f"({draw} >> {bit}) % {values}" if bit else f"{draw} % {values}"


def number(table: Permutation, key: str) -> str:
    return f"((({key}) - 1) * {table.factor} + {table.shift}) % {table.size}"


def key(table: Permutation, number: str) -> str:
    return f"(({number}) + {table.size - table.shift}) * {table.inverse} % {table.size} + 1"


def money(cents: str) -> str:
    return f"({cents})::decimal(13,0) * 0.01::decimal(2,2)"


def as_date(day: str) -> str:
    """A date of a number of days since FIRST_DAY."""
    return f"date '{FIRST_DAY}' + ({day})::integer"


def order_key(place: str) -> str:
    """The sparse keys of TPC-H: eight in use, 24 unused."""
    return f"(({place} + 1) // 8 * 32 + ({place} + 1) % 8)"


def numbered(prefix: str, number: str) -> str:
    """'Clerk#000000042'."""
    return f"'{prefix}#' || lpad(({number})::varchar, 9, '0')"


def joined(name: str, draw: str, bit: int = 0) -> str:
    """A join that adds a random value of the sample as NAME.v. The fastest for large tables."""
    choice = below(SAMPLES[name][1], draw, bit)
    return f"join sample_{name} as {name} on {name}.n = {choice}"


def value(name: str, number: str) -> str:
    """A value of the sample, by its number."""
    return f"(select list(v order by n) from sample_{name})[1 + ({number})]"


def sampled(name: str, draw: str, bit: int = 0) -> str:
    """A random value of the sample."""
    return value(name, below(SAMPLES[name][1], draw, bit))


def members(size: int, each: int, special: Mapping[int, int]) -> str:
    """Rows (i, k): the k-th member of the item at place i, in order. `size` items have `each`
    members, but those at the places `special` have as many as it says."""
    base: list[str] = []
    place: list[str] = []
    first = 0  # row
    for (start, end), one in zip(gaps(size, [*special]), [*sorted(special), None], strict=True):
        until = first + each * (end - start)
        base.append(f"when range < {until} then {first - each * start}")
        place.append(f"when range < {until} then -1")
        if one is not None:
            first = until + special[one]
            base.append(f"when range < {first} then {until}")
            place.append(f"when range < {first} then {one}")
    return f"""
        select case when place < 0 then (range - base) // {each} else place end as i,
            case when place < 0 then (range - base) % {each} else range - base end as k
        from (select range, (case {" ".join(base)} end)::bigint as base,
            (case {" ".join(place)} end)::bigint as place
        from range({until}))"""
