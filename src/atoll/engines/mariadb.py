"""MariaDB: a whole server per slot, with a database of its own that goes with the deployment.

A query runs on one thread, so an instance is kept busy by as many queries as its slot has threads.
Its settings are in `mariadb_settings`. Tables of a suite are loaded once into the cache
(`mariadb_load`), and every server begins with a copy.

Promises: a server listens on nothing but a UNIX socket in a folder closed to others.
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
from atoll.engines.mariadb_reasons import REASONS
from atoll.engines.mariadb_settings import (
    check_base,
    choices,
    config_of,
    environment,
    init_sql,
    install_db,
    on_base,
    placement,
    socket_path,
    text_of,
)
from atoll.engines.reasons import Reasons
from atoll.errors import EngineFailed, NotPermitted, UsageError
from atoll.host.api import Host
from atoll.install import installed
from atoll.schema.deployment import ProcessSpec, Role
from atoll.schema.plan import EngineTraits, Plan
from atoll.store.paths import cache_dir

OLDEST = (10, 11)  # the oldest that Debian 12 and later have
FETCHED = "mariadb-10.11"

_MIB = 1 << 20
_VERSION = re.compile(r"\bVer ((\d+)\.(\d+)\.\d+)-MariaDB")


@dataclass(frozen=True, slots=True)
class MariaDBEngine:
    """See `atoll.engines.base.LoadingEngine`, `BasedEngine` and `RemoteEngine`."""

    data: Data | None = None
    base: Base | None = None
    durable: bool = False

    reasons: ClassVar[Reasons] = REASONS
    traits: ClassVar[EngineTraits] = EngineTraits(
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
        if os.geteuid() == 0:
            raise NotPermitted(
                "MariaDB refuses to run as root; run atoll as an ordinary user: "
                "sudo -u NAME atoll up mariadb"
            )
        return Installation(version, home, cache=str(cache_dir("mariadb")))

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
        home = installation.home
        processes: list[ProcessSpec] = []
        files = {"init.sql": init_sql()}
        for slot in plan.slots:
            data = f"{scratch_dir or run_dir}/data-{slot.index}"
            ours = placement(slot, data=data, run_dir=run_dir, home=home)
            folder = ""
            if self.base is None:
                config = f"mariadb-{slot.index}.cnf"
                files[config] = text_of(ours | choices(slot, durable=self.durable))
            else:
                folder = f"server-{slot.index}"
                config = f"{folder}/{config_of(self.base)}"
                files |= on_base(self.base, ours, folder=folder, version=installation.version)
            processes.append(
                ProcessSpec(
                    name=f"worker-{slot.index}",
                    role=Role.WORKER,
                    slot=slot.index,
                    argv=(
                        *(sys.executable, "-IS", template_instance.__file__),
                        *(self._template(installation), data),
                        *(() if self.data else install_db(home)),
                        *("--", f"{home}/sbin/mariadbd", f"--defaults-file={run_dir}/{config}"),
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
        from atoll.engines.mariadb_client import at

        return connect_each(endpoints, lambda path: at(path, timeout_s=timeout_s))

    def attach(self, table: Table) -> list[str]:
        if self.data is not None and table in self.data.tables:
            return []
        raise UsageError(
            f"MariaDB cannot read Parquet files in place; table {table.name} must be loaded, as "
            "'atoll bench' does"
        )

    def load(
        self, data: Data, installation: Installation, *, host: Host, progress: Progress
    ) -> None:
        from atoll.engines.mariadb_load import load

        load(data, installation, template_path(installation), progress=progress)

    def holding(self, data: Data) -> MariaDBEngine:
        return replace(self, data=data)

    def on(self, base: Base) -> MariaDBEngine:
        check_base(base)
        return replace(self, base=base)

    def standing(self) -> MariaDBEngine:
        return replace(self, durable=True)

    def reach(self, url: str, *, timeout_s: float) -> Client:
        from atoll.engines.mariadb_client import reach

        return reach(url, timeout_s=timeout_s)

    def _template(self, installation: Installation) -> str:
        empty = template_path(installation)
        return empty if self.data is None else loaded_path(empty, self.data)


def template_path(installation: Installation) -> str:
    """Where the empty data directory lies that `template_instance` copies."""
    # Two builds of one version may differ in how they lay out their pages.
    build = hashlib.sha256(installation.home.encode()).hexdigest()[:8]
    return f"{installation.cache}/{installation.version}-{build}"


def find_mariadb(host: Host, *, unpacked: str) -> tuple[str, str]:
    """(version, base folder: programs are in its sbin and bin). `unpacked` is the root of an
    unpacked package, or ''. Raises EngineFailed naming what was found."""
    found: dict[str, str] = {}
    for home in _candidates(unpacked):
        if home in found or not host.exists(f"{home}/bin/mariadb-install-db"):
            continue
        version = _version(host, home)
        if version and (int(version[2]), int(version[3])) >= OLDEST:
            return version[1], home
        found[home] = f"is {version[1]}" if version else "does not run"
    have = ", ".join(f"that in {home} {how}" for home, how in found.items())
    raise EngineFailed(
        f"MariaDB {OLDEST[0]}.{OLDEST[1]} or later is needed; {have or 'none was found'}; fetch it "
        "with: atoll engine install mariadb, or put its 'mariadbd' on the PATH"
    )


def _candidates(unpacked: str) -> Iterator[str]:
    """The PATH's, the system's, and what `atoll engine install` unpacked into the cache."""
    on_path = shutil.which("mariadbd")
    if on_path:
        yield os.path.dirname(os.path.dirname(os.path.realpath(on_path)))
    yield "/usr"
    if unpacked:
        yield f"{unpacked}/usr"


def _version(host: Host, home: str) -> re.Match[str] | None:
    env = {**os.environ, **environment(home)}
    try:
        done = host.run([f"{home}/sbin/mariadbd", "--version"], timeout_s=20, env=env)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return _VERSION.search(done.stdout)
