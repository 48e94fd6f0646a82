"""PostgreSQL: a whole server per slot, with a database of its own that goes with the deployment.

Its settings are in `postgresql_settings`. Tables of a suite are loaded once into the cache
(`postgresql_load`), and every server begins with a copy.

Promises: a server listens on nothing but a UNIX socket in a folder closed to others, and leaves
nothing in /dev/shm however it ends.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from atoll.engines.api import Client, Data, Installation, Layout, Progress
from atoll.engines.facts import EngineFacts
from atoll.engines.postgresql import config_file
from atoll.engines.postgresql.facts import FACTS
from atoll.engines.postgresql.reasons import REASONS
from atoll.engines.postgresql.settings import (
    CONFIG,
    FIRST_PORT,
    check_base,
    choices,
    initdb,
    on_base,
    placement,
    programs,
    taken,
)
from atoll.engines.reasons import Reasons
from atoll.engines.server.per_slot import (
    ServerPerSlot,
    Sought,
    environment,
    find_server,
    refuse_root,
    template_path,
)
from atoll.engines.sql.connections import connect_each, require_client
from atoll.engines.userconfig.tree import UserTree
from atoll.host.api import Host
from atoll.install import installed
from atoll.schema.deployment import ProcessSpec, Role
from atoll.schema.plan import EngineTraits, Plan
from atoll.store.paths import cache_dir

FETCHED = "postgresql-15"  # the one that Debian 12 has, and so `atoll engine install`

_MIB = 1 << 20
_SOUGHT = Sought(
    title="PostgreSQL",
    engine="postgresql",
    # The first with all settings that are used here, and the oldest that Debian 12 and later have.
    oldest=(15,),
    programs=programs,
    asked=("--version",),
    told=re.compile(r"\(PostgreSQL\) ((\d+)[.\w]*)"),
)


@dataclass(frozen=True, slots=True)
class PostgreSQLEngine(ServerPerSlot):
    """See `atoll.engines.api.LoadingEngine`, `ConfigurableEngine` and `RemoteEngine`."""

    title: ClassVar[str] = "PostgreSQL"
    facts: ClassVar[EngineFacts] = FACTS
    reasons: ClassVar[Reasons] = REASONS
    own_traits: ClassVar[EngineTraits] = EngineTraits(
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
        refuse_root("PostgreSQL", "postgresql")
        return Installation(version, home, cache=str(cache_dir("postgresql")))

    def layout(
        self,
        plan: Plan,
        installation: Installation,
        *,
        run_dir: str,
        ports: Sequence[int],
        scratch_dir: str | None = None,
    ) -> Layout:
        home = installation.home
        server, _ = programs(home)
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
                files[config] = config_file.write(ours | choices(slot, durable=self.durable))
            else:
                config = f"server-{slot.index}/{CONFIG}"
                files |= on_base(self.base, ours, folder=f"server-{slot.index}")
            processes.append(
                ProcessSpec(
                    name=f"worker-{slot.index}",
                    role=Role.WORKER,
                    slot=slot.index,
                    argv=self.command(
                        installation,
                        data,
                        make=initdb(home),
                        server=(server, "-c", f"config_file={run_dir}/{config}"),
                    ),
                    env=environment(home),
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
        from atoll.engines.postgresql.client import PostgreSQLClient

        return connect_each(endpoints, lambda path: PostgreSQLClient.at(path, timeout_s=timeout_s))

    def load(
        self, data: Data, installation: Installation, *, host: Host, progress: Progress
    ) -> None:
        from atoll.engines.postgresql.load import load

        load(data, installation, template_path(installation), progress=progress)

    def takes(self, base: UserTree) -> dict[str, int]:
        return taken(base)

    def on(self, base: UserTree) -> PostgreSQLEngine:
        check_base(base)
        return replace(self, base=base)

    def reach(self, url: str, *, timeout_s: float) -> Client:
        from atoll.engines.postgresql.client import reach

        return reach(url, timeout_s=timeout_s)


def find_postgresql(host: Host, *, cache: str) -> tuple[str, str]:
    """(version, folder of the programs). `cache` is the unpacked package's root.

    Raises EngineFailed naming what was found."""
    return find_server(host, _homes(host, cache), _SOUGHT)


def _homes(host: Host, cache: str) -> Iterator[str]:
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
