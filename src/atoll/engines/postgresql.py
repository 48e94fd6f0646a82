"""PostgreSQL: a whole server per slot, with a database of its own that goes with the deployment.

Its settings are in `postgresql_settings`. Tables of a suite are loaded once into the cache
(`postgresql_load`), and every server begins with a copy.

Promises: a server listens on nothing but a UNIX socket in a folder closed to others, and leaves
nothing in /dev/shm however it ends.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from atoll.engines import template_instance
from atoll.engines.base import Base, Client, Data, Installation, Layout, Progress, Table
from atoll.engines.clients import connect_each, require_client
from atoll.engines.loading import loaded_path
from atoll.engines.postgresql_reasons import REASONS
from atoll.engines.postgresql_settings import (
    CONFIG,
    FIRST_PORT,
    check_base,
    choices,
    environment,
    initdb,
    on_base,
    placement,
    text_of,
)
from atoll.engines.reasons import Reasons
from atoll.errors import EngineFailed, NotPermitted, UsageError
from atoll.host.api import Host
from atoll.install import installed
from atoll.schema.deployment import ProcessSpec, Role
from atoll.schema.plan import EngineTraits, Plan
from atoll.store.paths import cache_dir

# The first with all settings that are used here, and the oldest that Debian 12 and later have.
OLDEST_MAJOR = 15
FETCHED_MAJOR = 15  # the one that Debian 12 has, and so `atoll engine install`
FETCHED = f"postgresql-{FETCHED_MAJOR}"

_MIB = 1 << 20
_VERSION = re.compile(r"\(PostgreSQL\) ((\d+)[.\w]*)")


@dataclass(frozen=True, slots=True)
class PostgreSQLEngine:
    """See `atoll.engines.base.LoadingEngine`, `BasedEngine` and `RemoteEngine`."""

    data: Data | None = None
    base: Base | None = None
    durable: bool = False

    reasons: ClassVar[Reasons] = REASONS
    traits: ClassVar[EngineTraits] = EngineTraits(
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
        off_heap_ratio=1,
        page_cache_ratio=0.1,
        reserve_source="work_mem of all processes: as much as shared_buffers; page cache: rule of "
        "this tool, not a measurement",
        query_source="work_mem of all processes together; beyond it queries spill to disk",
    )

    def locate(self, host: Host) -> Installation:
        version, home = find_postgresql(host, cache=installed(FETCHED))
        require_client("psycopg", "psycopg", engine="postgresql")
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
            ours = placement(slot, data=data, run_dir=run_dir)
            if self.base is None:
                config = f"postgresql-{slot.index}.conf"
                files[config] = text_of(ours | choices(slot, durable=self.durable))
            else:
                config = f"server-{slot.index}/{CONFIG}"
                files |= on_base(self.base, ours, folder=f"server-{slot.index}")
            processes.append(
                ProcessSpec(
                    name=f"worker-{slot.index}",
                    role=Role.WORKER,
                    slot=slot.index,
                    argv=(
                        *(sys.executable, "-IS", template_instance.__file__),
                        *(self._template(installation), data),
                        *(() if self.data else initdb(installation.home)),
                        *("--", f"{installation.home}/postgres"),
                        *("-c", f"config_file={run_dir}/{config}"),
                    ),
                    env=environment(installation.home),
                    stage=0,
                    ready_socket=f"{run_dir}/.s.PGSQL.{FIRST_PORT + slot.index}",
                )
            )
        return Layout(
            processes=tuple(processes),
            files=files,
            endpoints=tuple(spec.ready_socket for spec in processes if spec.ready_socket),
        )

    def connect(self, endpoints: Sequence[str], *, timeout_s: float) -> list[Client]:
        from atoll.engines.postgresql_client import PostgreSQLClient

        return connect_each(endpoints, lambda path: PostgreSQLClient.at(path, timeout_s=timeout_s))

    def attach(self, table: Table) -> list[str]:
        if self.data is not None and table in self.data.tables:
            return []
        raise UsageError(
            f"PostgreSQL cannot read Parquet files in place; table {table.name} must be loaded, as "
            "'atoll bench' does"
        )

    def load(
        self, data: Data, installation: Installation, *, host: Host, progress: Progress
    ) -> None:
        from atoll.engines.postgresql_load import load

        load(data, installation, template_path(installation), progress=progress)

    def holding(self, data: Data) -> PostgreSQLEngine:
        return replace(self, data=data)

    def on(self, base: Base) -> PostgreSQLEngine:
        check_base(base)
        return replace(self, base=base)

    def standing(self) -> PostgreSQLEngine:
        return replace(self, durable=True)

    def reach(self, url: str, *, timeout_s: float) -> Client:
        from atoll.engines.postgresql_client import reach

        return reach(url, timeout_s=timeout_s)

    def _template(self, installation: Installation) -> str:
        empty = template_path(installation)
        return empty if self.data is None else loaded_path(empty, self.data)


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
        found[home] = f"is {version[1]}" if version else "does not run"
    have = ", ".join(f"that in {home} {how}" for home, how in found.items())
    raise EngineFailed(
        f"PostgreSQL {OLDEST_MAJOR} or later is needed; {have or 'none was found'}; fetch it "
        "with: atoll engine install postgresql, or put its 'postgres' on the PATH"
    )


def _candidates(host: Host, cache: str) -> Iterator[str]:
    """The PATH's, Debian's newest first, and what `atoll engine install` unpacked."""
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
    env = {**os.environ, **environment(home)}
    try:
        done = host.run([f"{home}/postgres", "--version"], timeout_s=20, env=env)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return _VERSION.search(done.stdout)


# ---- what instances begin with -------------------------------------------------------------------


def template_path(installation: Installation) -> str:
    """Where the data directory lies that `template_instance` copies."""
    # Two builds of one version may differ in how they lay out their pages.
    build = hashlib.sha256(installation.home.encode()).hexdigest()[:8]
    return f"{installation.cache}/{installation.version}-{build}"
