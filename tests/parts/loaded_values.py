"""Loads a table of awkward values and says as JSON what the engine holds then.

    python -m tests.parts.loaded_values ENGINE FOLDER

A process of its own, because such servers refuse root (`ORDINARY_USER`). The Parquet file is made
in FOLDER.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import duckdb

from atoll.engines import registry
from atoll.engines.api import Column, Data, LoadingEngine, Table
from atoll.engines.calls import holding
from atoll.host.local import LocalHost
from atoll.host.topology import read_machine
from atoll.plan import make_plan
from atoll.store.files import sha256
from atoll.supervise.launch import launch

TEXTS = (
    None,
    "",
    "NULL",
    "null",
    "\\N",
    "a,b",
    'say "x"',
    '"',
    "two\nlines",
    "cr\r\n",
    "back\\slash\\",
    " blanks ",
    "it's",
    "ä€😀",
    "\t",
)
COLUMNS = (
    Column("id", "bigint"),
    Column("text", "varchar"),
    Column("ratio", "double"),
    Column("price", "decimal(15,2)"),
    Column("day", "date"),
)
SQL = "select id, text, ratio, price, day from awkward order by id"


def rows() -> list[list[object]]:
    """As JSON holds them."""
    return [
        [n, text, *((None,) * 3 if n % 2 else (n + 0.1, f"-{n}.50", f"19{n + 10}-01-31"))]
        for n, text in enumerate(TEXTS)
    ]


def table_in(folder: Path) -> Table:
    path = folder / "awkward/awkward.parquet"
    path.parent.mkdir()
    types = ", ".join(f'"{column.name}" {column.type}' for column in COLUMNS)
    with duckdb.connect() as connection:
        connection.execute(f"create table awkward ({types})")
        connection.executemany("insert into awkward values (?, ?, ?, ?, ?)", rows())
        connection.execute(f"copy awkward to '{path}' (format parquet)")
    return Table("awkward", str(path), COLUMNS, ("id",), (("day", "price"),))


def main() -> None:
    name, folder = sys.argv[1], Path(sys.argv[2])
    table = table_in(folder)
    data = Data("awkward", sha256(table.path), (table,))
    engine, host, machine = registry.get(name), LocalHost(), read_machine()
    assert isinstance(engine, LoadingEngine)
    engine.load(data, engine.locate(host), host=host, progress=lambda what, part: None)
    plan = make_plan(machine, engine.traits, "wim", heap_limit_bytes=256 << 20)
    loaded = holding(engine, data)
    with launch(plan, loaded, machine=machine, host=host, name=f"values-{name}") as running:
        found = running.clients[0].execute(SQL, timeout_s=60).rows
    print(json.dumps(found, default=str))


if __name__ == "__main__":
    main()
