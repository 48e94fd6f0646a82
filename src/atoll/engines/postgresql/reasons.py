"""Why PostgreSQL is told what it is told; see `postgresql_settings`."""

from __future__ import annotations

from atoll.engines.explained import Reasons, Why

_CONSUMPTION = "PostgreSQL's manual, Resource consumption"
_PLANNING = "PostgreSQL's manual, Query planning"
_CONNECTIONS = "PostgreSQL's manual, Connections and authentication"
_LOCATIONS = "PostgreSQL's manual, File locations"
_ERRORS = "PostgreSQL's manual, Error handling"
_LOGGING = "PostgreSQL's manual, Error reporting and logging"
_WORKERS = "the slot's threads: a server must not start more processes than its slot has CPUs"

REASONS: Reasons = {
    "data_directory": Why("one of its own for each server", _LOCATIONS),
    "hba_file": Why("who may connect: the owner of the socket's folder", _LOCATIONS),
    "ident_file": Why("empty: no account stands for another", _LOCATIONS),
    "listen_addresses": Why("nothing listens to the network; there is the socket", _CONNECTIONS),
    "port": Why("only part of the socket's name", _CONNECTIONS),
    "unix_socket_directories": Why("a folder that is closed to others", _CONNECTIONS),
    "unix_socket_permissions": Why("closed to others", _CONNECTIONS),
    "shared_buffers": Why(
        "25 % of the slot's memory, which the manual starts with; the page cache has the rest",
        _CONSUMPTION,
    ),
    "huge_pages": Why("the default: taken where there are some", _CONSUMPTION),
    "max_connections": Why(
        "the default, and one for each thread: WIM gets as many streams of queries as the finest "
        "policy has servers",
        _CONNECTIONS,
    ),
    "work_mem": Why(
        "as much as shared_buffers for the work of all processes of a query, with 4 sorts or hash "
        "tables each at the same time",
        _CONSUMPTION,
    ),
    "effective_cache_size": Why(
        "the slot's memory less shared_buffers; a plan that counts on more would be wrong",
        _PLANNING,
    ),
    "max_parallel_workers_per_gather": Why(_WORKERS + ", less the session's own", _CONSUMPTION),
    "max_parallel_maintenance_workers": Why(_WORKERS + ", less the session's own", _CONSUMPTION),
    "max_parallel_workers": Why(_WORKERS, _CONSUMPTION),
    "max_worker_processes": Why(_WORKERS, _CONSUMPTION),
    "max_logical_replication_workers": Why("it would keep a process of its own", ""),
    "min_dynamic_shared_memory": Why(
        "room for one hash join at its largest, made at the start and on the slot's node",
        _CONSUMPTION,
    ),
    "dynamic_shared_memory_type": Why(
        "what is beyond lies in the data directory, and not in /dev/shm, where a killed server "
        "would leave it",
        _CONSUMPTION,
    ),
    "restart_after_crash": Why("a lost process is seen, and not hidden by a restart", _ERRORS),
    "client_connection_check_interval": Why("who hangs up has the query ended", _CONNECTIONS),
    "log_destination": Why("the journal or the terminal that it is started from", _LOGGING),
    "logging_collector": Why("no process of its own for the log", _LOGGING),
    "fsync": Why("the data does not outlive the deployment", "the manual, Non-durable settings"),
    "synchronous_commit": Why("as fsync", "the manual, Non-durable settings"),
    "full_page_writes": Why("as fsync", "the manual, Non-durable settings"),
    # in a configuration of the user's
    "ssl": Why("nobody comes over the network, and the key may be another account's", _CONNECTIONS),
    "archive_mode": Why("nothing is written to the user's archive", "the manual, Write ahead log"),
    "external_pid_file": Why("the user's own server has that file", _LOCATIONS),
    "synchronous_standby_names": Why(
        "a commit would wait for the user's standbys", "the manual, Replication"
    ),
    "unix_socket_group": Why("one that the account may not be in", _CONNECTIONS),
    "local": Why("the kernel lets only the folder's owner and root open the socket", _CONNECTIONS),
    "-c": Why("where the configuration is", _LOCATIONS),
}
