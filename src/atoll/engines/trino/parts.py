"""What Trino and Presto share outside their configuration: where they are found, and their SQL."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from atoll.engines.api import Table
from atoll.engines.trino.layout import CATALOG, SCHEMA
from atoll.errors import EngineFailed
from atoll.host.api import Host
from atoll.install import installed


def find_home(host: Host, engine: str, version: str, *, jar: str) -> tuple[str, str]:
    """(version, folder) of the engine: of that version, or a later one.

    Looked for where TRINO_HOME (PRESTO_HOME) says, among what `atoll engine install` fetched, and
    in /usr/lib. `jar` is a file of lib whose name ends with the version. Raises EngineFailed naming
    what was found.
    """
    found: dict[str, str] = {}
    pattern = re.compile(rf"{re.escape(jar)}-([\d.]+)\.jar")
    for home in _candidates(engine, version):
        try:
            names = host.list_dir(f"{home}/lib")
        except OSError:
            continue
        versions = [match[1] for name in names if (match := pattern.fullmatch(name))]
        if versions and _numbers(versions[0]) >= _numbers(version):
            return versions[0], home
        found[home] = versions[0] if versions else f"no {engine}"
    have = ", ".join(f"what is in {home} is {said}" for home, said in found.items())
    name = engine.capitalize()
    raise EngineFailed(
        f"{name} {version} or later is needed; {have or 'none was found'}; install it with: "
        f"atoll engine install {engine}, or set {engine.upper()}_HOME"
    )


def _candidates(engine: str, version: str) -> Iterator[str]:
    said = os.environ.get(f"{engine.upper()}_HOME")
    if said:
        yield os.path.abspath(said)
    part = installed(f"{engine}-server-{version}")
    if part:
        yield part
    yield f"/usr/lib/{engine}"


def _numbers(version: str) -> list[int]:
    return [int(number) for number in version.split(".") if number]


def attach(table: Table, *, scheme: str) -> list[str]:
    """The table's folder as an external table, with statistics: plans rest on them."""
    name = f"{CATALOG}.{SCHEMA}.{table.name}"
    columns = ", ".join(f"{column.name} {column.type}" for column in table.columns)
    folder = os.path.dirname(table.path).replace("'", "''")
    return [
        f"create schema if not exists {CATALOG}.{SCHEMA}",
        # Another scale factor's may have that name; its files stay.
        f"drop table if exists {name}",
        f"create table {name} ({columns}) "
        f"with (external_location = '{scheme}://{folder}', format = 'PARQUET')",
        f"analyze {name}",
    ]
