"""Loads a suite into PostgreSQL, once: a template data directory that instances copy.

The order is the manual's (Populating a Database): COPY into a table that was made in the same
transaction, so that nothing is logged and rows are frozen as they come; then primary keys and
indexes; then VACUUM and ANALYZE. Tables are loaded side by side, as many as there are CPUs.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from atoll.engines.api import Column, Data, Installation, Progress, Table
from atoll.engines.loading.parquet_text import lines_of
from atoll.engines.loading.server import Server, run_folder, started
from atoll.engines.loading.templates import (
    Meter,
    load_all,
    loaded_path,
    make_empty,
    make_once,
    parquet_bytes,
)
from atoll.engines.postgresql import client as postgresql_client
from atoll.engines.postgresql import config_file
from atoll.engines.postgresql.settings import FIRST_PORT, initdb, programs
from atoll.engines.server.per_slot import environment
from atoll.errors import EngineFailed
from atoll.store.files import write_atomic

_CONNECT_S = 60.0
_BLOCK_BYTES = 1 << 18
# The empty template, its copy and the log; then tables and indexes over Parquet: measured 5.
_EMPTY_BYTES = 128 << 20
_TIMES_PARQUET = 6
_COPYING = 0.6  # of a table's time; the rest goes into its indexes
_LOG = "atoll-load.log"

_SETTINGS = {
    "listen_addresses": "",
    "port": str(FIRST_PORT),
    "unix_socket_permissions": "0700",
    "shared_buffers": "256MB",
    "maintenance_work_mem": "256MB",
    "dynamic_shared_memory_type": "mmap",
    "autovacuum": "off",
    # Nothing is logged of tables that are made in the same transaction; what is loaded is brought
    # to the disk as a whole in the end.
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_logical_replication_workers": "0",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    # Segments of the log are kept for later use, and would be copied with every instance.
    "min_wal_size": "32MB",
    "max_wal_size": "1GB",
    "restart_after_crash": "off",
    "log_destination": "stderr",
    "logging_collector": "off",
}


def load(data: Data, installation: Installation, empty: str, *, progress: Progress) -> None:
    """Make the template of `data` beside the `empty` one, unless it is there."""

    def make(folder: Path) -> None:
        home = installation.home
        make_empty(empty, initdb(home), environment(home))
        shutil.copytree(empty, folder)
        with _server(installation, folder) as (server, path):
            load_all(
                data,
                partial(_load_table, path),
                server=server,
                progress=progress,
                finish=partial(_finish, path),
            )
            server.end(signal.SIGINT)
        (folder / _LOG).unlink()

    make_once(
        Path(loaded_path(empty, data)),
        data,
        needed_bytes=_EMPTY_BYTES + _TIMES_PARQUET * parquet_bytes(data),
        progress=progress,
        make=make,
    )


@contextlib.contextmanager
def _server(installation: Installation, folder: Path) -> Iterator[tuple[Server, str]]:
    """A server on that data directory, and the path of its socket."""
    with run_folder(folder) as run:
        workers = str(len(os.sched_getaffinity(0)))
        write_atomic(run / "pg_hba.conf", "local all all trust\n", mode=0o600)
        write_atomic(run / "pg_ident.conf", "", mode=0o600)
        config = _SETTINGS | {
            "data_directory": str(folder),
            "hba_file": f"{run}/pg_hba.conf",
            "ident_file": f"{run}/pg_ident.conf",
            "unix_socket_directories": str(run),
            "max_worker_processes": workers,
            "max_parallel_workers": workers,
            "max_parallel_maintenance_workers": workers,
        }
        write_atomic(run / "load.conf", config_file.write(config), mode=0o600)
        path = str(run / f".s.PGSQL.{FIRST_PORT}")
        # By SIGQUIT it ends at once too, and takes its shared memory along.
        with started(
            "PostgreSQL",
            (programs(installation.home)[0], "-c", f"config_file={run}/load.conf"),
            env=environment(installation.home),
            log=folder / _LOG,
            abort=signal.SIGQUIT,
        ) as server:
            server.await_answer(lambda: _answers(path))
            yield server, path


def _answers(path: str) -> bool:
    try:
        postgresql_client.connect(path, timeout_s=_CONNECT_S).close()
    except psycopg.OperationalError:
        return False
    return True


def _load_table(path: str, table: Table, meter: Meter) -> None:
    name = sql.Identifier(table.name)
    with _session(path) as session:
        with session.transaction(), lines_of(table) as lines:
            columns = sql.SQL(", ").join(map(_column, table.columns))
            session.execute(sql.SQL("create table {} ({})").format(name, columns))
            copied = 0
            statement = sql.SQL("copy {} from stdin (format csv, null 'NULL', freeze)")
            with session.cursor().copy(statement.format(name)) as copy:
                while block := os.read(lines.descriptor, _BLOCK_BYTES):
                    copy.write(block)
                    copied += block.count(b"\n")
                    meter.done[table.name] = _COPYING * copied / meter.weights[table.name]
                lines.check()
        keys = sql.SQL("alter table {} add primary key ({})")
        index = sql.SQL("create index on {} ({})")
        made = [keys.format(name, _names(table.primary_key))] if table.primary_key else []
        made += [index.format(name, _names(columns)) for columns in table.indexes]
        for number, statement_made in enumerate(made, start=1):
            session.execute(statement_made)
            meter.done[table.name] = _COPYING + (1 - _COPYING) * number / len(made)


def _finish(path: str) -> None:
    with _session(path) as session:
        session.execute("vacuum (freeze, analyze)")
        session.execute("checkpoint")


def _column(column: Column) -> sql.Composed:
    # PostgreSQL has no 'double' alone.
    kind = "double precision" if column.type == "double" else column.type
    return sql.SQL("{} {}").format(sql.Identifier(column.name), sql.SQL(kind))


def _names(columns: tuple[str, ...]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, columns))


@contextlib.contextmanager
def _session(path: str) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    """Raises EngineFailed for whatever PostgreSQL refuses."""
    try:
        with postgresql_client.connect(path, timeout_s=_CONNECT_S) as session:
            yield session
    except psycopg.Error as fault:
        raise EngineFailed(postgresql_client.words(fault)) from None
