"""The settings of a MariaDB server, from the slot that it runs on. Pure.

The buffer pool follows MariaDB's documentation (Memory Allocation). That nothing is durable follows
its pages on innodb_flush_log_at_trx_commit and innodb_doublewrite. All other settings keep
MariaDB's default.

The functions are documented in `atoll.engines.server.per_slot.ServerSettings`.
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
USER = "atoll"  # the server accepts any name
# Bytewise with trailing blanks, as in the other engines.
COLLATION = "utf8mb4_nopad_bin"

_MIB = 1 << 20
# MariaDB's defaults of join_buffer_size, join_buffer_space_limit, sort_buffer_size,
# tmp_memory_table_size.
_DEFAULT_JOIN_BYTES = 256 << 10
_DEFAULT_JOINS_BYTES = 2 * _MIB
_DEFAULT_SORT_BYTES = 2 * _MIB
_DEFAULT_TABLE_BYTES = 16 * _MIB
_DEFAULT_CONNECTIONS = 151  # MariaDB's default; we add one per thread, for a stream of queries
# A query may sort, join and fill a temporary table at the same time. With as many queries as
# threads that is 3/8 of the heap, which the plan leaves free beside it.
_PARTS = 8
# Join buffers of one query: MariaDB refuses a query whose buffers exceed the limit for all of them
# ('Could not create a join buffer', seen on Q8 with room for a single one).
_JOINS = 16
_LEAST_IO_THREADS, _MOST_IO_THREADS = 2, 64
_CONFIGS = ("my.cnf", "mariadb.cnf")
_GROUP = "mariadbd"
_GROUPS = ("mysqld", "server", "mariadb", _GROUP, "client-server", "galera")
_VERSIONED = ("mysqld", "mariadb", _GROUP)
_SERVER_GROUP = re.compile(rf"(?:{'|'.join(_GROUPS)})(?:-\d+\.\d+)?")
# With a user's configuration: paths at which a server would write outside its data directory.
_FOLDERS = (
    "innodb_data_home_dir",
    "innodb_log_group_home_dir",
    "innodb_undo_directory",
    "aria_log_dir_path",
)
_LOGS = ("general_log_file", "slow_query_log_file")
# Other options of the user would switch these on again, so they come last: any option of TLS
# (nobody connects over the network, and the key may belong to another account), and log_bin.
_LAST = "skip_ssl\nskip_log_bin\n"
# These reach beyond the deployment. Not every build knows them, so they are set only where the user
# sets them, or may set them.
_APART = {
    "wsrep_on": "OFF",  # the server would join the user's cluster
    "innodb_numa_interleave": "OFF",
    "feedback": "OFF",
    "innodb_data_file_path": "ibdata1:12M:autoextend",  # as in the template
}
# MariaDB's defaults, which are part of the measured size of an empty server.
_DEFAULT_BUFFERS_BYTES = {
    "key_buffer_size": 128 * _MIB,
    "aria_pagecache_buffer_size": 128 * _MIB,
    "innodb_log_buffer_size": 16 * _MIB,
    "query_cache_size": 1 * _MIB,
}


def programs(home: str) -> tuple[str, str]:
    """A system's package has the prefix /usr. A tarball of MariaDB or a user's own build has any
    other prefix and another layout (its INSTALL_LAYOUT is STANDALONE)."""
    if posixpath.basename(home) == "usr":
        return f"{home}/sbin/mariadbd", f"{home}/bin/mariadb-install-db"
    return f"{home}/bin/mariadbd", f"{home}/scripts/mariadb-install-db"


def make_empty(home: str) -> tuple[str, ...]:
    return (
        programs(home)[1],
        "--no-defaults",
        f"--basedir={home}",
        "--datadir={}",
        "--skip-test-db",
        "--skip-name-resolve",
        "--auth-root-authentication-method=normal",
        # The smallest; a server enlarges it to its own setting when it starts.
        "--innodb-log-file-size=4M",
    )


def arguments(config: str) -> tuple[str, ...]:
    return (f"--defaults-file={config}",)  # MariaDB takes it as the first argument only


def socket_path(run_dir: str, index: int) -> str:
    return f"{run_dir}/mariadb-{index}.sock"


def shared_files() -> dict[str, str]:
    return {"init.sql": f"create database if not exists {DATABASE} collate {COLLATION};\n"}


def location(index: int, *, data: str, run_dir: str, home: str) -> dict[str, str]:
    return {
        "basedir": home,
        "datadir": data,
        "tmpdir": data,
        "socket": socket_path(run_dir, index),
        "pid_file": f"{data}/mariadb.pid",
        "init_file": f"{run_dir}/init.sql",
        "skip_networking": "ON",
        "skip_grant_tables": "ON",  # see `atoll.engines.server.per_slot`
        "skip_log_bin": "ON",
        "skip_log_error": "ON",  # the log goes to stderr
    }


def placement(slot: Slot) -> dict[str, str]:
    io_threads = str(min(max(slot.threads, _LEAST_IO_THREADS), _MOST_IO_THREADS))
    return {
        "innodb_buffer_pool_size": str(slot.heap_bytes),
        # atoll-exec decides where pages lie. Not every build of MariaDB knows this option.
        "loose_innodb_numa_interleave": "OFF",
        "innodb_read_io_threads": io_threads,
        "innodb_write_io_threads": io_threads,
        "thread_handling": "one-thread-per-connection",
    }


# Every server starts alike, with the same text, and reports nothing to anybody.
ALIKE = {
    "character_set_server": "utf8mb4",
    "collation_server": COLLATION,
    "innodb_buffer_pool_dump_at_shutdown": "OFF",
    "innodb_buffer_pool_load_at_startup": "OFF",
    "loose_feedback": "OFF",
}
# For data that is deleted with the deployment.
_NOT_DURABLE = {
    "innodb_flush_log_at_trx_commit": "0",
    "innodb_doublewrite": "OFF",
    "innodb_fast_shutdown": "3",  # does not write the buffer pool at the end
}


def choices(slot: Slot, *, durable: bool) -> dict[str, str]:
    # Linear in heap and threads, which plans keep equal, so that policies get equal buffers too.
    work = slot.heap_bytes // (slot.threads * _PARTS)
    table = str(max(work, _DEFAULT_TABLE_BYTES))
    return {
        "max_connections": str(_DEFAULT_CONNECTIONS + slot.threads),
        **ALIKE,
        "sort_buffer_size": str(max(work, _DEFAULT_SORT_BYTES)),
        "join_buffer_size": str(max(work // _JOINS, _DEFAULT_JOIN_BYTES)),
        "join_buffer_space_limit": str(max(work, _DEFAULT_JOINS_BYTES)),
        # MariaDB fetches rows of the other table in the order of its key, one buffer at a time, and
        # joins without a key by hashing. Both are off by default.
        "join_cache_level": "8",
        "optimizer_switch": "mrr=on,mrr_sort_keys=on",
        "tmp_memory_table_size": table,
        "max_heap_table_size": table,
        **({} if durable else _NOT_DURABLE),
    }


def write(settings: Mapping[str, str]) -> str:
    return option_file.write(_GROUP, settings)


def check_base(base: UserTree) -> None:
    _names(base, included(base, config_of(base), INCLUDING), ())


def config_of(base: UserTree) -> str:
    refuse_closed(base, _CONFIGS)
    found = next((name for name in _CONFIGS if name in base.texts), None)
    if found is None:
        raise UsageError(
            f"{base.root}: no {' or '.join(_CONFIGS)} found; give the folder that contains it "
            "('mariadbd --help --verbose' prints its path)"
        )
    return found


def on_base(
    base: UserTree, ours: Mapping[str, str], *, folder: str, version: str
) -> dict[str, str]:
    config = config_of(base)
    files = included(base, config, INCLUDING)
    release = ".".join(version.split(".")[:2])
    if release:
        groups = {*_GROUPS, *(f"{name}-{release}" for name in _VERSIONED)}
    else:  # rendered for another machine: groups of any release
        groups = {*_GROUPS, *_release_groups(base, files)}
    names = _APART.keys() if files.elsewhere else _names(base, files, groups)
    data = ours["datadir"]
    settings = {key: value for key, value in ours.items() if not key.startswith("loose_")}
    settings |= dict.fromkeys(_FOLDERS, data)
    settings |= {key: f"{data}/{key}" for key in _LOGS}
    merged = option_file.merge(
        files.texts[config], _GROUP, settings, where=f"{base.root}/{config}", also=groups
    )
    apart = "".join(f"loose_{key} = {value}\n" for key, value in _APART.items() if key in names)
    texts = {**files.texts, config: f"{merged}\n[{_GROUP}]\n{_LAST}{apart}"}
    return {f"{folder}/{path}": text for path, text in texts.items()}


def taken(base: UserTree) -> dict[str, int]:
    """Beyond the defaults, in the groups of any release. Source: MariaDB 10.11, "Server System
    Variables"."""
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
    """The user's groups for a server of any release."""
    return {
        piece.section
        for path, text in {**files.in_place, **files.texts}.items()
        for piece in option_file.pieces(text, where=f"{base.root}/{path}")
        if _SERVER_GROUP.fullmatch(piece.section)
    }


def _names(base: UserTree, files: Included, groups: Collection[str]) -> set[str]:
    """The options that the user sets in those groups."""
    names: set[str] = set()
    for path, text in {**files.in_place, **files.texts}.items():
        names |= option_file.read(text, groups, where=f"{base.root}/{path}").keys()
    return names
