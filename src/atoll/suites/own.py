"""The user's own suite: a folder of .sql files, with an optional manifest `suite.toml`.

    q1.sql            a query, named after its file
    q1.spark.sql      its text for one engine
    suite.toml        all keys are optional:

        name = "sales"            # default: the folder's name
        answers = "duckdb"        # or "first"; see below

        [tables]
        orders = "data/orders.parquet"

Tables are Parquet files, which every engine reads or loads. Without tables the data is the engine's
own. The right answers are DuckDB's on the files, from q1.duckdb.sql or else q1.sql. With `answers =
"first"`, and without tables, the first answer of a run is the one that others must equal.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from atoll.engines import registry
from atoll.engines.api import Column, Progress, Table
from atoll.engines.facts import STANDARD_SQL
from atoll.errors import UsageError
from atoll.host.api import Host
from atoll.schema.base import Record, what_is_wrong
from atoll.schema.size import MIB
from atoll.schema.text import first_line
from atoll.store.files import sha256
from atoll.store.once import make_once, require_room
from atoll.store.paths import cache_dir
from atoll.suites import reference
from atoll.suites.answers import by_reference
from atoll.suites.base import Answer, DataSet
from atoll.suites.folder import natural, read_folder, read_small, require_file

MANIFEST = "suite.toml"
_NAME = r"[A-Za-z_]\w*"
# DuckDB's types in the words of standard SQL, where they differ.
_TYPES = {
    "float": "real",
    "hugeint": "decimal(38,0)",
    "tinyint": "smallint",
    "utinyint": "smallint",
    "usmallint": "integer",
    "uinteger": "bigint",
    "ubigint": "decimal(20,0)",
}
_KNOWN = re.compile(
    r"boolean|smallint|integer|bigint|real|double|date|varchar|timestamp|decimal\(.*\)"
)


class Manifest(Record):
    name: str | None = Field(default=None, pattern=r"^[\w.-]+$")
    answers: Literal["duckdb", "first"] | None = None
    tables: dict[str, str] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Own:
    """See `atoll.suites.base.Suite`."""

    folder: Path
    manifest: Manifest
    texts: Mapping[str, Mapping[str, str]]  # query -> engine, or '' for all others -> SQL
    checksum: str  # over the manifest, and the names and texts of all queries

    @property
    def name(self) -> str:
        return self.manifest.name or self.folder.resolve().name

    @property
    def tables(self) -> tuple[str, ...]:
        return tuple(self.manifest.tables)

    @property
    def query_names(self) -> tuple[str, ...]:
        return tuple(self.texts)

    @property
    def knows_answers(self) -> bool:
        return bool(self.tables) and self.manifest.answers != "first"

    def queries(self, engine: str) -> Mapping[str, str]:
        """Those that have a text for the engine."""
        return {
            query: texts[engine if engine in texts else ""]
            for query, texts in self.texts.items()
            if engine in texts or "" in texts
        }

    def text(self, query: str, engine: str) -> str:
        """Raises UsageError if the query has no text for the engine."""
        found = self.queries(engine).get(query)
        if found is None:
            raise UsageError(
                f"{self.folder}: {query} has no text for {engine}; add {query}.sql or "
                f"{query}.{engine}.sql"
            )
        return found

    def reference_text(self, query: str) -> str:
        """Raises UsageError if the query has no text for DuckDB."""
        found = self.queries("duckdb").get(query)
        if found is None:
            raise UsageError(
                f"{self.folder}: {query} has no text for DuckDB, the reference for answers; add "
                f'{query}.sql or {query}.duckdb.sql, or write answers = "first" into {MANIFEST}'
            )
        return found

    def notes(self, queries: Sequence[str]) -> list[str]:
        """What may be a slip in the names of the files."""
        dotted = {query: query.rpartition(".")[2] for query in queries if "." in query}
        return [
            f"{query}.sql is a query of its own, because {engine!r} is no engine"
            for query, engine in dotted.items()
        ]

    def ensure_data(self, scale_factor: float | None, *, host: Host, progress: Progress) -> DataSet:
        """The user's files, as they are now. Raises UsageError for one that is no Parquet file, and
        as `atoll.store.once.make_once` for one that must be copied."""
        checksums: dict[str, str] = {}
        for table, path in self.manifest.tables.items():
            progress(f"computing the checksum of {path}", None)
            checksums[table] = _checksum(self.folder / path)
        both = "".join(f"{table} {checksums[table]}\n" for table in sorted(checksums))
        checksum = hashlib.sha256(both.encode()).hexdigest() if both else ""
        root = cache_dir("own") / f"{self.name}-{checksum[:12]}"
        tables = tuple(self._table(root, table, progress) for table in checksums)
        return DataSet(self.name, None, root, tables, checksum, suite_checksum=self.checksum)

    def _table(self, root: Path, name: str, progress: Progress) -> Table:
        path = self.folder / self.manifest.tables[name]
        columns = _columns(path)
        return Table(name, str(_alone(path, root / name, progress)), columns)

    def expected(self, query: str, data: DataSet) -> Answer:
        text = self.reference_text(query)
        try:
            return by_reference(text, data)
        except Exception as fault:  # DuckDB's own
            raise UsageError(
                f"{self.folder}: DuckDB, the reference for answers, refuses {query} "
                f"({first_line(str(fault))}); correct it, or if another engine takes it, add "
                f'{query}.duckdb.sql or write answers = "first" into {MANIFEST}'
            ) from None


def read_own(path: str) -> Own:
    """The suite in a folder. Raises UsageError naming the file that is wrong, and why."""
    folder = read_folder(path, STANDARD_SQL)
    root = Path(path)
    manifest, text = _manifest(root / MANIFEST)
    texts: dict[str, dict[str, str]] = {}
    for stem, sql in folder.texts.items():
        query, _, engine = stem.rpartition(".")
        if not query or engine not in registry.names():
            query, engine = stem, ""
        texts.setdefault(query, {})[engine] = sql
    checksum = hashlib.sha256(f"{len(text)} {text}{folder.checksum}".encode()).hexdigest()
    ordered = {query: texts[query] for query in sorted(texts, key=natural)}
    return Own(root, manifest, ordered, checksum)


def _manifest(path: Path) -> tuple[Manifest, str]:
    if not os.path.lexists(path):
        return Manifest(), ""
    text = read_small(path)
    try:
        manifest = Manifest.model_validate(tomllib.loads(text))
    except ValidationError as fault:
        raise UsageError(f"{path}: {what_is_wrong(fault)}") from None
    except ValueError as fault:
        raise UsageError(f"{path}: is not TOML ({fault})") from None
    spelt: dict[str, str] = {}
    for table in manifest.tables:
        if (other := spelt.setdefault(table.lower(), table)) != table:
            raise UsageError(
                f"{path}: {other!r} and {table!r} are one table, because SQL ignores the case of "
                "names; rename one of them"
            )
        if not re.fullmatch(_NAME, table):
            raise UsageError(f"{path}: {table!r} is not a name of a table; use letters, 0-9 and _")
    if manifest.answers == "duckdb" and not manifest.tables:
        raise UsageError(f"{path}: DuckDB can answer only on tables; list them in [tables]")
    return manifest, text


def _checksum(path: Path) -> str:
    try:
        require_file(path)
        with path.open("rb") as file:
            if file.read(4) != b"PAR1":
                raise UsageError(f"{path}: is not a Parquet file")
        return sha256(path)
    except OSError as fault:
        raise UsageError(f"{path}: cannot be read ({fault.strerror})") from None


def _columns(path: Path) -> tuple[Column, ...]:
    quoted = str(path).replace("'", "''")
    try:
        _, rows = reference.run(f"describe select * from read_parquet('{quoted}')", {})
    except Exception as fault:  # DuckDB's own
        raise UsageError(f"{path}: cannot be read ({first_line(str(fault))})") from None
    columns = []
    for name, kind, *_ in rows:
        standard = _TYPES.get(kind.lower(), kind.lower())
        if not _KNOWN.fullmatch(standard):
            raise UsageError(
                f"{path}: column {name} has the type {kind}, which not every engine has; leave it "
                "out of the file"
            )
        columns.append(Column(name, standard))
    return tuple(columns)


def _alone(path: Path, folder: Path, progress: Progress) -> Path:
    """The file in a folder of its own, because Hive's tables are folders.

    A hard link, because the file may be large, or a copy where there can be none. A symbolic link
    would not do: Trino 476 takes its length for that of the file. Raises as
    `atoll.store.once.make_once`.
    """
    place = folder / f"{folder.name}.parquet"
    what = f"a copy of {path}, which is on another file system"

    def is_whole(_: Path) -> bool:
        if place.is_symlink() or not place.exists():
            return False
        ours, users = place.stat(), path.stat()
        copied = (ours.st_size, ours.st_mtime_ns) == (users.st_size, users.st_mtime_ns)
        return copied or place.samefile(path)

    def make(made: Path) -> None:
        made.mkdir()
        try:
            os.link(path.resolve(), made / place.name)
        except OSError:
            progress(f"making {what}", None)
            require_room(folder.parent, path.stat().st_size + MIB, what)
            shutil.copy2(path, made / place.name)

    folder.parent.mkdir(parents=True, exist_ok=True)
    make_once(folder, make, what=what, is_whole=is_whole)
    return place
