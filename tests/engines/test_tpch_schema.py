"""The columns, types and keys that engines make TPC-H's tables with are those of the data."""

from __future__ import annotations

from atoll.suites import reference
from atoll.suites.tpch_data import TABLES
from tests.parts.answers import data_at


def test_columns_types_and_keys_are_those_of_the_files() -> None:
    data = data_at(0.01)
    assert tuple(table.name for table in data.tables) == TABLES
    for table in data.tables:
        _, described = reference.run(f"describe {table.name}", data.files)
        found = [(name, kind.lower()) for name, kind, *_ in described]
        assert found == [(column.name, column.type) for column in table.columns]
        key = ", ".join(table.primary_key)
        _, twice = reference.run(
            f"select {key} from {table.name} group by {key} having count(*) > 1", data.files
        )
        assert twice == []
        names = {column.name for column in table.columns}
        assert {name for index in table.indexes for name in index} <= names
