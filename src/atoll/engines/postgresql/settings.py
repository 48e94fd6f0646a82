"""The settings of a PostgreSQL server, from the slot that it runs on. Pure.

Each setting stands with its reason and the reason's source, which `atoll render --explain` prints.
All other settings keep PostgreSQL's default.

The functions are documented in `atoll.engines.server.per_slot.ServerSettings`.
"""

from __future__ import annotations

from collections.abc import Mapping

from atoll.engines.explained import Reasons, Setting, Why, reasons, values
from atoll.engines.postgresql import config_file
from atoll.engines.postgresql.config_file import INCLUDING
from atoll.engines.server import sizes
from atoll.engines.userconfig.included import Included, first_file, in_order, included
from atoll.engines.userconfig.merge import read_pieces
from atoll.engines.userconfig.tree import UserTree
from atoll.schema.plan import LOOPBACK, Slot
from atoll.schema.size import MIB

_MANUAL = "PostgreSQL's manual, "
_CONSUMPTION = _MANUAL + "Resource consumption"
_PLANNING = _MANUAL + "Query planning"
_CONNECTIONS = _MANUAL + "Connections and authentication"
_LOCATIONS = _MANUAL + "File locations"
_ERRORS = _MANUAL + "Error handling"
_LOGGING = _MANUAL + "Error reporting and logging"

_KIB = 1 << 10
SUPERUSER = "atoll"
PASSWORD_FILE = "pgpass"  # as libpq reads it
_CONFIG = "postgresql.conf"
_FIRST_PORT = 5432  # only part of a socket's name
_PROCESSES = "max_worker_processes"
_WORKERS = (
    "max_parallel_workers_per_gather",
    "max_parallel_maintenance_workers",
    "max_parallel_workers",
)
_CACHE_SIZE = "effective_cache_size"
_DEFAULT_WORK_MEM_BYTES = 4 * MIB
_DEFAULT_GATHER = 2  # PostgreSQL's defaults
_DEFAULT_PROCESSES = 8
_MOST_PARALLEL = 1024  # PostgreSQL refuses more (MAX_PARALLEL_WORKER_LIMIT)
_OPERATIONS = 4  # sorts and hash tables that one process of a query may have at the same time
_DEFAULT_CONNECTIONS = 100  # PostgreSQL's default; we add one per thread, for a stream of queries
_PAGE_BYTES = 8192  # the unit of wal_buffers and effective_cache_size
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


def socket_path(run_dir: str, index: int, port: int = 0) -> str:
    return f"{run_dir}/.s.PGSQL.{port or _FIRST_PORT + index}"


def client_command(home: str, run_dir: str, index: int) -> tuple[str, ...]:
    port = str(_FIRST_PORT + index)
    return (f"{home}/psql", "-h", run_dir, "-p", port, "-U", SUPERUSER, "-d", "postgres")


def port_command(home: str, run_dir: str, port: int) -> tuple[dict[str, str], tuple[str, ...], str]:
    words = (f"{home}/psql", "-h", LOOPBACK, "-p", str(port), "-U", SUPERUSER, "-d", "postgres")
    file = f"{run_dir}/{PASSWORD_FILE}"
    return {"PGPASSFILE": file}, words, file


def at_port(port: int) -> dict[str, Setting]:
    return {
        "listen_addresses": Setting(LOOPBACK, "--port asks for it", _CONNECTIONS),
        "port": Setting(str(port), "--port asks for it; part of the socket's name", _CONNECTIONS),
    }


def login_files(password: str) -> dict[str, str]:
    hosts = f"host all all {LOOPBACK}/32 scram-sha-256\n"
    return {
        "pg_hba.conf": shared_files()["pg_hba.conf"] + hosts,
        PASSWORD_FILE: f"{LOOPBACK}:*:*:{SUPERUSER}:{password}\n",
    }


def shared_files() -> dict[str, str]:
    return {"pg_hba.conf": "local all all trust\n", "pg_ident.conf": ""}


def location(index: int, *, data: str, run_dir: str, **_: str) -> dict[str, Setting]:
    return {
        "data_directory": Setting(data, "each server has its own", _LOCATIONS),
        "hba_file": Setting(
            f"{run_dir}/pg_hba.conf",
            "only the owner of the socket's folder, and root, may connect",
            _LOCATIONS,
        ),
        "ident_file": Setting(
            f"{run_dir}/pg_ident.conf", "empty: no account may act as another", _LOCATIONS
        ),
        "listen_addresses": Setting(
            "", "nothing listens on the network; there is the socket", _CONNECTIONS
        ),
        "port": Setting(str(_FIRST_PORT + index), "only part of the socket's name", _CONNECTIONS),
        "unix_socket_directories": Setting(run_dir, "a folder closed to others", _CONNECTIONS),
        "unix_socket_permissions": Setting("0700", "closed to others", _CONNECTIONS),
        "dynamic_shared_memory_type": Setting(
            "mmap",
            "by default parallel queries share memory through a file in /dev/shm, which a killed "
            "server would leave there; this file is in the data directory",
            _CONSUMPTION,
        ),
        "restart_after_crash": Setting(
            "off",
            "a lost process ends the deployment: a restart would hide it, and a time with a loss "
            "in it is not a measurement",
            _ERRORS,
        ),
        "log_destination": Setting("stderr", "the log is the deployment's", _LOGGING),
        "logging_collector": Setting("off", "no process of its own for the log", _LOGGING),
    }


def placement(slot: Slot) -> dict[str, Setting]:
    buffers = slot.heap_bytes
    workers, least_gather, least_workers = min(slot.threads, _MOST_PARALLEL), 0, 0
    if slot.cpus is None:  # wim has no ceiling below PostgreSQL's own
        least_gather, least_workers = _DEFAULT_GATHER, _DEFAULT_PROCESSES
    session = Setting(
        str(max(workers - 1, least_gather)),
        "the slot's threads without the session's own process; under wim at least the default, 2",
        _CONSUMPTION,
    )
    processes = str(max(workers, least_workers))
    return {
        "shared_buffers": Setting(
            kib(buffers),
            "25 % of the slot's memory, with which the manual starts, unless --heap or "
            "--page-cache say otherwise; the page cache has the rest",
            _CONSUMPTION,
        ),
        _CACHE_SIZE: Setting(
            kib(max(slot.memory_bytes - buffers, buffers)),
            "the slot's memory without the memory for work, which is as much as shared_buffers: "
            "the manual adds shared_buffers and the database's part of the page cache",
            _PLANNING,
        ),
        "max_parallel_workers_per_gather": session,
        "max_parallel_maintenance_workers": session,
        "max_parallel_workers": Setting(
            processes, "the slot's threads; under wim at least the default, 8", _CONSUMPTION
        ),
        _PROCESSES: Setting(
            processes,
            "the slot's threads: a server must not start more processes than its slot has CPUs "
            "(under wim at least the default, 8)",
            _CONSUMPTION,
        ),
        # hash_mem_multiplier is 2.
        "min_dynamic_shared_memory": Setting(
            f"{max(buffers // 2 // MIB, 1)}MB",
            "half of shared_buffers: room for one hash join at its largest, allocated at the start "
            "and so on the slot's node",
            _CONSUMPTION,
        ),
        "client_connection_check_interval": Setting(
            "500ms", "the server cancels the query of a client that disconnects", _CONNECTIONS
        ),
    }


def choices(slot: Slot, *, durable: bool) -> dict[str, Setting]:
    # Linear in heap and threads, which plans keep equal, so that policies get equal work_mem too.
    work_mem = max(slot.heap_bytes // (slot.threads * _OPERATIONS), _DEFAULT_WORK_MEM_BYTES)
    return {
        "max_connections": Setting(
            str(_DEFAULT_CONNECTIONS + slot.threads),
            "the default, and one per thread: wim gets as many streams of queries as the finest "
            "policy has servers",
            _CONNECTIONS,
        ),
        "work_mem": Setting(
            kib(work_mem),
            "4 sorts or hash tables in every process of a query together take as much memory as "
            "shared_buffers; at least the default",
            _CONSUMPTION,
        ),
        "huge_pages": Setting("try", "the default: used if there are any", _CONSUMPTION),
        "max_logical_replication_workers": Setting("0", "its launcher would be another process"),
        **({} if durable else _NOT_DURABLE),
    }


_NOT_DURABLE = {
    name: Setting(
        "off", "the data is deleted with the deployment", _MANUAL + "Non-durable settings"
    )
    for name in ("fsync", "synchronous_commit", "full_page_writes")
}


def kib(size_bytes: int) -> str:
    return f"{size_bytes // _KIB}kB"


write = config_file.write

# With a user's configuration: settings that would reach beyond the deployment.
_APART = {
    "ssl": Setting(
        "off",
        "nobody connects over the network, and the key may belong to another account",
        _CONNECTIONS,
    ),
    "archive_mode": Setting("off", "it would write into your archive", _MANUAL + "Write ahead log"),
    "external_pid_file": Setting("", "it is your own server's file", _LOCATIONS),
    "synchronous_standby_names": Setting(
        "", "a commit would wait for your standby servers", _MANUAL + "Replication"
    ),
    "unix_socket_group": Setting("", "the account may not be a member", _CONNECTIONS),
}
OTHER_REASONS: Reasons = {
    **reasons(_APART),
    "local": Why("only the folder's owner and root can open the socket", _CONNECTIONS),
    "host": Why(
        "any user of the machine can open the port, so it asks for a password", _CONNECTIONS
    ),
    "-c": Why("the configuration file", _LOCATIONS),
}


def config_of(tree: UserTree) -> str:
    return first_file(tree, (_CONFIG,), printed_by="show config_file")


def on_tree(
    tree: UserTree, ours: Mapping[str, str], *, folder: str, whole: bool, **_: str
) -> dict[str, str]:
    """Atoll decides who may connect: the user's roles do not exist in the deployment."""
    files = included(tree, _CONFIG, INCLUDING)
    settings = {**ours, **values(_APART)}
    for name, value in _kept(_theirs(tree, files), ours, whole=whole).items():
        if files.elsewhere:  # where another value may stand
            settings[name] = value
        else:
            del settings[name]
    texts = dict(files.texts)
    texts[_CONFIG] = config_file.merge(texts[_CONFIG], settings, where=f"{tree.root}/{_CONFIG}")
    return {f"{folder}/{path}": text for path, text in texts.items()}


def taken(tree: UserTree) -> dict[str, int]:
    """Sources: PostgreSQL 15, "Resource Consumption" and "Automatic Vacuuming"."""
    theirs = sizes.largest(
        _read(tree, included(tree, config_of(tree), INCLUDING)),
        unit_bytes={"wal_buffers": _PAGE_BYTES, "autovacuum_max_workers": 1},
    )
    # The default of autovacuum_work_mem, -1, stands for maintenance_work_mem.
    vacuum = "autovacuum_work_mem" if theirs.get("autovacuum_work_mem") else "maintenance_work_mem"
    each = min(theirs.get(vacuum, 0), _MOST_VACUUM_BYTES)
    workers = theirs.get("autovacuum_max_workers", _VACUUM_WORKERS)
    return {"wal_buffers": theirs.get("wal_buffers", 0), vacuum: each * workers}


def _theirs(tree: UserTree, files: Included) -> dict[str, str]:
    """The user's settings, as the server would take them."""
    return read_pieces(
        in_order(
            files,
            _CONFIG,
            lambda path, text: config_file.pieces(text, where=f"{tree.root}/{path}"),
        )
    )


def _kept(theirs: Mapping[str, str], ours: Mapping[str, str], *, whole: bool) -> dict[str, str]:
    """Those of the user's settings that fit the slot and so replace Atoll's. `whole`: the slot is
    the machine, where every number of processes fits."""
    kept = {}
    for name in (*_WORKERS, _PROCESSES):
        value = theirs.get(name, "")
        # The processes include those of the user's extensions.
        if value.isdecimal() and (whole or name == _PROCESSES or int(value) <= int(ours[name])):
            kept[name] = value
    cache = _CACHE_SIZE
    sizes_bytes = sizes.largest(({cache: theirs.get(cache, "")},), unit_bytes={cache: _PAGE_BYTES})
    if 0 < sizes_bytes[cache] <= int(ours[cache].removesuffix("kB")) * _KIB:
        kept[cache] = theirs[cache]
    return kept


def _read(tree: UserTree, files: Included) -> list[dict[str, str]]:
    """The settings of each file."""
    return [
        config_file.read(text, where=f"{tree.root}/{path}")
        for path, text in files.all_texts.items()
    ]
