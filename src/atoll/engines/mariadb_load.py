"""Loads a suite into MariaDB, once: a template data directory that instances copy.

Rows come in the order of the primary key, as Parquet has them, into a table that was empty: InnoDB
then builds it in bulk (MariaDB's documentation, How to Quickly Insert Data Into MariaDB). Other
indexes follow in one ALTER TABLE, then ANALYZE TABLE with histograms. Tables are loaded side by
side, as many as there are CPUs.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from atoll.engines import mariadb_client
from atoll.engines.base import Column, Data, Installation, Progress, Table
from atoll.engines.loading import (
    Meter,
    Server,
    loaded_path,
    make_empty,
    make_once,
    parquet_bytes,
    run_all,
    started,
)
from atoll.engines.mariadb_settings import (
    COLLATION,
    environment,
    init_sql,
    install_db,
    text_of,
)
from atoll.engines.parquet_text import lines_of, longest_texts, rows_of
from atoll.errors import EngineFailed
from atoll.store.files import write_atomic
from atoll.store.paths import run_dir

_CONNECT_S = 10.0
_PATIENCE_S = 24 * 3600.0  # of one statement; a large table takes its time
# The empty template, its copy and the log; then tables and indexes over Parquet: measured 6.6.
_EMPTY_BYTES = 384 << 20
_TIMES_PARQUET = 7
_COPYING = 0.6  # of a table's time; the rest goes into its indexes
_LONGEST_VARCHAR = 16383  # 65,535 bytes of 4 a character
_LOG = "atoll-load.log"

_SETTINGS = {
    "skip_networking": "ON",
    "skip_grant_tables": "ON",
    "skip_log_bin": "ON",
    "skip_log_error": "ON",
    "character_set_server": "utf8mb4",
    "collation_server": COLLATION,
    "local_infile": "ON",
    "innodb_buffer_pool_size": "512M",
    "innodb_sort_buffer_size": "16M",
    # What is loaded is brought to the disk as a whole in the end.
    "innodb_flush_log_at_trx_commit": "0",
    "innodb_doublewrite": "OFF",
    "innodb_log_file_size": "256M",
    "innodb_fast_shutdown": "0",  # everything merged and written: instances begin clean
    "innodb_buffer_pool_dump_at_shutdown": "OFF",
    "innodb_buffer_pool_load_at_startup": "OFF",
    "loose_feedback": "OFF",
}


def load(data: Data, installation: Installation, empty: str, *, progress: Progress) -> None:
    """Make the template of `data` beside the `empty` one, unless it is there."""

    def make(folder: Path) -> None:
        home = installation.home
        make_empty(empty, install_db(home), environment(home))
        shutil.copytree(empty, folder)
        with _server(installation, folder, _SETTINGS) as (server, path):
            _load_all(data, server, path, progress)
            server.end(signal.SIGTERM)
        # Once more, so that the log is small: every instance copies it.
        with _server(installation, folder, _SETTINGS | {"innodb_log_file_size": "4M"}) as (
            server,
            _,
        ):
            server.end(signal.SIGTERM)
        (folder / _LOG).unlink()

    make_once(
        Path(loaded_path(empty, data)),
        data,
        needed_bytes=_EMPTY_BYTES + _TIMES_PARQUET * parquet_bytes(data),
        progress=progress,
        make=make,
    )


@contextlib.contextmanager
def _server(
    installation: Installation, folder: Path, settings: dict[str, str]
) -> Iterator[tuple[Server, str]]:
    """A server on that data directory, and the path of its socket."""
    # A socket's path ends at 107 bytes. Always the same one, so that the next load takes away what
    # a killed one has left.
    run = run_dir(f"load-{hashlib.sha256(bytes(folder)).hexdigest()[:8]}")
    try:
        path = str(run / "mariadb.sock")
        config = settings | {
            "basedir": installation.home,
            "datadir": str(folder),
            "tmpdir": str(folder),
            "socket": path,
            "pid_file": str(run / "mariadb.pid"),
            "init_file": str(run / "init.sql"),
        }
        write_atomic(run / "init.sql", init_sql(), mode=0o600)
        write_atomic(run / "load.cnf", text_of(config), mode=0o600)
        with started(
            "MariaDB",
            (f"{installation.home}/sbin/mariadbd", f"--defaults-file={run}/load.cnf"),
            env=environment(installation.home),
            log=folder / _LOG,
        ) as server:
            server.await_answer(lambda: _answers(path))
            yield server, path
    finally:
        shutil.rmtree(run, ignore_errors=True)


def _answers(path: str) -> bool:
    try:
        mariadb_client.at(path, timeout_s=_CONNECT_S).close()
    except EngineFailed:
        return False
    return True


def _load_all(data: Data, server: Server, path: str, progress: Progress) -> None:
    rows = {table.name: rows_of(table) for table in data.tables}
    meter = Meter(rows)
    what = f"loading {data.name} into MariaDB"
    began = time.monotonic()
    largest_first = sorted(data.tables, key=lambda table: -rows[table.name])
    run_all(
        [partial(_load_table, table, path, meter) for table in largest_first],
        at_once=len(os.sched_getaffinity(0)),
        server=server,
        tell=lambda: progress(what, min(meter.part, 0.99)),
    )
    progress(f"{what}: {time.monotonic() - began:.0f} s", 1.0)


def _load_table(table: Table, path: str, meter: Meter) -> None:
    client = mariadb_client.at(path, timeout_s=_CONNECT_S, local_infile=True, autocommit=False)
    try:
        _do(client, "set unique_checks = 0, foreign_key_checks = 0")
        _do(client, f"create table {_name(table.name)} ({_definition(table)}) engine = innodb")
        with lines_of(table) as lines:
            _do(
                client,
                f"load data local infile '/dev/fd/{lines.descriptor}' into table "
                f"{_name(table.name)} character set utf8mb4 fields terminated by ',' "
                "optionally enclosed by '\"' escaped by ''",
            )
            lines.check()
        _do(client, "commit")
        meter.done[table.name] = _COPYING
        if table.indexes:
            added = ", ".join(f"add index ({_names(columns)})" for columns in table.indexes)
            _do(client, f"alter table {_name(table.name)} {added}")
        _do(client, f"analyze table {_name(table.name)} persistent for all")
        meter.done[table.name] = 1.0
    finally:
        client.close()


def _do(client: mariadb_client.MariaDBClient, sql: str) -> None:
    client.execute(sql, timeout_s=_PATIENCE_S)


def _definition(table: Table) -> str:
    longest = longest_texts(table)
    parts = [f"{_name(column.name)} {_type(column, longest)}" for column in table.columns]
    if table.primary_key:
        parts.append(f"primary key ({_names(table.primary_key)})")
    return ", ".join(parts)


def _type(column: Column, longest: dict[str, int]) -> str:
    """A text is as long as the longest is: temporary tables give each its full length."""
    if column.type != "varchar":
        return column.type
    length = max(longest[column.name], 1)
    return f"varchar({length})" if length <= _LONGEST_VARCHAR else "longtext"


def _names(columns: tuple[str, ...]) -> str:
    return ", ".join(map(_name, columns))


def _name(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
