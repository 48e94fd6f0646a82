"""What a MariaDB server is told, from the slot that it sits on. Pure.

The buffer pool follows MariaDB's documentation (Memory Allocation); that nothing is made durable
follows its pages on innodb_flush_log_at_trx_commit and innodb_doublewrite. What neither the plan
nor the end of a deployment decides keeps MariaDB's default.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Mapping

from atoll.engines.mariadb import option_file
from atoll.engines.mariadb.option_file import INCLUDING
from atoll.engines.server import sizes
from atoll.engines.userconfig.included import Included, included, refuse_closed
from atoll.engines.userconfig.tree import UserTree
from atoll.errors import UsageError
from atoll.schema.plan import Slot

DATABASE = "atoll"
USER = "atoll"  # any name would do: nobody is asked for one
# Bytewise, blanks at the end included, as the other engines compare.
COLLATION = "utf8mb4_nopad_bin"

_MIB = 1 << 20
# MariaDB's own defaults of join_buffer_size, join_buffer_space_limit, sort_buffer_size,
# tmp_memory_table_size.
_DEFAULT_JOIN_BYTES = 256 << 10
_DEFAULT_JOINS_BYTES = 2 * _MIB
_DEFAULT_SORT_BYTES = 2 * _MIB
_DEFAULT_TABLE_BYTES = 16 * _MIB
# MariaDB's own default; beside it a stream of queries for each thread.
_DEFAULT_CONNECTIONS = 151
# A query may sort, join and fill a temporary table at the same time. With as many queries as
# threads that is 3/8 of the heap, which is what the plan leaves beside it.
_PARTS = 8
# Buffers of one query's joins: MariaDB refuses a query whose buffers exceed what it is given room
# for together ('Could not create a join buffer', seen on Q8 with a single one's room).
_JOINS = 16
_LEAST_IO_THREADS, _MOST_IO_THREADS = 2, 64
# With a user's own configuration: where a server would write beside its data directory, and what
# would reach beyond the deployment. The last are set only where the user has them, or may have
# them; not every build knows them.
_CONFIGS = ("my.cnf", "mariadb.cnf")
_GROUPS = ("mysqld", "server", "mariadb", "mariadbd", "client-server", "galera")
_VERSIONED = ("mysqld", "mariadb", "mariadbd")
_GROUP = re.compile(rf"(?:{'|'.join(_GROUPS)})(?:-\d+\.\d+)?")
_FOLDERS = (
    "innodb_data_home_dir",
    "innodb_log_group_home_dir",
    "innodb_undo_directory",
    "aria_log_dir_path",
)
_LOGS = ("general_log_file", "slow_query_log_file")
# What another option of the user's would switch on again, so these are the last: any of TLS (nobody
# comes over the network, and the key may be another account's), and log_bin.
_LAST = "skip_ssl\nskip_log_bin\n"
_APART = {
    "wsrep_on": "OFF",  # it would join the user's cluster
    "innodb_numa_interleave": "OFF",
    "feedback": "OFF",
    "innodb_data_file_path": "ibdata1:12M:autoextend",  # as the template has it
}
# Sizes that are part of what an empty server was measured to weigh: MariaDB's defaults.
_DEFAULT_BUFFERS_BYTES = {
    "key_buffer_size": 128 * _MIB,
    "aria_pagecache_buffer_size": 128 * _MIB,
    "innodb_log_buffer_size": 16 * _MIB,
    "query_cache_size": 1 * _MIB,
}


def socket_path(slot: Slot, run_dir: str) -> str:
    return f"{run_dir}/mariadb-{slot.index}.sock"


def placement(slot: Slot, *, data: str, run_dir: str, home: str) -> dict[str, str]:
    """What the slot decides, and what makes it a server that only this deployment has."""
    io_threads = str(min(max(slot.threads, _LEAST_IO_THREADS), _MOST_IO_THREADS))
    return {
        "basedir": home,
        "datadir": data,
        "tmpdir": data,
        "socket": socket_path(slot, run_dir),
        "pid_file": f"{data}/mariadb.pid",
        "init_file": f"{run_dir}/init.sql",
        "skip_networking": "ON",
        # The kernel lets only this user and root open the socket, and both could read the data
        # anyway: a password on top would guard nothing.
        "skip_grant_tables": "ON",
        "skip_log_bin": "ON",
        "skip_log_error": "ON",  # stderr
        "innodb_buffer_pool_size": str(slot.heap_bytes),
        # Where pages lie is atoll-exec's to say. MariaDB is not always built with this one.
        "loose_innodb_numa_interleave": "OFF",
        "innodb_read_io_threads": io_threads,
        "innodb_write_io_threads": io_threads,
        "thread_handling": "one-thread-per-connection",
    }


# Where the data does not outlive the deployment.
_NOT_DURABLE = {
    "innodb_flush_log_at_trx_commit": "0",
    "innodb_doublewrite": "OFF",
    "innodb_fast_shutdown": "3",  # what is in memory is not written at the end
}


def choices(slot: Slot, *, durable: bool = False) -> dict[str, str]:
    """What a user's own configuration may decide otherwise."""
    # Linear in what plans hold equal (heap and threads), so that it is equal between policies too.
    work = slot.heap_bytes // (slot.threads * _PARTS)
    table = str(max(work, _DEFAULT_TABLE_BYTES))
    return {
        "max_connections": str(_DEFAULT_CONNECTIONS + slot.threads),
        "character_set_server": "utf8mb4",
        "collation_server": COLLATION,
        "sort_buffer_size": str(max(work, _DEFAULT_SORT_BYTES)),
        "join_buffer_size": str(max(work // _JOINS, _DEFAULT_JOIN_BYTES)),
        "join_buffer_space_limit": str(max(work, _DEFAULT_JOINS_BYTES)),
        # Rows of the other table are fetched in the order of its key, a buffer full at a time, and
        # equal ones without a key are found by hashing. MariaDB has both, but not switched on.
        "join_cache_level": "8",
        "optimizer_switch": "mrr=on,mrr_sort_keys=on",
        "tmp_memory_table_size": table,
        "max_heap_table_size": table,
        **({} if durable else _NOT_DURABLE),
        "innodb_buffer_pool_dump_at_shutdown": "OFF",
        "innodb_buffer_pool_load_at_startup": "OFF",
        "loose_feedback": "OFF",  # nothing is told to anybody
    }


def check_base(base: UserTree) -> None:
    """Raises UsageError for a tree that has no configuration, or one that cannot be read."""
    _asked(base, included(base, config_of(base), INCLUDING), ())


def config_of(base: UserTree) -> str:
    """The option file that the others are included from."""
    refuse_closed(base, _CONFIGS)
    found = next((name for name in _CONFIGS if name in base.texts), None)
    if found is None:
        raise UsageError(
            f"{base.root}: has no {' or '.join(_CONFIGS)}; give the folder that it lies in "
            "('mariadbd --help --verbose' tells)"
        )
    return found


def on_base(
    base: UserTree, ours: Mapping[str, str], *, folder: str, version: str
) -> dict[str, str]:
    """The user's files below `folder`, with our settings in the one that the others are included
    from."""
    config = config_of(base)
    files = included(base, config, INCLUDING)
    release = ".".join(version.split(".")[:2])
    if release:
        groups = {*_GROUPS, *(f"{name}-{release}" for name in _VERSIONED)}
    else:  # of a machine that is not here: those of any release
        groups = {*_GROUPS, *_release_groups(base, files)}
    asked = _APART.keys() if files.elsewhere else _asked(base, files, groups)
    data = ours["datadir"]
    settings = {key: value for key, value in ours.items() if not key.startswith("loose_")}
    settings |= dict.fromkeys(_FOLDERS, data)
    settings |= {key: f"{data}/{key}" for key in _LOGS}
    merged = option_file.merge(
        files.texts[config], "mariadbd", settings, where=f"{base.root}/{config}", also=groups
    )
    apart = "".join(f"loose_{key} = {value}\n" for key, value in _APART.items() if key in asked)
    texts = {**files.texts, config: f"{merged}\n[mariadbd]\n{_LAST}{apart}"}
    return {f"{folder}/{path}": text for path, text in texts.items()}


def taken(base: UserTree) -> dict[str, int]:
    """Option -> bytes beyond its default that each server uses in addition to its buffer pool.
    Groups of any release count. Source: MariaDB 10.11, "Server System Variables"."""
    files = included(base, config_of(base), INCLUDING)
    all_groups = _release_groups(base, files)
    found = []
    for path, text in {**files.in_place, **files.texts}.items():
        found.append(option_file.read(text, all_groups, where=f"{base.root}/{path}"))
    theirs = sizes.largest(found, unit_bytes=dict.fromkeys(_DEFAULT_BUFFERS_BYTES, 1))
    return {
        name: max(0, theirs.get(name, 0) - default)
        for name, default in _DEFAULT_BUFFERS_BYTES.items()
    }


def _release_groups(base: UserTree, files: Included) -> set[str]:
    """The groups that the user has of a server of any release."""
    return {
        piece.section
        for path, text in {**files.in_place, **files.texts}.items()
        for piece in option_file.pieces(text, where=f"{base.root}/{path}")
        if _GROUP.fullmatch(piece.section)
    }


def _asked(base: UserTree, files: Included, groups: Collection[str]) -> set[str]:
    """The options that the user has in those groups. Raises UsageError for what is none."""
    asked: set[str] = set()
    for path, text in {**files.in_place, **files.texts}.items():
        asked |= option_file.read(text, groups, where=f"{base.root}/{path}").keys()
    return asked


def init_sql() -> str:
    return f"create database if not exists {DATABASE} collate {COLLATION};\n"


def programs(home: str) -> tuple[str, str]:
    """The server, and what makes its data directory.

    A system's package has the prefix /usr; a tarball of MariaDB's, or a build of one's own, lies
    anywhere else and is laid out otherwise (its INSTALL_LAYOUT is STANDALONE)."""
    if posixpath.basename(home) == "usr":
        return f"{home}/sbin/mariadbd", f"{home}/bin/mariadb-install-db"
    return f"{home}/bin/mariadbd", f"{home}/scripts/mariadb-install-db"


def install_db(home: str) -> tuple[str, ...]:
    """The command that makes an empty data directory, {}."""
    return (
        programs(home)[1],
        "--no-defaults",
        f"--basedir={home}",
        "--datadir={}",
        "--skip-test-db",
        "--skip-name-resolve",
        "--auth-root-authentication-method=normal",
        # The least; a server makes one of the size that it is told when it starts.
        "--innodb-log-file-size=4M",
    )
