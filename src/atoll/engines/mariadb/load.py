"""Loads a suite into MariaDB, once: a template data directory that instances copy.

Rows come in the order of the primary key, as Parquet has them, into a table that was empty: InnoDB
then builds it in bulk (MariaDB's documentation, How to Quickly Insert Data Into MariaDB). Other
indexes follow in one ALTER TABLE, then ANALYZE TABLE with histograms of a sample. Tables are loaded
side by side, as many as there are CPUs.
"""

from __future__ import annotations

import contextlib
import shutil
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from atoll.engines.api import Column, Data, Installation, Progress, Table
from atoll.engines.loading.parquet_text import lines_of, longest_texts
from atoll.engines.loading.server import Server, run_folder, started
from atoll.engines.loading.templates import (
    Meter,
    load_all,
    loaded_path,
    make_empty,
    make_once,
    parquet_bytes,
)
from atoll.engines.mariadb import client as mariadb_client
from atoll.engines.mariadb import option_file
from atoll.engines.mariadb.settings import COLLATION, init_sql, install_db, programs
from atoll.engines.server.per_slot import environment
from atoll.errors import EngineFailed
from atoll.store.files import write_atomic

_CONNECT_S = 60.0
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
    # Of a large table some 100,000 rows give as good a histogram, and of indexes all is read in any
    # case. With all rows ANALYZE took as long as LOAD DATA.
    "analyze_sample_percentage": "0",
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
            load_all(data, partial(_load_table, path), server=server, progress=progress)
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
    with run_folder(folder) as run:
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
        write_atomic(run / "load.cnf", option_file.write("mariadbd", config), mode=0o600)
        with started(
            "MariaDB",
            (programs(installation.home)[0], f"--defaults-file={run}/load.cnf"),
            env=environment(installation.home),
            log=folder / _LOG,
        ) as server:
            server.await_answer(lambda: _answers(path))
            yield server, path


def _answers(path: str) -> bool:
    try:
        mariadb_client.at(path, timeout_s=_CONNECT_S).close()
    except EngineFailed:
        return False
    return True


def _load_table(path: str, table: Table, meter: Meter) -> None:
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
