"""How MariaDB loads tables.

Rows come in the order of the primary key, as in the Parquet file, into an empty table, so that
InnoDB builds it in bulk (MariaDB's documentation, How to Quickly Insert Data Into MariaDB). One
ALTER TABLE adds the other indexes. Then ANALYZE TABLE makes histograms of a sample.
"""

from __future__ import annotations

import signal

import pymysql

from atoll.engines.api import Column, Table
from atoll.engines.explained import values
from atoll.engines.loading.parquet_text import lines_of, longest_texts
from atoll.engines.loading.templates import Meter
from atoll.engines.mariadb import client as mariadb_client
from atoll.engines.mariadb.settings import ALIKE
from atoll.engines.server.loader import CONNECT_S, Loader
from atoll.engines.server.per_slot import ServerPerSlot
from atoll.errors import DiskFull, EngineFailed

_STATEMENT_S = 24 * 3600.0
# ER_DISK_FULL, ER_RECORD_FILE_FULL; `started` finds what the server only logs.
_DISK_FULL = ((1021,), (1114,))
_COPYING = 0.6  # of a table's time; its indexes take the rest
_LONGEST_VARCHAR = 16383  # 65,535 bytes at 4 a character


def loader(engine: ServerPerSlot) -> Loader:
    return Loader(
        engine=engine,
        settings={
            **values(ALIKE),
            "local_infile": "ON",
            "innodb_buffer_pool_size": "512M",
            "innodb_sort_buffer_size": "16M",
            # Atoll syncs the whole data directory at the end.
            "innodb_flush_log_at_trx_commit": "0",
            "innodb_doublewrite": "OFF",
            "innodb_log_file_size": "256M",
            "innodb_fast_shutdown": "0",  # merges and writes everything: instances start clean
            # For a large table some 100,000 rows make as good a histogram, and of indexes MariaDB
            # reads all rows in any case. With all rows ANALYZE took as long as LOAD DATA.
            "analyze_sample_percentage": "0",
        },
        settings_after={"innodb_log_file_size": "4M"},  # every instance copies the log
        load_table=_load_table,
        stop=signal.SIGTERM,
        empty_bytes=384 << 20,
        bytes_per_parquet_byte=7,  # measured: 6.6
    )


def _load_table(path: str, table: Table, meter: Meter) -> None:
    client = mariadb_client.at(path, timeout_s=CONNECT_S, local_infile=True, autocommit=False)
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
    try:
        client.execute(sql, timeout_s=_STATEMENT_S)
    except EngineFailed as fault:
        if isinstance(fault.__cause__, pymysql.Error) and fault.__cause__.args[:1] in _DISK_FULL:
            raise DiskFull(str(fault)) from None
        raise


def _definition(table: Table) -> str:
    longest = longest_texts(table)
    parts = [f"{_name(column.name)} {_type(column, longest)}" for column in table.columns]
    if table.primary_key:
        parts.append(f"primary key ({_names(table.primary_key)})")
    return ", ".join(parts)


def _type(column: Column, longest: dict[str, int]) -> str:
    """A text column is as long as its longest text: temporary tables allocate the full length."""
    if column.type != "varchar":
        return column.type
    length = max(longest[column.name], 1)
    return f"varchar({length})" if length <= _LONGEST_VARCHAR else "longtext"


def _names(columns: tuple[str, ...]) -> str:
    return ", ".join(map(_name, columns))


def _name(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
