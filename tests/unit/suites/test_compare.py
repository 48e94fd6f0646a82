"""Answers: what must count as right, and that nothing else does."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.engines.api import Column, QueryResult
from atoll.engines.facts import STANDARD_SQL
from atoll.suites.base import Answer
from atoll.suites.compare import compare, plain
from atoll.suites.folder import bare
from atoll.suites.ordering import is_only_counted, ordering_of, outline_of, with_keys

TYPES = ("bigint", "decimal(15,2)", "double", "date", "varchar")
ROW = st.tuples(
    st.none() | st.integers(-50, 50),
    st.none() | st.decimals(-999, 999, places=2),
    st.none() | st.floats(-1e9, 1e9),
    st.none() | st.dates(max_value=datetime.date(9000, 1, 1)),
    st.none() | st.text("abc |'", max_size=4),
)


def result(types: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> QueryResult:
    columns = tuple(Column(f"c{i}", type_) for i, type_ in enumerate(types))
    return QueryResult(columns, list(rows), 0.0)


def as_text(row: tuple[Any, ...]) -> tuple[str, ...]:
    return tuple("" if value is None else str(value) for value in row)


@given(st.lists(ROW), st.randoms(use_true_random=False))
def test_without_an_order_any_order_is_right(rows: list[tuple[Any, ...]], random: Any) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)
    assert compare(result(TYPES, shuffled), Answer(rows, ())) is None


@given(st.lists(ROW.filter(lambda row: row[4] is not None)))
def test_an_answer_as_text_is_read_by_the_results_types(rows: list[tuple[Any, ...]]) -> None:
    answer = Answer([as_text(row) for row in rows], (), as_text=True)
    assert compare(result(TYPES, rows), answer) is None


@given(st.lists(ROW, min_size=1), st.data())
def test_one_wrong_value_anywhere_is_found(
    rows: list[tuple[Any, ...]], data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(rows) - 1))
    column = data.draw(st.integers(0, 4))
    old = rows[place][column]
    changes: list[Callable[[], Any]] = [
        lambda: (old or 0) + 1,
        lambda: (old or Decimal(0)) + Decimal("0.01"),
        lambda: (old or 0.0) * (1 + 1e-6) + 1e-3,
        lambda: (old or datetime.date(2000, 1, 1)) + datetime.timedelta(days=1),
        lambda: (old or "") + "x",
    ]
    changed = [*rows]
    changed[place] = (*rows[place][:column], changes[column](), *rows[place][column + 1 :])
    assert compare(result(TYPES, changed), Answer(rows, ())) is not None


@given(st.lists(ROW, min_size=1), st.data())
def test_a_missing_or_doubled_row_is_found(
    rows: list[tuple[Any, ...]], data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(rows) - 1))
    said = compare(result(TYPES, rows[:place] + rows[place + 1 :]), Answer(rows, ()))
    assert said is not None and said.startswith(f"{len(rows) - 1} rows, expected {len(rows)}")
    assert compare(result(TYPES, [*rows, rows[place]]), Answer(rows, ())) is not None


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), max_size=12), st.data())
def test_order_counts_as_far_as_the_order_by_goes(
    rows: list[tuple[int, int]], data: st.DataObject
) -> None:
    want = sorted(rows, key=lambda row: row[0])
    got = sorted(data.draw(st.permutations(want)), key=lambda row: row[0])
    types = ("bigint", "bigint")
    assert compare(result(types, got), Answer(list(want), (0,))) is None
    backwards = list(reversed(want))
    if [row[0] for row in backwards] != [row[0] for row in want]:
        assert compare(result(types, backwards), Answer(list(want), (0,))) is not None


def test_a_limit_may_keep_any_of_the_equal_rows_at_its_end() -> None:
    types = ("bigint", "varchar")
    want: list[tuple[Any, ...]] = [(9, "a"), (5, "b"), (5, "c")]
    other = result(types, [(9, "a"), (5, "b"), (5, "d")])
    assert compare(other, Answer(want, (0,), open_end=True)) is None
    assert compare(other, Answer(want, (0,))) is not None
    first = result(types, [(9, "z"), (5, "b"), (5, "c")])
    assert compare(first, Answer(want, (0,), open_end=True)) is not None
    key = result(types, [(9, "a"), (5, "b"), (4, "c")])
    assert compare(key, Answer(want, (0,), open_end=True)) is not None


@given(st.decimals(-(10**6), 10**6, places=15))
def test_an_average_rounded_by_the_engine_is_right_and_a_unit_off_is_not(exact: Decimal) -> None:
    unit = Decimal("0.000001")
    rounded = exact.quantize(unit, ROUND_HALF_UP)
    answer = Answer([(str(exact),)], (), as_text=True)
    assert compare(result(["decimal(19,6)"], [(rounded,)]), answer) is None
    assert compare(result(["decimal(19,6)"], [(rounded + 2 * unit,)]), answer) is not None


def test_an_exact_sum_must_be_equal() -> None:
    answer = Answer([("380456",)], (), as_text=True)
    assert compare(result(["decimal(25,2)"], [(Decimal("380456.00"),)]), answer) is None
    assert compare(result(["decimal(25,2)"], [(Decimal("380456.01"),)]), answer) is not None


def test_an_average_may_have_more_digits_than_the_double_that_is_expected() -> None:
    def told(got: str, want: str) -> str | None:
        return compare(
            result(["decimal(38,12)"], [(Decimal(got),)]), Answer([(want,)], (), as_text=True)
        )

    assert told("35785.709306937349", "35785.70930693735") is None
    assert told("35691.129209074398", "35691.129209074395") is None
    assert told("35785.709306937379", "35785.70930693735") is not None  # four roundings
    # No double is written so: it is the sum itself.
    assert told("55909065222.827693", "55909065222.827692") is not None
    assert told("35785.7094", "35785.7093") is not None
    # A sum of whole numbers is no average, though a double may be written so.
    assert told("123456789012345678", "123456789012345680") is not None


@pytest.mark.parametrize(
    ("got", "want", "right"),
    [
        ("25.5751546114546921", "25.575154611454693", True),  # what the double leaves out
        ("25.5751546113546921", "25.575154611454693", False),
        ("35691.129209074398", "35691.129209074395", True),
        ("0.3333333333333333", "0.33333333333333331", True),
        ("0.3333333333333334", "0.33333333333333331", True),  # within the noise of a double
        ("0.3333333333433333", "0.33333333333333331", False),
        ("15", "15.48654581228407", False),  # no quotient: it has too few digits
        ("380456.00", "380456", True),
        ("380456.01", "380456", False),
    ],
)
def test_a_decimal_without_a_scale_is_judged_by_its_digits(
    got: str, want: str, right: bool
) -> None:
    found = compare(result(["numeric"], [(Decimal(got),)]), Answer([(want,)], (), as_text=True))
    assert (found is None) == right


@pytest.mark.parametrize("kind", ["numeric", "double"])
@pytest.mark.parametrize("odd", ["NaN", "Infinity", "-Infinity", "no number"])
def test_what_is_no_finite_number_equals_itself_alone(kind: str, odd: str) -> None:
    for other in ("NaN", "Infinity", "-Infinity", "no number", "1.5"):
        found = compare(result([kind], [(odd,), ("1.5",)]), Answer([(other,), ("1.5",)], ()))
        assert (found is None) == (odd == other), (odd, other)


def test_padding_of_a_char_does_not_count_and_leading_blanks_do() -> None:
    answer = Answer([("RAIL",)], ())
    assert compare(result(["char(10)"], [("RAIL      ",)]), answer) is None
    assert compare(result(["char(10)"], [(" RAIL",)]), answer) is not None


def test_null_is_not_zero_and_not_the_empty_text() -> None:
    assert compare(result(["bigint"], [(0,)]), Answer([("",)], (), as_text=True)) is not None
    assert compare(result(["bigint"], [(None,)]), Answer([("",)], (), as_text=True)) is None
    assert compare(result(["varchar"], [("",)]), Answer([(None,)], ())) is not None


def test_the_difference_names_the_rows() -> None:
    said = compare(
        result(("bigint", "varchar"), [(1, "a"), (2, "x")]), Answer([(1, "a"), (2, "b")], (0,))
    )
    assert said == "1 of 2 rows differ: row 2 is (2, x); expected (2, b) (c0, c1)"


def test_another_number_of_columns_is_told() -> None:
    assert compare(result(["bigint"], [(1,)]), Answer([(1, 2)], ())) == "1 columns, expected 2"


def test_rows_that_do_not_fit_their_columns_are_told() -> None:
    told = compare(result(["bigint"], [(1, 2)]), Answer([(1,)], ()))
    assert told == "a row of 2 values under 1 columns: a fault of the client"


@pytest.mark.parametrize(
    ("sql", "order", "limit"),
    [
        ("select a, b from t", (), None),
        ("select a, b from t order by b desc, t.a limit 10;", (1, 0), 10),
        ("select a, b from (select a from t order by c limit 3) x order by a", (0,), None),
        ("select a, b from t order by a, lower(b), b", (0,), None),
        ("select a, sum(b) over (order by a) b from t\nORDER BY\n    B NULLS LAST", (1,), None),
        ("select a, b from t order by a fetch first 10 rows only", (0,), 10),
        ("select a, b from t order by a OFFSET 5 ROWS FETCH NEXT ROW ONLY", (0,), 1),
        ("select a, b from t order by a, b fetch first 3 rows with ties", (0, 1), None),
        ("select a, b from t order by a limit 5, 10", (0,), 10),
        ("select a, b from t order by a limit 10 offset 5", (0,), 10),
        ("select a, b from t order by coalesce(a, b), a", (), None),
    ],
)
def test_the_order_is_read_from_the_text(
    sql: str, order: tuple[int, ...], limit: int | None
) -> None:
    assert ordering_of(sql, ("a", "b")) == (order, limit)


@pytest.mark.parametrize(
    ("sql", "asked"),
    [
        ("select a from t limit 10\n", "select a from t limit 11\n"),
        ("select a from t limit 10 offset 5", "select a from t limit 11 offset 5"),
        ("select a from t fetch first 10 rows only", "select a from t limit 11"),
        (
            "select a -- the first\nfrom t order by lower(b) desc, t.c limit 10",
            "select a -- the first\n, lower(b), t.c from t order by lower(b) desc, t.c limit 11",
        ),
    ],
)
def test_a_query_is_asked_for_more_rows_and_its_keys(sql: str, asked: str) -> None:
    outline = outline_of(bare(sql, STANDARD_SQL))
    assert with_keys(sql, outline, outline.keys, (outline.limit or 0) + 1) == asked


@pytest.mark.parametrize(
    "sql",
    [
        "select distinct a from t order by t.a",
        "select a from t union select a from u order by a",
        "(select a from t) order by a",
        "from t order by a",
    ],
)
def test_a_key_is_not_added_where_it_would_change_the_rows(sql: str) -> None:
    assert outline_of(sql).columns is None


@pytest.mark.parametrize(
    ("sql", "counted"),
    [
        ("select a from t order by b", False),
        ("select a from t limit 10", True),
        ("select a from t order by b limit 10", True),
        ("select a, sum(b) total from t group by a order by sum(b) limit 10", True),
        ("select a, sum(b) total from t group by a order by total limit 10", False),
        ("select * from t order by b limit 10", False),
        ("select a from t order by 1 limit 10", False),
        ("select a from t union select a from u order by a limit 10", False),
    ],
)
def test_a_limit_whose_keys_do_not_show_is_told_from_the_text(sql: str, counted: bool) -> None:
    assert is_only_counted(sql) is counted


def test_equal_values_have_one_text() -> None:
    long = "12345678901234567890123456789.10"
    for type_name, same in {
        "decimal(9,2)": (Decimal("100"), Decimal("100.00"), Decimal("1E+2")),
        "decimal(38,2)": (Decimal(long), Decimal(f"{long}0")),
        "decimal(3,1)": (Decimal("0.0"), Decimal("-0.00")),
        "char(3)": ("a", "a  "),
        "integer": (1, Decimal("1")),
    }.items():
        assert len({plain(value, type_name) for value in same}) == 1
    assert plain(Decimal(long), "numeric") == long[:-1]
    assert plain(None, "integer") is None
    assert plain("None", "varchar") != plain(None, "varchar")
    assert len({plain(Decimal(text), "numeric") for text in ("1", "10", "0.1", "NaN")}) == 4
