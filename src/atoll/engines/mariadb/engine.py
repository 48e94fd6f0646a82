"""MariaDB: a whole server per slot, with a database of its own that goes with the deployment.

A query runs on one thread, so an instance is kept busy by as many queries as its slot has threads.
Its settings are in `mariadb_settings`. Tables of a suite are loaded once into the cache
(`mariadb_load`), and every server begins with a copy.

Promises: a server listens on nothing but a UNIX socket in a folder closed to others.
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
from atoll.engines.mariadb import option_file
from atoll.engines.mariadb.facts import FACTS
from atoll.engines.mariadb.reasons import REASONS
from atoll.engines.mariadb.settings import (
    check_base,
    choices,
    config_of,
    init_sql,
    install_db,
    on_base,
    placement,
    programs,
    socket_path,
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

FETCHED = "mariadb-10.11"

_MIB = 1 << 20
_SOUGHT = Sought(
    title="MariaDB",
    engine="mariadb",
    oldest=(10, 11),  # the oldest that Debian 12 and later have
    programs=programs,
    asked=("--no-defaults", "--version"),
    told=re.compile(r"\bVer ((\d+)\.(\d+)\.\d+)-MariaDB"),
)


@dataclass(frozen=True, slots=True)
class MariaDBEngine(ServerPerSlot):
    """See `atoll.engines.api.LoadingEngine`, `ConfigurableEngine` and `RemoteEngine`."""

    title: ClassVar[str] = "MariaDB"
    facts: ClassVar[EngineFacts] = FACTS
    reasons: ClassVar[Reasons] = REASONS
    own_traits: ClassVar[EngineTraits] = EngineTraits(
        name="mariadb",
        distributed=False,
        parallel_query=False,
        has_coordinator=False,
        jvm=False,
        heap_ratio=0.6,
        ratio_source="MariaDB's documentation, Memory Allocation: 60 to 70 % for the buffer pool",
        min_heap_bytes=16 * _MIB,
        coordinator_bytes=0,
        overhead_bytes=128 * _MIB,  # measured: 110 MiB with an unused pool and 4 connections
        off_heap_ratio=0.375,
        page_cache_ratio=0.1,
        reserve_source="buffers of sorts, joins and temporary tables; page cache: rule of this "
        "tool, not a measurement",
        query_ratio=0.375,
        query_source="buffers of sorts, joins and temporary tables; beyond them queries spill",
    )

    def locate(self, host: Host) -> Installation:
        version, home = find_mariadb(host, unpacked=installed(FETCHED))
        require_client("PyMySQL", "pymysql", engine="mariadb")
        refuse_root("MariaDB", "mariadb")
        return Installation(version, home, cache=str(cache_dir("mariadb")))

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
        files = {"init.sql": init_sql()}
        for slot in plan.slots:
            data = f"{scratch_dir or run_dir}/data-{slot.index}"
            ours = placement(slot, data=data, run_dir=run_dir, home=home)
            folder = ""
            if self.base is None:
                config = f"mariadb-{slot.index}.cnf"
                files[config] = option_file.write(
                    "mariadbd", ours | choices(slot, durable=self.durable)
                )
            else:
                folder = f"server-{slot.index}"
                config = f"{folder}/{config_of(self.base)}"
                files |= on_base(self.base, ours, folder=folder, version=installation.version)
            processes.append(
                ProcessSpec(
                    name=f"worker-{slot.index}",
                    role=Role.WORKER,
                    slot=slot.index,
                    argv=self.command(
                        installation,
                        data,
                        make=install_db(home),
                        server=(server, f"--defaults-file={run_dir}/{config}"),
                    ),
                    env=environment(home),
                    cwd=folder,  # where option files look for what they include
                    stage=0,
                    ready_socket=socket_path(slot, run_dir),
                )
            )
        return Layout(
            processes=tuple(processes),
            files=files,
            endpoints=tuple(spec.ready_socket for spec in processes if spec.ready_socket),
        )

    def connect(self, endpoints: Sequence[str], *, timeout_s: float) -> list[Client]:
        from atoll.engines.mariadb.client import at

        return connect_each(endpoints, lambda path: at(path, timeout_s=timeout_s))

    def load(
        self, data: Data, installation: Installation, *, host: Host, progress: Progress
    ) -> None:
        from atoll.engines.mariadb.load import load

        load(data, installation, template_path(installation), progress=progress)

    def takes(self, base: UserTree) -> dict[str, int]:
        return taken(base)

    def on(self, base: UserTree) -> MariaDBEngine:
        check_base(base)
        return replace(self, base=base)

    def reach(self, url: str, *, timeout_s: float) -> Client:
        from atoll.engines.mariadb.client import reach

        return reach(url, timeout_s=timeout_s)


def find_mariadb(host: Host, *, unpacked: str) -> tuple[str, str]:
    """(version, base folder). `unpacked` is the root of an unpacked package, or ''.

    Raises EngineFailed naming what was found."""
    return find_server(host, _homes(unpacked), _SOUGHT)


def _homes(unpacked: str) -> Iterator[str]:
    """The PATH's, the system's, where MariaDB's documentation has a tarball unpacked, and what
    `atoll engine install` unpacked into the cache."""
    on_path = shutil.which("mariadbd")
    if on_path:
        yield os.path.dirname(os.path.dirname(os.path.realpath(on_path)))
    yield from ("/usr", "/usr/local/mysql")
    if unpacked:
        yield f"{unpacked}/usr"
