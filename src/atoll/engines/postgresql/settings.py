"""The settings of a PostgreSQL server, from the slot that it runs on. Pure.

Sizes follow PostgreSQL's manual, Server Configuration, Resource Consumption (shared_buffers,
work_mem, min_dynamic_shared_memory) and Query Planning (effective_cache_size). That nothing is
durable follows its chapter Non-Durable Settings. All other settings keep PostgreSQL's default.

The functions are documented in `atoll.engines.server.per_slot.ServerSettings`.
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
_CONFIG = "postgresql.conf"
_FIRST_PORT = 5432  # only part of a socket's name
_PROCESSES = "max_worker_processes"
_DEFAULT_WORK_MEM_BYTES = 4 * _MIB
_MOST_PARALLEL = 1024  # PostgreSQL refuses more (MAX_PARALLEL_WORKER_LIMIT)
_OPERATIONS = 4  # sorts and hash tables that one process of a query may have at the same time
_DEFAULT_CONNECTIONS = 100  # PostgreSQL's default; we add one per thread, for a stream of queries
_PAGE_BYTES = 8192  # the unit of wal_buffers
_VACUUM_WORKERS = 3  # PostgreSQL's default of autovacuum_max_workers
_MOST_VACUUM_BYTES = 1 << 30  # a vacuum uses no more, whatever it is allowed


def programs(home: str) -> tuple[str, str]:
    return f"{home}/postgres", f"{home}/initdb"


def make_empty(home: str) -> tuple[str, ...]:
    return (
        programs(home)[1],
        f"--username={SUPERUSER}",  # not the account's name, which a container may not know
        # Bytewise order and plain ASCII case, as in the other engines.
        "--encoding=UTF8",
        "--no-locale",
        "--auth-local=trust",  # the deployment's own hba_file decides who may connect
        "--auth-host=reject",
        "--pgdata={}",
    )


def arguments(config: str) -> tuple[str, ...]:
    return "-c", f"config_file={config}"


def socket_path(run_dir: str, index: int) -> str:
    return f"{run_dir}/.s.PGSQL.{_FIRST_PORT + index}"


def shared_files() -> dict[str, str]:
    return {"pg_hba.conf": "local all all trust\n", "pg_ident.conf": ""}


def location(index: int, *, data: str, run_dir: str, **_: str) -> dict[str, str]:
    return {
        "data_directory": data,
        "hba_file": f"{run_dir}/pg_hba.conf",
        "ident_file": f"{run_dir}/pg_ident.conf",
        "listen_addresses": "",
        "port": str(_FIRST_PORT + index),
        "unix_socket_directories": run_dir,
        "unix_socket_permissions": "0700",
        # By default parallel queries share memory through a file in /dev/shm, which a killed
        # server would leave there.
        "dynamic_shared_memory_type": "mmap",
        # A restart would hide a lost process, and a time with a loss in it is no measurement.
        "restart_after_crash": "off",
        "log_destination": "stderr",
        "logging_collector": "off",
    }


def placement(slot: Slot) -> dict[str, str]:
    buffers = slot.heap_bytes
    workers = min(slot.threads, _MOST_PARALLEL)
    return {
        "shared_buffers": kib(buffers),
        # The manual: shared_buffers and the database's part of the page cache. That is the slot's
        # memory without the memory for work.
        "effective_cache_size": kib(max(slot.memory_bytes - buffers, buffers)),
        # The session's own process runs its share of a query too.
        "max_parallel_workers_per_gather": str(workers - 1),
        "max_parallel_maintenance_workers": str(workers - 1),
        "max_parallel_workers": str(workers),
        _PROCESSES: str(workers),
        # Allocated at the start, within the main region, and large enough for one hash join at its
        # largest (hash_mem_multiplier is 2). More than that lies in a file of the data directory.
        "min_dynamic_shared_memory": f"{max(buffers // 2 // _MIB, 1)}MB",
        # The server cancels the query of a client that hangs up.
        "client_connection_check_interval": "500ms",
    }


# The manual's Non-Durable Settings, for data that is deleted with the deployment.
_NOT_DURABLE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


def choices(slot: Slot, *, durable: bool) -> dict[str, str]:
    # All processes of a query together may use as much memory for work as shared_buffers. This is
    # linear in heap and threads, which plans keep equal, so that policies get equal work_mem too.
    work_mem = max(slot.heap_bytes // (slot.threads * _OPERATIONS), _DEFAULT_WORK_MEM_BYTES)
    return {
        "max_connections": str(_DEFAULT_CONNECTIONS + slot.threads),
        "work_mem": kib(work_mem),
        "huge_pages": "try",
        "max_logical_replication_workers": "0",  # its launcher is a process of its own
        **({} if durable else _NOT_DURABLE),
    }


def kib(size_bytes: int) -> str:
    return f"{size_bytes // _KIB}kB"


write = config_file.write

# With a user's configuration: settings that would reach beyond the deployment.
_APART = {
    "ssl": "off",  # nobody connects over the network, and the key may belong to another account
    "archive_mode": "off",
    "external_pid_file": "",
    "synchronous_standby_names": "",  # a commit would wait for the user's standby servers
    "unix_socket_group": "",  # this user may not be a member
}


def check_base(base: UserTree) -> None:
    _read(base, included(base, config_of(base), INCLUDING))


def config_of(base: UserTree) -> str:
    refuse_closed(base, (_CONFIG,))
    if _CONFIG not in base.texts:
        raise UsageError(
            f"{base.root}: no {_CONFIG} found; give the folder that contains it "
            "('show config_file' prints its path)"
        )
    return _CONFIG


def on_base(base: UserTree, ours: Mapping[str, str], *, folder: str, **_: str) -> dict[str, str]:
    """Atoll decides who may connect: the user's roles do not exist in the deployment."""
    files = included(base, _CONFIG, INCLUDING)
    settings = {**ours, **_APART}
    # The user's extensions may have processes of their own, which must not displace ours.
    given = [each.get(_PROCESSES, "") for each in _read(base, files)]
    most = max(int(value) for value in (ours[_PROCESSES], *given) if value.isdecimal())
    settings[_PROCESSES] = str(most)
    texts = dict(files.texts)
    texts[_CONFIG] = config_file.merge(texts[_CONFIG], settings, where=f"{base.root}/{_CONFIG}")
    return {f"{folder}/{path}": text for path, text in texts.items()}


def taken(base: UserTree) -> dict[str, int]:
    """Sources: PostgreSQL 15, "Resource Consumption" and "Automatic Vacuuming"."""
    theirs = sizes.largest(
        _read(base, included(base, _CONFIG, INCLUDING)),
        unit_bytes={"wal_buffers": _PAGE_BYTES, "autovacuum_max_workers": 1},
    )
    # The default of autovacuum_work_mem, -1, stands for maintenance_work_mem.
    vacuum = "autovacuum_work_mem" if theirs.get("autovacuum_work_mem") else "maintenance_work_mem"
    each = min(theirs.get(vacuum, 0), _MOST_VACUUM_BYTES)
    workers = theirs.get("autovacuum_max_workers", _VACUUM_WORKERS)
    return {"wal_buffers": theirs.get("wal_buffers", 0), vacuum: each * workers}


def _read(base: UserTree, files: Included) -> list[dict[str, str]]:
    """The settings of each file."""
    texts = {**files.in_place, **files.texts}
    return [config_file.read(text, where=f"{base.root}/{path}") for path, text in texts.items()]
