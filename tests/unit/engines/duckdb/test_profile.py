"""DuckDB's profile of a query: one that DuckDB 1.5.5 wrote of TPC-H's Q18."""

from __future__ import annotations

import json
from typing import Any

import pytest

from atoll.engines.duckdb.profile import operators_of
from atoll.schema.operators import Kind
from tests.parts.paths import GOLDEN


def test_the_operators_are_those_of_the_plan() -> None:
    profile = json.loads((GOLDEN / "plans/duckdb-1.5.5-q18.json").read_text())
    found = operators_of(profile)
    assert sum(one.own_s or 0 for one in found) == pytest.approx(profile["cpu_time"], rel=1e-3)
    joins = [(one.join, one.tables) for one in found if one.kind is Kind.JOIN]
    assert joins == [
        ("inner", ("customer", "lineitem", "lineitem", "orders")),
        ("inner", ("customer", "lineitem", "orders")),
        ("semi", ("lineitem", "orders")),
    ]
    scans = [(one.tables, one.rows) for one in found if one.kind is Kind.SCAN]
    assert sorted(scans)[1:3] == [(("lineitem",), 85457), (("lineitem",), 600572)]
    assert [one.kind for one in found if one.operator == "HASH_GROUP_BY"] == [Kind.AGGREGATE] * 2


@pytest.mark.parametrize("profile", [None, {}, {"children": []}, {"children": [{}]}])
def test_another_document_is_a_value_error(profile: Any) -> None:
    with pytest.raises(ValueError, match=r".+"):
        operators_of(profile)
