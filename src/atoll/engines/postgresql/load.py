"""How PostgreSQL loads tables.

The order is the manual's (Populating a Database). First COPY into a table that the same transaction
created, so that nothing is logged and rows are frozen at once. Then primary keys and indexes. Then
VACUUM and ANALYZE.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from typing import Any

import psycopg
from psycopg import sql

from atoll.engines.api import Column, Table
from atoll.engines.loading.parquet_text import lines_of
from atoll.engines.loading.templates import Meter
from atoll.engines.postgresql import client as postgresql_client
from atoll.engines.server.loader import CONNECT_S, Loader
from atoll.engines.server.per_slot import ServerPerSlot
from atoll.errors import DiskFull, EngineFailed
from atoll.host.api import Host

_BLOCK_BYTES = 1 << 18
_COPYING = 0.6  # of a table's time; its indexes take the rest


def loader(engine: ServerPerSlot, host: Host) -> Loader:
    workers = str(len(host.affinity(0)))
    return Loader(
        engine=engine,
        settings={
            "shared_buffers": "256MB",
            "maintenance_work_mem": "256MB",
            "autovacuum": "off",
            # PostgreSQL logs nothing of tables that the same transaction created. Atoll syncs the
            # whole data directory at the end.
            "wal_level": "minimal",
            "max_wal_senders": "0",
            "max_logical_replication_workers": "0",
            "fsync": "off",
            "synchronous_commit": "off",
            "full_page_writes": "off",
            # PostgreSQL keeps segments of the log for later, and every instance would copy them.
            "min_wal_size": "32MB",
            "max_wal_size": "1GB",
            "max_worker_processes": workers,
            "max_parallel_workers": workers,
            "max_parallel_maintenance_workers": workers,
        },
        load_table=_load_table,
        finish=_finish,
        stop=signal.SIGINT,
        abort=signal.SIGQUIT,  # ends at once too, and removes its shared memory
        empty_bytes=128 << 20,
        bytes_per_parquet_byte=6,  # measured: 5
    )


def _load_table(path: str, table: Table, meter: Meter) -> None:
    name = sql.Identifier(table.name)
    with session_at(path) as session:
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
    with session_at(path) as session:
        session.execute("vacuum (freeze, analyze)")
        session.execute("checkpoint")


def _column(column: Column) -> sql.Composed:
    # PostgreSQL has no 'double' alone.
    kind = "double precision" if column.type == "double" else column.type
    return sql.SQL("{} {}").format(sql.Identifier(column.name), sql.SQL(kind))


def _names(columns: tuple[str, ...]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, columns))


@contextlib.contextmanager
def session_at(path: str) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    """Raises EngineFailed if PostgreSQL refuses a statement, DiskFull if the disk is full."""
    try:
        with postgresql_client.connect(path, timeout_s=CONNECT_S) as session:
            yield session
    except psycopg.errors.DiskFull as fault:
        raise DiskFull(postgresql_client.reason(fault)) from None
    except psycopg.Error as fault:
        raise EngineFailed(postgresql_client.reason(fault)) from None
