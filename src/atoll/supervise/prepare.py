"""What `atoll up` checks and decides before it starts anything: whether the plan fits this machine,
where the engine is, at which ports it listens, and all files and command lines.
"""

from __future__ import annotations

from dataclasses import dataclass

from atoll.engines.api import Engine, Installation
from atoll.engines.calls import laid_out, located, require_secret, wanted_ports, with_ports
from atoll.engines.sql.shell import shell_command
from atoll.errors import EngineFailed, UsageError
from atoll.host.api import Host
from atoll.host.caller import clean_environment
from atoll.host.ports import free_ports
from atoll.host.programs import find_program
from atoll.schema.deployment import START_TIMEOUT_S, Access, UpOptions
from atoll.schema.machine import Machine
from atoll.schema.plan import Plan
from atoll.store.paths import cache_dir, run_dir
from atoll.supervise import records
from atoll.supervise.place import refuse_foreign, refuse_unfit
from atoll.supervise.ports import LAST_PORT, refuse_taken
from atoll.supervise.request import Request

GRACE_S = 5.0


@dataclass(frozen=True, slots=True)
class Prepared:
    """A start that may begin."""

    name: str
    plan: Plan
    engine: Engine
    installation: Installation
    launcher: str  # atoll-exec
    options: UpOptions | None
    ports: range  # at which clients connect, as the user chose; empty: any

    def refuse_taken_ports(self, host: Host) -> None:
        """Raises PortTaken, and NotPermitted for a port that this user may not open."""
        for port in self.ports:
            refuse_taken(port, self.plan.addresses, host)
        if self.plan.cluster and self.plan.cluster.leads:
            head = self.plan.cluster
            refuse_taken(head.port, [head.address], host, option="fleet plan --cluster --port")

    def request(self, identity: str, *, grace_s: float = GRACE_S) -> Request:
        """All files and command lines. Makes no folder: those of a killed process would stay."""
        fixed = [*self.ports, *([self.plan.cluster.port] if self.plan.cluster else [])]
        folder, scratch = str(run_dir() / identity), str(cache_dir("scratch") / identity)
        others = wanted_ports(self.engine, self.plan) - len(self.ports)
        layout = laid_out(
            self.engine,
            self.plan,
            self.installation,
            run_dir=folder,
            ports=(*self.ports, *free_ports(others, self.plan.addresses, without=fixed)),
            scratch_dir=scratch,
        )
        name = self.engine.traits.name
        access = layout.access or tuple(
            Access(address=each.partition("?")[0], command=shell_command(name, each))
            for each in layout.endpoints
        )
        lasting = records.lasting_path(folder, self.name)
        access = tuple(
            Access(**{key: text.replace(folder, lasting) for key, text in each}) for each in access
        )
        for port in self.ports:
            if not any(f":{port}" in each.address for each in access):
                raise _no_port(name)
        return Request(
            name=self.name,
            id=identity,
            plan=self.plan,
            processes=layout.processes,
            files=dict(layout.files),
            copies=dict(layout.copies),
            links=dict(layout.links),
            endpoints=layout.endpoints,
            access=access,
            options=self.options,
            run_dir=folder,
            scratch_dir=scratch,
            log_dir=str(records.logs(self.name)),
            launcher=self.launcher,
            environment=clean_environment(),
            start_timeout_s=self.options.timeout_s if self.options else START_TIMEOUT_S,
            grace_s=grace_s,
        )


def prepare(
    plan: Plan,
    engine: Engine,
    *,
    machine: Machine,
    host: Host,
    name: str | None = None,
    options: UpOptions | None = None,
) -> Prepared:
    """Raises UsageError (the plan of another machine, or a part of a cluster without its secret; a
    wrong name or port), NotPermitted (CPUs that this process may not use) and EngineFailed (the
    engine cannot be used)."""
    name = name or plan.engine
    records.check_name(name)
    refuse_foreign(plan, machine)
    refuse_unfit(plan, host)
    require_secret(plan, engine)
    launcher = find_launcher()
    installation = located(engine, host)
    ports = range(0)
    if options and options.port:
        engine = with_ports(engine)
        ports = _ports(plan, engine, options.port)
    return Prepared(name, plan, engine, installation, launcher, options, ports)


def _ports(plan: Plan, engine: Engine, first: int) -> range:
    """The ports at which clients connect: one for each logical server."""
    count = 1 if engine.traits.distributed else len(plan.slots)
    if wanted_ports(engine, plan) < count:
        raise _no_port(engine.traits.name)
    if first + count - 1 > LAST_PORT:
        raise UsageError(
            f"--port {first}: some of the {count} ports from there are above {LAST_PORT}; give a "
            "lower one"
        )
    return range(first, first + count)


def _no_port(engine: str) -> UsageError:
    return UsageError(
        f"{engine}: clients connect to UNIX sockets and not to ports; leave out --port"
    )


def find_launcher() -> str:
    found = find_program("atoll-exec")
    if found is None:
        raise EngineFailed("atoll-exec is not installed; run 'make setup' or reinstall atoll")
    return found
