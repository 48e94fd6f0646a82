"""MariaDB's ANALYZE FORMAT=JSON: documents that MariaDB 10.11 wrote, and others."""

from __future__ import annotations

import json
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


@pytest.mark.parametrize("analyzed", [None, {}, {"query_block": 3}, {"query_block": {}}])
def test_another_document_is_a_value_error(analyzed: Any) -> None:
    with pytest.raises(ValueError, match=r".+: .+"):
        operators_of(analyzed)
