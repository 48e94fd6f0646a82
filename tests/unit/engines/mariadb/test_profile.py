"""MariaDB's ANALYZE FORMAT=JSON: documents that MariaDB 10.11 wrote, and others."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from atoll.engines.mariadb.profile import operators_of
from atoll.schema.operators import Kind
from tests.parts.paths import GOLDEN


def recorded(query: str) -> Any:
    return json.loads((GOLDEN / f"plans/mariadb-10.11-{query}.json").read_text())


@pytest.mark.parametrize("query", ["q13", "q18"])
def test_all_the_time_is_an_operators(query: str) -> None:
    whole_s = recorded(query)["query_block"]["r_total_time_ms"] / 1000
    assert sum(one.own_s or 0 for one in operators_of(recorded(query))) == pytest.approx(whole_s)


def test_a_list_of_tables_is_a_chain_of_joins() -> None:
    joins = [one for one in operators_of(recorded("q18")) if one.kind is Kind.JOIN]
    assert [(one.operator, one.tables) for one in joins] == [
        ("block-nl-join BKAH ref", ("customer", "lineitem", "lineitem", "orders")),
        ("nested loop eq_ref", ("customer", "lineitem", "orders")),
        ("block-nl-join BKAH eq_ref", ("customer", "orders")),
    ]


def test_a_materialised_subquery_lies_below_the_table_that_it_is() -> None:
    found = {one.node: one for one in operators_of(recorded("q18"))}
    outside, inside = found["0.0.0.0.1"], found["0.0.0.0.1.0"]
    assert outside.tables == inside.tables == ("lineitem",)
    assert (inside.rows, outside.rows) == (60175, 2)
    assert inside.own_s == pytest.approx((19.09041396 + 15.2140489) / 1000)
    assert outside.own_s == pytest.approx((41.96896968 - 19.09041396 - 15.2140489) / 1000)


@pytest.mark.parametrize(
    ("query", "operators"),
    [
        (
            "never",  # the first table is empty, so the others are never read
            [
                ("nested loop ref", None),
                ("nested loop eq_ref", None),
                ("table access ALL", 0),
                ("table access eq_ref", 0),
                ("table access ref", 0),
            ],
        ),
        (
            "sorted",  # a table is read into a sort before it is joined
            [
                ("nested loop ref", None),
                ("nested loop", None),
                ("table access const", 0),
                ("filesort", 1000),
                ("table access ALL", 1000),
                ("table access ref", 2994),
            ],
        ),
        (
            "duplicates",  # a semi-join that removes duplicates
            [
                ("nested loop ref", None),
                ("nested loop eq_ref", None),
                ("table access ALL", 1000),
                ("table access eq_ref", 800),
                ("table access ref", 4800),
            ],
        ),
        ("union", [("table access ALL", 2000), ("table access ALL", 3000)]),
        ("impossible", []),
    ],
)
def test_plans_of_other_forms(query: str, operators: list[tuple[str, int | None]]) -> None:
    top, *found = operators_of(recorded(query))
    assert [(one.operator, one.rows) for one in found] == operators
    assert top.own_s is not None, "what no operator tells of"


def test_a_sort_that_reads_its_table_is_without_the_tables_time() -> None:
    whole_s = recorded("sorted")["query_block"]["r_total_time_ms"] / 1000
    found = operators_of(recorded("sorted"))
    assert sum(one.own_s or 0 for one in found) == pytest.approx(whole_s)
    (how,) = (one for one in recorded("sorted")["query_block"]["nested_loop"] if "table" not in one)
    sort = how["read_sorted_file"]["filesort"]
    below_ms = sort["table"]["r_table_time_ms"] + sort["table"]["r_other_time_ms"]
    (own_s,) = (one.own_s for one in found if one.kind is Kind.SORT)
    assert own_s == pytest.approx((sort["r_total_time_ms"] - below_ms) / 1000)


@pytest.mark.parametrize("block", [3, {}, {"nested_loop": []}, {"nested_loop": [{}]}])
def test_another_document_is_a_value_error(block: Any) -> None:
    documents: list[Any] = [{"query_block": block}, block, None]
    for analyzed in documents:
        with pytest.raises(ValueError, match=r".+"):
            operators_of(analyzed)


@pytest.mark.parametrize("ms", [math.nan, math.inf, -5.0])
def test_a_time_that_cannot_be_is_a_value_error(ms: float) -> None:
    found = recorded("q13")
    found["query_block"]["r_total_time_ms"] = ms
    with pytest.raises(ValueError, match="a time or a number in it is"):
        operators_of(found)
