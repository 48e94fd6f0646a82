"""What a PostgreSQL server is told, from the slot that it sits on. Pure.

Sizes follow PostgreSQL's manual, Server Configuration, Resource Consumption (shared_buffers,
work_mem, min_dynamic_shared_memory) and Query Planning (effective_cache_size); that nothing is
made durable follows its chapter Non-Durable Settings. What neither the plan nor the end of a
deployment decides keeps PostgreSQL's default.
"""

from __future__ import annotations

from collections.abc import Mapping

from atoll.engines.postgresql import config_file
from atoll.engines.postgresql.config_file import INCLUDING
from atoll.engines.server import sizes
from atoll.engines.userconfig.included import Included, included, refuse_closed
from atoll.engines.userconfig.tree import UserTree
from atoll.errors import UsageError
from atoll.schema.plan import Slot

_KIB = 1 << 10
_MIB = 1 << 20
SUPERUSER = "atoll"
CONFIG = "postgresql.conf"
FIRST_PORT = 5432  # only part of a socket's name
_PROCESSES = "max_worker_processes"
_DEFAULT_WORK_MEM_BYTES = 4 * _MIB
_MOST_PARALLEL = 1024  # PostgreSQL refuses more (MAX_PARALLEL_WORKER_LIMIT)
# Sorts and hash tables that one process of a query is given room for at the same time.
_OPERATIONS = 4
# PostgreSQL's own default; beside it a stream of queries for each thread.
_DEFAULT_CONNECTIONS = 100
_PAGE_BYTES = 8192  # in which wal_buffers counts where it has no unit
_VACUUM_WORKERS = 3  # PostgreSQL's default of autovacuum_max_workers
_MOST_VACUUM_BYTES = 1 << 30  # a vacuum uses no more, whatever it is allowed


def placement(slot: Slot, *, data: str, run_dir: str) -> dict[str, str]:
    """What the slot decides, and what makes it a server that only this deployment has."""
    buffers = slot.heap_bytes
    workers = min(slot.threads, _MOST_PARALLEL)
    return {
        "data_directory": data,
        "hba_file": f"{run_dir}/pg_hba.conf",
        "ident_file": f"{run_dir}/pg_ident.conf",
        "listen_addresses": "",
        "port": str(FIRST_PORT + slot.index),
        "unix_socket_directories": run_dir,
        "unix_socket_permissions": "0700",
        "shared_buffers": kib(buffers),
        # The manual: shared_buffers and the page cache that is the database's. That is the
        # slot's memory, less the work.
        "effective_cache_size": kib(max(slot.memory_bytes - buffers, buffers)),
        # The session's own process runs its share of a query too.
        "max_parallel_workers_per_gather": str(workers - 1),
        "max_parallel_maintenance_workers": str(workers - 1),
        "max_parallel_workers": str(workers),
        _PROCESSES: str(workers),
        # Parallel queries share memory that is a file in /dev/shm by default, which stays there
        # if the server is killed. So it is made at the start, within the main region, and large
        # enough for one hash join at its largest (hash_mem_multiplier is 2); what is beyond
        # that lies in a file of the data directory.
        "min_dynamic_shared_memory": f"{max(buffers // 2 // _MIB, 1)}MB",
        "dynamic_shared_memory_type": "mmap",
        # A lost process would be hidden by a restart, and a time over a loss is no measurement.
        "restart_after_crash": "off",
        # Who hangs up has the query cancelled.
        "client_connection_check_interval": "500ms",
        "log_destination": "stderr",
        "logging_collector": "off",
    }


# The manual's Non-Durable Settings, where the data does not outlive the deployment.
_NOT_DURABLE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


def choices(slot: Slot, *, durable: bool = False) -> dict[str, str]:
    """What a user's own configuration may decide otherwise."""
    # As much as shared_buffers again for the work of all processes of a query. Linear in what
    # plans hold equal (heap and threads), so that it is equal between policies too.
    work_mem = max(slot.heap_bytes // (slot.threads * _OPERATIONS), _DEFAULT_WORK_MEM_BYTES)
    return {
        "max_connections": str(_DEFAULT_CONNECTIONS + slot.threads),
        "work_mem": kib(work_mem),
        "huge_pages": "try",
        "max_logical_replication_workers": "0",  # it would keep a process of its own
        **({} if durable else _NOT_DURABLE),
    }


def kib(size_bytes: int) -> str:
    return f"{size_bytes // _KIB}kB"


# With a configuration of the user: what would reach beyond the deployment.
_APART = {
    "ssl": "off",  # nobody comes over the network, and the key may be another account's
    "archive_mode": "off",
    "external_pid_file": "",
    "synchronous_standby_names": "",  # a commit would wait for the user's standbys
    "unix_socket_group": "",  # one that we may not be in
}


def check_base(base: UserTree) -> None:
    """Raises UsageError for a tree that has no configuration, or one that cannot be read."""
    refuse_closed(base, (CONFIG,))
    if CONFIG not in base.texts:
        raise UsageError(
            f"{base.root}: has no {CONFIG}; give the folder that it lies in "
            "('show config_file' tells)"
        )
    _read(base, included(base, CONFIG, INCLUDING))


def on_base(base: UserTree, ours: Mapping[str, str], *, folder: str) -> dict[str, str]:
    """The user's files below `folder`, with our settings in the one that the others are included
    from. Who may connect stays ours: the user's roles are not in the deployment's databases."""
    files = included(base, CONFIG, INCLUDING)
    settings = {**ours, **_APART}
    # Their extensions may have processes of their own, which would take the place of ours.
    given = [each.get(_PROCESSES, "") for each in _read(base, files)]
    most = max(int(value) for value in (ours[_PROCESSES], *given) if value.isdecimal())
    settings[_PROCESSES] = str(most)
    texts = dict(files.texts)
    texts[CONFIG] = config_file.merge(texts[CONFIG], settings, where=f"{base.root}/{CONFIG}")
    return {f"{folder}/{path}": text for path, text in texts.items()}


def taken(base: UserTree) -> dict[str, int]:
    """Setting -> bytes that each server uses in addition to its buffer pool. Sources: PostgreSQL
    15, "Resource Consumption" and "Automatic Vacuuming"."""
    theirs = sizes.largest(
        _read(base, included(base, CONFIG, INCLUDING)),
        unit_bytes={"wal_buffers": _PAGE_BYTES, "autovacuum_max_workers": 1},
    )
    # The default of autovacuum_work_mem, -1, stands for maintenance_work_mem.
    vacuum = "autovacuum_work_mem" if theirs.get("autovacuum_work_mem") else "maintenance_work_mem"
    each = min(theirs.get(vacuum, 0), _MOST_VACUUM_BYTES)
    workers = theirs.get("autovacuum_max_workers", _VACUUM_WORKERS)
    return {"wal_buffers": theirs.get("wal_buffers", 0), vacuum: each * workers}


def _read(base: UserTree, files: Included) -> list[dict[str, str]]:
    """The settings of each file. Raises UsageError for what is none."""
    texts = {**files.in_place, **files.texts}
    return [config_file.read(text, where=f"{base.root}/{path}") for path, text in texts.items()]


def programs(home: str) -> tuple[str, str]:
    """The server, and what makes its data directory."""
    return f"{home}/postgres", f"{home}/initdb"


def initdb(home: str) -> tuple[str, ...]:
    """The command that makes an empty data directory, {}."""
    return (
        programs(home)[1],
        f"--username={SUPERUSER}",  # not the account's name, which a container may not know
        # Bytewise order and plain ASCII case, as the other engines compare.
        "--encoding=UTF8",
        "--no-locale",
        "--auth-local=trust",  # who may connect is said by the deployment's own hba_file
        "--auth-host=reject",
        "--pgdata={}",
    )
