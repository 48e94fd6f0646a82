"""What engines with a whole server in every slot share. A server's data directory begins as a
copy of a template, which is empty or contains the tables of a suite.

A server listens only on a UNIX socket in a folder that is closed to others. Only the same user and
root can open the socket. Both could read the data anyway, so the server asks for no password.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import secrets
import shlex
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol, Self

from atoll.engines.api import Client, Data, Installation, Layout, Table
from atoll.engines.explained import Reasons, Setting, Why, reasons, values
from atoll.engines.facts import EngineFacts
from atoll.engines.loading import instance as template_instance
from atoll.engines.loading.templates import loaded_path
from atoll.engines.sql.connections import connect_each, require_client
from atoll.engines.userconfig.tree import UserTree
from atoll.errors import EngineFailed, NotPermitted, UsageError
from atoll.host.api import Host
from atoll.host.caller import clean_environment
from atoll.host.programs import ProgramFiles
from atoll.install import installed
from atoll.schema.deployment import Access, ProcessSpec, Role
from atoll.schema.plan import LOOPBACK, EngineTraits, Plan, Slot
from atoll.store.paths import cache_dir

# The packages that Atoll unpacks keep the folders of the system's package.
_UNPACKED = re.compile(r"(?P<root>.+)/usr(?:/lib/\w+/\d+/bin)?")


class ServerSettings(Protocol):
    """The module `settings` of such an engine. Pure."""

    OTHER_REASONS: Reasons  # for settings that the functions do not return

    # The server, and the program that makes its data directory.
    def programs(self, home: str) -> tuple[str, str]: ...
    # The command that makes an empty data directory, {}.
    def make_empty(self, home: str) -> tuple[str, ...]: ...
    # The arguments that have the server read the file `config`.
    def arguments(self, config: str) -> tuple[str, ...]: ...
    # `port`: at which that server listens, 0 for none.
    def socket_path(self, run_dir: str, index: int, port: int = 0) -> str: ...
    # The command of an SQL client of that server.
    def client_command(self, home: str, run_dir: str, index: int) -> tuple[str, ...]: ...
    # The same at a port: variables, the command, and the file with the password.
    def port_command(
        self, home: str, run_dir: str, port: int
    ) -> tuple[dict[str, str], tuple[str, ...], str]: ...
    # Settings with which a server listens at the port, on loopback.
    def at_port(self, port: int) -> dict[str, Setting]: ...
    # Files in the run folder, some in place of `shared_files`, that ask for this password there.
    def login_files(self, password: str) -> dict[str, str]: ...
    # Files in the run folder that all servers read.
    def shared_files(self) -> dict[str, str]: ...
    # Settings that keep a server within its data directory and the run folder.
    def location(self, index: int, *, data: str, run_dir: str, home: str) -> dict[str, Setting]: ...
    # Settings that follow from the slot. A user's limits below them stay.
    def placement(self, slot: Slot) -> dict[str, Setting]: ...
    # Settings that a user's own configuration replaces.
    def choices(self, slot: Slot, *, durable: bool) -> dict[str, Setting]: ...
    # A new configuration file.
    def write(self, settings: Mapping[str, str]) -> str: ...
    # The path of the file that includes the others.
    def config_of(self, tree: UserTree) -> str: ...
    # The user's files below `folder`, with `ours` in the one that includes the others. `whole`: the
    # slot is the whole machine.
    def on_tree(
        self, tree: UserTree, ours: Mapping[str, str], *, folder: str, version: str, whole: bool
    ) -> dict[str, str]: ...
    # Setting -> bytes that each server uses in addition to its buffer pool. Raises UsageError for a
    # folder without a configuration, or with one that cannot be read.
    def taken(self, tree: UserTree) -> dict[str, int]: ...


@dataclass(frozen=True, slots=True)
class ServerPerSlot(ABC):
    """A `LoadingEngine`, `ConfigurableEngine`, `RemoteEngine` and `UnattendedEngine` of
    `atoll.engines.api`. An engine adds where its programs are, its clients, and its loading."""

    data: Data | None = None
    tree: UserTree | None = None
    outlives_atoll: bool = False
    has_ports: bool = False  # on loopback, with a password
    data_folder: str = ""  # in which the data outlives the deployment; empty: it does not

    title: ClassVar[str]
    own_traits: ClassVar[EngineTraits]  # without a user's configuration
    facts: ClassVar[EngineFacts]
    settings: ClassVar[ServerSettings]
    config_name: ClassVar[str]  # 'NAME-{}.conf': the configuration of a slot's server
    oldest: ClassVar[tuple[int, ...]]  # the oldest version that Atoll can start
    version_arguments: ClassVar[tuple[str, ...]]  # with which the server prints its version
    # The version and, in further groups, the numbers that are compared with `oldest`.
    version_pattern: ClassVar[re.Pattern[str]]
    python_client: ClassVar[tuple[str, str]]  # the Python package and its module

    @abstractmethod
    def homes(self, host: Host, unpacked: str) -> Iterator[str]:
        """Folders in which the programs may be, the preferred one first. `unpacked`: the root of
        the package that `atoll engine install` unpacked; '' if there is none."""

    @abstractmethod
    def client(self, path: str, *, timeout_s: float) -> Client:
        """A client of the server at that socket. Raises EngineFailed."""

    @abstractmethod
    def reach(self, url: str, *, timeout_s: float) -> Client:
        """See `atoll.engines.api.RemoteEngine`."""

    @property
    def traits(self) -> EngineTraits:
        if self.tree is None:
            return self.own_traits
        taken = {name: size for name, size in self.settings.taken(self.tree).items() if size}
        if not taken:
            return self.own_traits
        source = f"{self.tree.root} ({', '.join(taken)})"
        counted = {"asked_bytes": sum(taken.values()), "asked_source": source}
        return self.own_traits.model_copy(update=counted)

    def locate(self, host: Host) -> Installation:
        name = self.own_traits.name
        version, home = self.find(host)
        require_client(*self.python_client, engine=name)
        if host.user_id() == 0:
            raise NotPermitted(
                f"{self.title} refuses to run as root; run the command as an ordinary user, with "
                "'sudo -u NAME' before it"
            )
        return Installation(version, home, cache=str(cache_dir(name)))

    def malloc_files(self, host: Host) -> ProgramFiles:
        """See `atoll.engines.api.AllocatingEngine`."""
        _, home = self.find(host)
        server, _ = self.settings.programs(home)
        return ProgramFiles(server, folders=environment(home).get("LD_LIBRARY_PATH", ""))

    def find(self, host: Host) -> tuple[str, str]:
        """(version, home) of the first server that runs and is new enough.

        Raises EngineFailed naming those that do not fit."""
        unfit: dict[str, str] = {}
        (part,) = self.facts.parts or ()
        for home in self.homes(host, installed(part.name)):
            server, maker = self.settings.programs(home)
            if home in unfit or not host.exists(maker):
                continue
            version = self._version(host, server, home)
            if version is not None and tuple(map(int, version.groups()[1:])) >= self.oldest:
                return version[1], home
            unfit[home] = f"is {version[1]}" if version else "does not run"
        found = ", ".join(f"the one in {home} {why}" for home, why in unfit.items())
        program = os.path.basename(self.settings.programs("")[0])
        raise EngineFailed(
            f"{self.title} {'.'.join(map(str, self.oldest))} or later is needed; "
            f"{found or 'none was found'}; install it with: atoll engine install "
            f"{self.own_traits.name}, or put its '{program}' on the PATH"
        )

    def _version(self, host: Host, server: str, home: str) -> re.Match[str] | None:
        argv = (server, *self.version_arguments)
        try:
            done = host.run(argv, timeout_s=20, env={**clean_environment(), **environment(home)})
        except OSError:
            return None
        return self.version_pattern.search(done.stdout)

    def ports(self, plan: Plan) -> int:
        return len(plan.slots) if self.has_ports else 0

    def layout(
        self,
        plan: Plan,
        installation: Installation,
        *,
        run_dir: str,
        ports: Sequence[int],
        scratch_dir: str | None = None,
    ) -> Layout:
        settings, home = self.settings, installation.home
        processes: list[ProcessSpec] = []
        files = settings.shared_files()
        if self.has_ports:
            files |= settings.login_files(secrets.token_hex(16))
        port_of = dict(zip((slot.index for slot in plan.slots), ports, strict=False))
        why: dict[str, Why] = dict(settings.OTHER_REASONS)
        for slot in plan.slots:
            data = f"{self.data_folder or scratch_dir or run_dir}/data-{slot.index}"
            port = port_of.get(slot.index, 0)
            ours = settings.location(slot.index, data=data, run_dir=run_dir, home=home)
            if port:
                ours |= settings.at_port(port)
            ours |= settings.placement(slot)
            folder = ""
            if self.tree is None:
                ours |= settings.choices(slot, durable=self.outlives_atoll)
                config = self.config_name.format(slot.index)
                files[config] = settings.write(values(ours))
            else:
                folder = f"server-{slot.index}"
                config = f"{folder}/{settings.config_of(self.tree)}"
                files |= settings.on_tree(
                    self.tree,
                    values(ours),
                    folder=folder,
                    version=installation.version,
                    whole=slot.cpus is None,
                )
            why |= reasons(ours)
            processes.append(
                ProcessSpec(
                    name=f"worker-{slot.index}",
                    role=Role.WORKER,
                    slot=slot.index,
                    argv=self._command(installation, data, f"{run_dir}/{config}"),
                    env=environment(home),
                    cwd=folder,  # in which option files look for the files that they include
                    stage=0,
                    ready_socket=settings.socket_path(run_dir, slot.index, port),
                )
            )
        return Layout(
            processes=tuple(processes),
            files=files,
            endpoints=tuple(spec.ready_socket for spec in processes if spec.ready_socket),
            access=tuple(
                self._access(home, run_dir, slot.index, port_of.get(slot.index, 0))
                for slot in plan.slots
            ),
            reasons=why,
        )

    def _access(self, home: str, run_dir: str, index: int, port: int) -> Access:
        if port:
            variables, words, password = self.settings.port_command(home, run_dir, port)
            address = f"{next(iter(self.facts.ports))}://{LOOPBACK}:{port}"
            remark = f"the password lies in {password}"
        else:
            variables, words = {}, self.settings.client_command(home, run_dir, index)
            address = self.settings.socket_path(run_dir, index)
            remark = "no password: only this user and root can open the socket"
        if variables := environment(home) | variables:
            words = ("env", *(f"{name}={value}" for name, value in variables.items()), *words)
        return Access(address=address, command=shlex.join(words), remark=remark)

    def _command(self, installation: Installation, data: str, config: str) -> tuple[str, ...]:
        """Copies the template to `data`, unless it is there; then becomes the server."""
        settings, home = self.settings, installation.home
        empty = template_path(installation)
        return (
            *(sys.executable, "-IS", template_instance.__file__),
            *(empty if self.data is None else loaded_path(empty, self.data), data),
            *(settings.make_empty(home) if self.data is None else ()),
            *("--", settings.programs(home)[0], *settings.arguments(config)),
        )

    def connect(self, endpoints: Sequence[str], *, timeout_s: float) -> list[Client]:
        return connect_each(endpoints, lambda path: self.client(path, timeout_s=timeout_s))

    def attach(self, table: Table) -> list[str]:
        if self.data is not None and table in self.data.tables:
            return []
        raise UsageError(
            f"{self.title} cannot read Parquet files in place; table {table.name} must be loaded, "
            "as 'atoll bench' does"
        )

    def holding(self, data: Data) -> Self:
        return replace(self, data=data)

    def on(self, tree: UserTree) -> Self:
        self.settings.taken(tree)  # raises UsageError for a configuration that cannot be read
        return replace(self, tree=tree)

    def with_ports(self) -> Self:
        return replace(self, has_ports=True)

    def unattended(self) -> Self:
        return replace(self, outlives_atoll=True)

    def kept_in(self, folder: str) -> Self:
        """See `atoll.engines.transactions.TransactionalEngine`. Then the data is durable."""
        return replace(self, data_folder=folder, outlives_atoll=True)


def template_path(installation: Installation) -> str:
    """The empty data directory that `template_instance` copies."""
    # Two builds of one version may differ in the layout of their pages.
    build = hashlib.sha256(installation.home.encode()).hexdigest()[:8]
    return f"{installation.cache}/{installation.version}-{build}"


def environment(home: str) -> dict[str, str]:
    """The libraries of an unpacked package. Its programs find all other files themselves."""
    unpacked = _UNPACKED.fullmatch(home)
    if unpacked is None:
        return {}
    return {"LD_LIBRARY_PATH": f"{unpacked['root']}/usr/lib/{platform.machine()}-linux-gnu"}
