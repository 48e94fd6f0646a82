"""PostgreSQL: a whole server per slot, with a database of its own that goes with the deployment.

Sizes follow PostgreSQL's manual, Server Configuration, Resource Consumption (shared_buffers,
work_mem, min_dynamic_shared_memory) and Query Planning (effective_cache_size); that nothing is
made durable follows its chapter Non-Durable Settings. What neither the plan nor the end of a
deployment decides keeps PostgreSQL's default.

Promises: a server listens on nothing but a UNIX socket in a folder closed to others, and leaves
nothing in /dev/shm however it ends.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence

from atoll.engines import postgresql_instance
from atoll.engines.base import Client, Installation, Layout, Table
from atoll.errors import EngineFailed, NotPermitted, UsageError
from atoll.host.api import Host
from atoll.schema.deployment import ProcessSpec, Role
from atoll.schema.plan import EngineTraits, Plan, Slot
from atoll.store.paths import cache_dir

# The first with all settings that are used here, and the oldest that Debian 12 and later have.
OLDEST_MAJOR = 15
FETCHED_MAJOR = 15  # the one that Debian 12 has, and so `tools/fetch_deb`

_KIB = 1 << 10
_MIB = 1 << 20
_FIRST_PORT = 5432  # only part of a socket's name
_DEFAULT_WORK_MEM_BYTES = 4 * _MIB
_MOST_PARALLEL = 1024  # PostgreSQL refuses more (MAX_PARALLEL_WORKER_LIMIT)
# Sorts and hash tables that one process of a query is given room for at the same time.
_OPERATIONS = 4
_VERSION = re.compile(r"\(PostgreSQL\) ((\d+)[.\w]*)")
_UNPACKED = re.compile(r"(?P<root>.+)/usr/lib/postgresql/\d+/bin")


class PostgreSQLEngine:
    """See `atoll.engines.base.Engine`."""

    traits = EngineTraits(
        name="postgresql",
        distributed=False,
        parallel_query=True,
        has_coordinator=False,
        jvm=False,
        heap_ratio=0.25,
        ratio_source="PostgreSQL's manual, shared_buffers: 25 % of the memory to start with",
        min_heap_bytes=16 * _MIB,
        coordinator_bytes=0,
        overhead_bytes=64 * _MIB,  # measured: 45 MiB beside shared_buffers with 4 connections
    )

    def locate(self, host: Host) -> Installation:
        try:
            import psycopg  # noqa: F401 - an extra; without it nobody could ask the server
        except ImportError as fault:
            raise EngineFailed(
                f"psycopg cannot be used in this Python ({str(fault).splitlines()[0]}); "
                "install it with: pip install 'atoll[postgresql]'"
            ) from None
        version, home = find_postgresql(host, cache=str(cache_dir(f"postgresql-{FETCHED_MAJOR}")))
        if os.geteuid() == 0:
            raise NotPermitted(
                "PostgreSQL refuses to run as root; run atoll as an ordinary user: "
                "sudo -u NAME atoll up postgresql"
            )
        return Installation(version, home, cache=str(cache_dir("postgresql")))

    def ports(self, plan: Plan) -> int:
        return 0

    def layout(
        self,
        plan: Plan,
        installation: Installation,
        *,
        run_dir: str,
        ports: Sequence[int],
        scratch_dir: str | None = None,
    ) -> Layout:
        processes: list[ProcessSpec] = []
        files = {
            # The kernel lets only this user and root open the socket, and both could read the
            # data anyway: a password on top would guard nothing.
            "pg_hba.conf": "local all all trust\n",
            "pg_ident.conf": "",
        }
        for slot in plan.slots:
            data = f"{scratch_dir or run_dir}/data-{slot.index}"
            name = f"postgresql-{slot.index}.conf"
            files[name] = _text(_settings(slot, data=data, run_dir=run_dir))
            processes.append(
                ProcessSpec(
                    name=f"worker-{slot.index}",
                    role=Role.WORKER,
                    slot=slot.index,
                    argv=(
                        *(sys.executable, "-IS", postgresql_instance.__file__),
                        installation.home,
                        template_path(installation),
                        data,
                        f"{run_dir}/{name}",
                    ),
                    env=_environment(installation.home),
                    stage=0,
                    ready_socket=f"{run_dir}/.s.PGSQL.{_FIRST_PORT + slot.index}",
                )
            )
        return Layout(
            processes=tuple(processes),
            files=files,
            endpoints=tuple(spec.ready_socket for spec in processes if spec.ready_socket),
        )

    def connect(self, endpoints: Sequence[str], *, timeout_s: float) -> list[Client]:
        from atoll.engines.postgresql_client import connect_all

        return connect_all(endpoints, timeout_s=timeout_s)

    def attach(self, table: Table) -> list[str]:
        raise UsageError(
            "PostgreSQL cannot read Parquet files in place, and loading a suite into it is not "
            "there yet; 'atoll up postgresql' works, 'atoll bench' takes spark and duckdb"
        )


# ---- where it is ---------------------------------------------------------------------------------


def find_postgresql(host: Host, *, cache: str) -> tuple[str, str]:
    """(version, folder of the programs). `cache` is the unpacked package's root.

    Raises EngineFailed naming what was found."""
    found: dict[str, str] = {}
    for home in _candidates(host, cache):
        if home in found or not host.exists(f"{home}/initdb"):
            continue
        version = _version(host, home)
        if version and int(version[2]) >= OLDEST_MAJOR:
            return version[1], home
        found[home] = version[1] if version else "does not run"
    have = ", ".join(f"that in {home} is {version}" for home, version in found.items())
    raise EngineFailed(
        f"PostgreSQL {OLDEST_MAJOR} or later is needed; {have or 'none was found'}; install it "
        f"with: apt-get install postgresql-{FETCHED_MAJOR}, or put its 'postgres' on the PATH"
    )


def _candidates(host: Host, cache: str) -> Iterator[str]:
    """The PATH's, Debian's newest first, and what `tools/fetch_deb` unpacked into the cache."""
    on_path = shutil.which("postgres")
    if on_path:
        yield os.path.dirname(os.path.realpath(on_path))
    for root in ("/usr/lib/postgresql", f"{cache}/usr/lib/postgresql"):
        try:
            majors = [int(name) for name in host.list_dir(root) if name.isdigit()]
        except OSError:
            continue
        yield from (f"{root}/{major}/bin" for major in sorted(majors, reverse=True))


def _version(host: Host, home: str) -> re.Match[str] | None:
    environment = {**os.environ, **_environment(home)}
    try:
        done = host.run([f"{home}/postgres", "--version"], timeout_s=20, env=environment)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return _VERSION.search(done.stdout)


def _environment(home: str) -> dict[str, str]:
    """Programs find the rest of an unpacked package themselves, but for libraries beside it."""
    unpacked = _UNPACKED.fullmatch(home)
    if unpacked is None:
        return {}
    return {"LD_LIBRARY_PATH": f"{unpacked['root']}/usr/lib/{platform.machine()}-linux-gnu"}


# ---- what it is told -----------------------------------------------------------------------------


def template_path(installation: Installation) -> str:
    """Where the data directory lies that `postgresql_instance` copies."""
    # Two builds of one version may differ in how they lay out their pages.
    build = hashlib.sha256(installation.home.encode()).hexdigest()[:8]
    return f"{installation.cache}/{installation.version}-{build}"


def _settings(slot: Slot, *, data: str, run_dir: str) -> dict[str, str]:
    buffers = slot.heap_bytes
    # As much as shared_buffers again for the work of all processes of a query. Linear in what
    # plans hold equal (heap and threads), so that it is equal between policies too.
    work_mem = max(buffers // (slot.threads * _OPERATIONS), _DEFAULT_WORK_MEM_BYTES)
    workers = min(slot.threads, _MOST_PARALLEL)
    return {
        "data_directory": data,
        "hba_file": f"{run_dir}/pg_hba.conf",
        "ident_file": f"{run_dir}/pg_ident.conf",
        "listen_addresses": "",
        "port": str(_FIRST_PORT + slot.index),
        "unix_socket_directories": run_dir,
        "unix_socket_permissions": "0700",
        "shared_buffers": _kib(buffers),
        "huge_pages": "try",
        "work_mem": _kib(work_mem),
        # The manual: shared_buffers and the page cache that is the database's. That is the
        # slot's memory, less the work.
        "effective_cache_size": _kib(max(slot.memory_bytes - buffers, buffers)),
        # The session's own process runs its share of a query too.
        "max_parallel_workers_per_gather": str(workers - 1),
        "max_parallel_maintenance_workers": str(workers - 1),
        "max_parallel_workers": str(workers),
        "max_worker_processes": str(workers),
        "max_logical_replication_workers": "0",  # it would keep a process of its own
        # Parallel queries share memory that is a file in /dev/shm by default, which stays there
        # if the server is killed. So it is made at the start, within the main region, and large
        # enough for one hash join at its largest (hash_mem_multiplier is 2); what is beyond
        # that lies in a file of the data directory.
        "min_dynamic_shared_memory": f"{max(buffers // 2 // _MIB, 1)}MB",
        "dynamic_shared_memory_type": "mmap",
        # The manual's Non-Durable Settings: the data does not outlive the deployment.
        "fsync": "off",
        "synchronous_commit": "off",
        "full_page_writes": "off",
        # A lost process would be hidden by a restart, and a time over a loss is no measurement.
        "restart_after_crash": "off",
        # Who hangs up has the query cancelled.
        "client_connection_check_interval": "500ms",
        "log_destination": "stderr",
        "logging_collector": "off",
    }


def _kib(size_bytes: int) -> str:
    return f"{size_bytes // _KIB}kB"


def _text(settings: dict[str, str]) -> str:
    quoted = (
        (key, value.replace("\\", "\\\\").replace("'", "''")) for key, value in settings.items()
    )
    return "".join(f"{key} = '{value}'\n" for key, value in quoted)
