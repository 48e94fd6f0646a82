"""Why MariaDB is told what it is told; see `mariadb_settings`."""

from __future__ import annotations

from atoll.engines.explained import Reasons, Why

_MEMORY = "MariaDB's documentation, Memory allocation"
_INNODB = "MariaDB's documentation, InnoDB system variables"
_SERVER = "MariaDB's documentation, Server system variables"
_WORK = (
    "a query may sort, join and fill a temporary table at the same time, and there are as many "
    "queries as threads: together 3/8 of the buffer pool"
)
_OWN_FILES = "beside the data: a server of the user's may have those files"
_NOT_LASTING = "the data does not outlive the deployment"

REASONS: Reasons = {
    "basedir": Why("where the server's own files are", _SERVER),
    "datadir": Why("one of its own for each server", _SERVER),
    "tmpdir": Why("beside the data, on the disk that was meant for it", _SERVER),
    "socket": Why("in a folder that is closed to others", _SERVER),
    "pid_file": Why("one of its own for each server", _SERVER),
    "init_file": Why("makes the database, if it is not there", _SERVER),
    "skip_networking": Why("nothing listens to the network; there is the socket", _SERVER),
    "skip_grant_tables": Why("only the folder's owner and root can open the socket", _SERVER),
    "skip_log_bin": Why("nobody replicates it", _SERVER),
    "skip_log_error": Why("the log goes where the server was started from", _SERVER),
    "innodb_buffer_pool_size": Why("60 % of the slot's memory, the rest for queries", _MEMORY),
    "loose_innodb_numa_interleave": Why(
        "where pages lie is numactl's or systemd's to say; not every build knows it", _INNODB
    ),
    "innodb_read_io_threads": Why("as many as the slot has threads, within bounds", _INNODB),
    "innodb_write_io_threads": Why("as many as the slot has threads, within bounds", _INNODB),
    "thread_handling": Why("the default: a thread for each connection, in the slot", _SERVER),
    "max_connections": Why(
        "the default, and one for each thread: there are as many streams of queries", _SERVER
    ),
    "character_set_server": Why("text is Unicode", _SERVER),
    "collation_server": Why("text compares bytewise, as in the other engines", _SERVER),
    "sort_buffer_size": Why(_WORK, _MEMORY),
    "join_buffer_size": Why(
        "a sixteenth of join_buffer_space_limit, since a query may have many joins", _MEMORY
    ),
    "join_buffer_space_limit": Why(_WORK, _MEMORY),
    "join_cache_level": Why(
        "joins by batches of keys and by hashing, which MariaDB has and does not switch on",
        "MariaDB's documentation, Block-based join algorithms",
    ),
    "optimizer_switch": Why(
        "rows are fetched in the order of their key, a batch at a time: without it "
        "join_cache_level has nothing to batch",
        "MariaDB's documentation, Multi range read optimization",
    ),
    "tmp_memory_table_size": Why(_WORK, _MEMORY),
    "max_heap_table_size": Why("as tmp_memory_table_size; the smaller of the two holds", _MEMORY),
    "innodb_flush_log_at_trx_commit": Why(_NOT_LASTING, _INNODB),
    "innodb_doublewrite": Why(_NOT_LASTING, _INNODB),
    "innodb_fast_shutdown": Why(_NOT_LASTING, _INNODB),
    "innodb_buffer_pool_dump_at_shutdown": Why("each start begins alike", _INNODB),
    "innodb_buffer_pool_load_at_startup": Why("each start begins alike", _INNODB),
    "loose_feedback": Why("nothing is told to anybody", "MariaDB's documentation, Feedback plugin"),
    # in a configuration of the user's
    "innodb_data_home_dir": Why(_OWN_FILES, _INNODB),
    "innodb_log_group_home_dir": Why(_OWN_FILES, _INNODB),
    "innodb_undo_directory": Why(_OWN_FILES, _INNODB),
    "aria_log_dir_path": Why(_OWN_FILES, "MariaDB's documentation, Aria system variables"),
    "general_log_file": Why(_OWN_FILES, _SERVER),
    "slow_query_log_file": Why(_OWN_FILES, _SERVER),
    "skip_ssl": Why(
        "nobody comes over the network, and the key may be another account's; the last, because "
        "any other option of TLS switches it on",
        "MariaDB's documentation, Securing connections for client and server",
    ),
    "loose_wsrep_on": Why(
        "it would join the user's cluster", "MariaDB's documentation, Galera cluster"
    ),
    "loose_innodb_data_file_path": Why(
        "as the data directory has it that a server begins with", _INNODB
    ),
    "--defaults-file": Why("this file and no other", _SERVER),
}
