"""The settings of a MariaDB server, from the slot that it runs on. Pure.

Each setting stands with its reason and the reason's source, which `atoll render --explain` prints.
All other settings keep MariaDB's default.

The functions are documented in `atoll.engines.server.per_slot.ServerSettings`.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Mapping

from atoll.engines.explained import Reasons, Setting, Why, reasons, values
from atoll.engines.mariadb import option_file
from atoll.engines.mariadb.option_file import INCLUDING
from atoll.engines.server import sizes
from atoll.engines.userconfig.included import Included, first_file, in_order, included
from atoll.engines.userconfig.merge import read_pieces
from atoll.engines.userconfig.tree import UserTree
from atoll.schema.plan import LOOPBACK, Slot
from atoll.schema.size import MIB

DATABASE = "atoll"
USER = "atoll"  # the server accepts any name at its socket
_PASSWORD_FILE = "client.cnf"  # as MariaDB's clients read it
# Bytewise with trailing blanks, as in the other engines.
COLLATION = "utf8mb4_nopad_bin"

_MARIADB = "MariaDB's documentation, "
_MEMORY = _MARIADB + "Memory allocation"
_INNODB = _MARIADB + "InnoDB system variables"
_SERVER = _MARIADB + "Server system variables"

# MariaDB's defaults of join_buffer_size, join_buffer_space_limit, sort_buffer_size,
# tmp_memory_table_size.
_DEFAULT_JOIN_BYTES = 256 << 10
_DEFAULT_JOINS_BYTES = 2 * MIB
_DEFAULT_SORT_BYTES = 2 * MIB
_DEFAULT_TABLE_BYTES = 16 * MIB
_DEFAULT_CONNECTIONS = 151  # MariaDB's default; we add one per thread, for a stream of queries
_PARTS = 8  # of the heap, for the work of all queries: the plan leaves 3 of them free beside it
# Join buffers of one query ('Could not create a join buffer', seen on Q8 with room for one).
_JOINS = 16
_DEFAULT_IO_THREADS = 4  # MariaDB's default
_LEAST_IO_THREADS, _MOST_IO_THREADS = 2, 64
_IO_THREADS = ("innodb_read_io_threads", "innodb_write_io_threads")
_HANDLING, _POOL_SIZE = "thread_handling", "thread_pool_size"
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
# Other options of the user would switch these on again, so they come last.
_LAST = "skip_ssl\nskip_log_bin\n"
# These reach beyond the deployment. Not every build knows them, so they are set only where the user
# sets them, or may set them.
_APART = {
    "wsrep_on": Setting("OFF", "the server would join your cluster", _MARIADB + "Galera cluster"),
    "innodb_numa_interleave": Setting(
        "OFF", "it would undo where pages lie; not every build knows it", _INNODB
    ),
    "feedback": Setting("OFF", "the server sends no reports", _MARIADB + "Feedback plugin"),
    "innodb_data_file_path": Setting(
        "ibdata1:12M:autoextend", "as in the data directory that a server starts with", _INNODB
    ),
}
OTHER_REASONS: Reasons = {
    **{f"loose_{name}": why for name, why in reasons(_APART).items()},
    **dict.fromkeys(
        (*_FOLDERS, *_LOGS),
        Why("with the data: your own server may use the files that you named", _SERVER),
    ),
    "skip_ssl": Why(
        "nobody connects over the network, and the key may belong to another account; it comes "
        "last, because any other option of TLS switches it on",
        _MARIADB + "Securing connections for client and server",
    ),
    "--defaults-file": Why("this configuration file and no other", _SERVER),
}
# MariaDB's defaults, which are part of the measured size of an empty server.
_DEFAULT_BUFFERS_BYTES = {
    "key_buffer_size": 128 * MIB,
    "aria_pagecache_buffer_size": 128 * MIB,
    "innodb_log_buffer_size": 16 * MIB,
    "query_cache_size": 1 * MIB,
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


def socket_path(run_dir: str, index: int, *_: int) -> str:
    return f"{run_dir}/mariadb-{index}.sock"


def client_command(home: str, run_dir: str, index: int) -> tuple[str, ...]:
    socket = socket_path(run_dir, index)
    return (
        f"{home}/bin/mariadb",
        "--no-defaults",
        f"--socket={socket}",
        f"--user={USER}",
        DATABASE,
    )


def port_command(home: str, run_dir: str, port: int) -> tuple[dict[str, str], tuple[str, ...], str]:
    file = f"{run_dir}/{_PASSWORD_FILE}"
    words = (f"{home}/bin/mariadb", f"--defaults-file={file}", f"--host={LOOPBACK}")
    return {}, (*words, f"--port={port}", f"--user={USER}", DATABASE), file


def at_port(port: int) -> dict[str, Setting]:
    return {
        "skip_networking": Setting("OFF", "--port asks for a port", _SERVER),
        "bind_address": Setting(LOOPBACK, "nothing listens on the network", _SERVER),
        "port": Setting(str(port), "--port asks for it", _SERVER),
        "skip_grant_tables": Setting(
            "OFF", "any user of the machine can open the port, so it asks for a password", _SERVER
        ),
        "skip_name_resolve": Setting(
            "ON", "the accounts of the port and of the socket differ", _SERVER
        ),
    }


def login_files(password: str) -> dict[str, str]:
    everything = "grant all on *.* to {} with grant option"
    socket, port = f"{USER}@localhost", f"{USER}@'{LOOPBACK}'"
    statements = (
        # Root's account for this address, for example, has no password.
        "delete from mysql.global_priv where user <> 'mariadb.sys'",
        "flush privileges",
        f"create user {socket}",
        f"create user {port} identified by '{password}'",
        everything.format(socket),
        everything.format(port),
    )
    return {
        "init.sql": shared_files()["init.sql"] + "".join(f"{line};\n" for line in statements),
        _PASSWORD_FILE: f"[client]\npassword={password}\n",
    }


def shared_files() -> dict[str, str]:
    return {"init.sql": f"create database if not exists {DATABASE} collate {COLLATION};\n"}


def location(index: int, *, data: str, run_dir: str, home: str) -> dict[str, Setting]:
    return {
        "basedir": Setting(home, "the folder of the server's own files", _SERVER),
        "datadir": Setting(data, "each server has its own", _SERVER),
        "tmpdir": Setting(data, "on the scratch disk, with the data", _SERVER),
        "socket": Setting(socket_path(run_dir, index), "in a folder closed to others", _SERVER),
        "pid_file": Setting(f"{data}/mariadb.pid", "each server has its own", _SERVER),
        "init_file": Setting(
            f"{run_dir}/init.sql", "creates the database if it does not exist", _SERVER
        ),
        "skip_networking": Setting(
            "ON", "nothing listens on the network; there is the socket", _SERVER
        ),
        "skip_grant_tables": Setting(
            "ON", "only the folder's owner and root can open the socket", _SERVER
        ),
        "skip_log_bin": Setting("ON", "nobody replicates it", _SERVER),
        "skip_log_error": Setting("ON", "the log goes to stderr", _SERVER),
    }


def placement(slot: Slot) -> dict[str, Setting]:
    # wim has no ceiling below MariaDB's own.
    least = _LEAST_IO_THREADS if slot.cpus is not None else _DEFAULT_IO_THREADS
    io_threads = Setting(
        str(min(max(slot.threads, least), _MOST_IO_THREADS)),
        "the slot's threads, within MariaDB's bounds, 2 to 64; under wim at least the default, 4",
        _INNODB,
    )
    return {
        "innodb_buffer_pool_size": Setting(
            str(slot.heap_bytes),
            "60 % of the slot's memory, unless --heap or --page-cache say otherwise; MariaDB's "
            "documentation has 60 to 70 %, and every query has buffers of its own",
            _MEMORY,
        ),
        "loose_innodb_numa_interleave": Setting(
            "OFF",
            "the default, set because it would undo where pages lie; not every build knows it",
            _INNODB,
        ),
        **dict.fromkeys(_IO_THREADS, io_threads),
        _HANDLING: Setting(
            "one-thread-per-connection", "the default; your own configuration's stays", _SERVER
        ),
        _POOL_SIZE: Setting(
            str(slot.threads),
            "the slot's threads: by default a thread pool follows the machine's size",
            _MARIADB + "Thread pool",
        ),
    }


_ALIKE = "every start begins alike"
_DELETED = "the data is deleted with the deployment"

# Every server starts alike, with the same text, and reports nothing to anybody.
ALIKE = {
    "character_set_server": Setting("utf8mb4", "text is Unicode", _SERVER),
    "collation_server": Setting(
        COLLATION, "text compares bytewise, as in the other engines", _SERVER
    ),
    "innodb_buffer_pool_dump_at_shutdown": Setting("OFF", _ALIKE, _INNODB),
    "innodb_buffer_pool_load_at_startup": Setting("OFF", _ALIKE, _INNODB),
    "loose_feedback": Setting("OFF", "the server sends no reports", _MARIADB + "Feedback plugin"),
}
_NOT_DURABLE = {
    "innodb_flush_log_at_trx_commit": Setting("0", _DELETED, _INNODB),
    "innodb_doublewrite": Setting("OFF", _DELETED, _INNODB),
    "innodb_fast_shutdown": Setting(
        "3", "the buffer pool is not written at the end: the data is deleted", _INNODB
    ),
}


def choices(slot: Slot, *, durable: bool) -> dict[str, Setting]:
    # Linear in heap and threads, which plans keep equal, so that policies get equal buffers too.
    work = slot.heap_bytes // (slot.threads * _PARTS)
    why = (
        "heap / threads / 8, at least the default: a query may sort, join and fill a temporary "
        "table at the same time, and with a query per thread that is 3/8 of the heap"
    )
    table = str(max(work, _DEFAULT_TABLE_BYTES))
    return {
        "max_connections": Setting(
            str(_DEFAULT_CONNECTIONS + slot.threads),
            "the default, and one per thread: there are as many streams of queries",
            _SERVER,
        ),
        **ALIKE,
        "sort_buffer_size": Setting(str(max(work, _DEFAULT_SORT_BYTES)), why, _MEMORY),
        "join_buffer_size": Setting(
            str(max(work // _JOINS, _DEFAULT_JOIN_BYTES)),
            "a sixteenth of join_buffer_space_limit: every join of a query has one, and MariaDB "
            "refuses the query if they do not fit together",
            _MEMORY,
        ),
        "join_buffer_space_limit": Setting(str(max(work, _DEFAULT_JOINS_BYTES)), why, _MEMORY),
        "join_cache_level": Setting(
            "8",
            "joins by batches of keys and by hashing, which are off by default",
            _MARIADB + "Block-based join algorithms",
        ),
        "optimizer_switch": Setting(
            "mrr=on,mrr_sort_keys=on",
            "rows are fetched in the order of their key, a batch at a time; without it, "
            "join_cache_level has nothing to batch",
            _MARIADB + "Multi range read optimization",
        ),
        "tmp_memory_table_size": Setting(table, why, _MEMORY),
        "max_heap_table_size": Setting(
            table, "the same as tmp_memory_table_size; the smaller of the two applies", _MEMORY
        ),
        **({} if durable else _NOT_DURABLE),
    }


def write(settings: Mapping[str, str]) -> str:
    return option_file.write(_GROUP, settings)


def config_of(tree: UserTree) -> str:
    return first_file(tree, _CONFIGS, printed_by="mariadbd --help --verbose")


def on_tree(
    tree: UserTree, ours: Mapping[str, str], *, folder: str, version: str, whole: bool
) -> dict[str, str]:
    config = config_of(tree)
    files = included(tree, config, INCLUDING)
    release = ".".join(version.split(".")[:2])
    if release:
        groups = {*_GROUPS, *(f"{name}-{release}" for name in _VERSIONED)}
    else:  # rendered for another machine: groups of any release
        groups = {*_GROUPS, *_release_groups(tree, files)}
    names = _APART if files.elsewhere else set().union(*_read(tree, files, groups))
    data = ours["datadir"]
    settings = {key: value for key, value in ours.items() if not key.startswith("loose_")}
    kept = _kept(_theirs(tree, files, config, groups), ours, whole=whole)
    for name, value in kept.items():
        if files.elsewhere:  # where another value may stand
            settings[name] = value
        else:
            del settings[name]
    if whole or kept.get(_HANDLING) != "pool-of-threads":
        settings.pop(_POOL_SIZE, None)
    settings |= dict.fromkeys(_FOLDERS, data)
    settings |= {key: f"{data}/{key}" for key in _LOGS}
    merged = option_file.merge(
        files.texts[config], _GROUP, settings, where=f"{tree.root}/{config}", also=groups
    )
    apart = "".join(
        f"loose_{key} = {value}\n" for key, value in values(_APART).items() if key in names
    )
    texts = {**files.texts, config: f"{merged}\n[{_GROUP}]\n{_LAST}{apart}"}
    return {f"{folder}/{path}": text for path, text in texts.items()}


def _theirs(
    tree: UserTree, files: Included, config: str, groups: Collection[str]
) -> dict[str, str]:
    """The user's options, as the server would take them."""
    found = in_order(
        files, config, lambda path, text: option_file.pieces(text, where=f"{tree.root}/{path}")
    )
    return read_pieces(piece for piece in found if piece.section in groups)


def _kept(theirs: Mapping[str, str], ours: Mapping[str, str], *, whole: bool) -> dict[str, str]:
    """Those of the user's options that fit the slot and so replace Atoll's. `whole`: the slot is
    the machine, where every number of threads fits."""
    kept = {}
    for name in (*_IO_THREADS, _POOL_SIZE):
        value = theirs.get(name, "")
        if value.isdecimal() and (whole or int(value) <= int(ours[name])):
            kept[name] = value
    if theirs.get(_HANDLING):
        kept[_HANDLING] = theirs[_HANDLING]
    return kept


def taken(tree: UserTree) -> dict[str, int]:
    """Beyond the defaults, in the groups of any release. Source: MariaDB 10.11, "Server System
    Variables"."""
    files = included(tree, config_of(tree), INCLUDING)
    theirs = sizes.largest(
        _read(tree, files, _release_groups(tree, files)),
        unit_bytes=dict.fromkeys(_DEFAULT_BUFFERS_BYTES, 1),
    )
    return {
        name: max(0, theirs.get(name, 0) - default)
        for name, default in _DEFAULT_BUFFERS_BYTES.items()
    }


def _release_groups(tree: UserTree, files: Included) -> set[str]:
    """The user's groups for a server of any release."""
    return {
        piece.section
        for path, text in files.all_texts.items()
        for piece in option_file.pieces(text, where=f"{tree.root}/{path}")
        if _SERVER_GROUP.fullmatch(piece.section)
    }


def _read(tree: UserTree, files: Included, groups: Collection[str]) -> list[dict[str, str]]:
    """The options in those groups of each file."""
    return [
        option_file.read(text, groups, where=f"{tree.root}/{path}")
        for path, text in files.all_texts.items()
    ]
