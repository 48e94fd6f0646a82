"""A plan laid out for the folder where it will stay, to be started by something else. Pure.

The layout is that of `atoll up`, with fixed ports and paths. It leaves out drivers: the driver is
the user's own application.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from atoll.engines.api import Engine, Installation, Layout
from atoll.engines.calls import laid_out, unattended, wanted_ports
from atoll.engines.facts import EngineFacts, facts_of
from atoll.engines.loading import instance as template_instance
from atoll.engines.rendered import Rendering, Target, ports_from
from atoll.engines.userconfig.changes import masked
from atoll.engines.userconfig.summary import summary
from atoll.engines.userconfig.tree import UserTree
from atoll.errors import UsageError
from atoll.inspect.processes import MARK, PROCESS_MARK
from atoll.schema.deployment import ProcessSpec, Role
from atoll.schema.machine import Machine
from atoll.schema.plan import EngineTraits, HugePages, MemoryPolicy, Plan, Policy
from atoll.schema.rendered import FILE, Rendered
from atoll.supervise.place import place_flags

# The kernel's limit for the path of a UNIX socket, without the final NUL.
_MAX_SOCKET_BYTES = 107
_ANY_PORT = 50000  # no agent of a user's is likely to have it
_LISTENS = "00010000"  # the flags of a listening socket (unix(7), __SO_ACCEPTCON)
STOP_S = 300  # a database writes its memory to disk
START_S = 300  # as `atoll up`


@dataclass(frozen=True, slots=True)
class Place:
    """Where a process runs, and with which memory."""

    cpus: tuple[int, ...] | None  # None: no mask
    policy: MemoryPolicy
    nodes: tuple[int, ...]  # of the policy
    # None: no limit. WIM has none, because it is the engine as people start it.
    limit_bytes: int | None


@dataclass(frozen=True, slots=True)
class UnattendedDeployment:
    """A deployment that runs without Atoll."""

    plan: Plan
    target: Target
    layout: Layout
    processes: tuple[ProcessSpec, ...]  # without drivers
    # Process -> the command that creates its data directory, to be run once.
    prepare: Mapping[str, tuple[str, ...]]
    data_of: Mapping[str, str]  # the directory that the command creates
    facts: EngineFacts
    coordinator_bytes: int  # the memory of all that is in no slot
    node_bytes: Mapping[int, int]  # the machine's memory, by node; empty: unknown

    @property
    def mark(self) -> str:
        """Tells this deployment's processes from others; see `atoll.inspect.rendered`."""
        return f"{self.target.name}:{self.target.folder}"

    @property
    def limit_bytes(self) -> int | None:
        """What the plan gives all of it together; None under WIM."""
        if self.plan.policy is Policy.WIM:
            return None
        return sum(slot.memory_bytes for slot in self.plan.slots) + self.coordinator_bytes

    def place(self, spec: ProcessSpec) -> Place:
        limited = self.plan.policy is not Policy.WIM
        if spec.slot is not None:
            slot = self.plan.slots[spec.slot]
            limit = slot.memory_bytes if limited else None
            return Place(slot.cpus, slot.memory_policy, slot.memory_nodes, limit)
        limit = self.coordinator_bytes if limited and self.coordinator_bytes else None
        own = self.plan.coordinator
        if own is None:
            return Place(None, MemoryPolicy.FIRST_TOUCH, (), limit)
        policy = MemoryPolicy.BIND if own.memory_nodes else MemoryPolicy.FIRST_TOUCH
        return Place(own.cpus, policy, own.memory_nodes, limit)

    def environment(self, spec: ProcessSpec) -> list[tuple[str, str]]:
        return sorted({**spec.env, MARK: self.mark, PROCESS_MARK: spec.name}.items())

    def secret_environment(self, spec: ProcessSpec) -> list[str]:
        """Paths of files with further variables of the process, NAME="value" on each line."""
        path = f"secret/{spec.name}.env"
        return [f"{self.target.folder}/{path}"] if path in self.layout.files else []


def lay_out(
    plan: Plan,
    engine: Engine,
    installation: Installation,
    target: Target,
    *,
    preload: str = "",
    machine: Machine | None = None,
) -> UnattendedDeployment:
    """`preload`: the library of the plan's malloc. `machine`: the plan's, if it is at hand.

    Raises UsageError for an engine without a server of its own, a path that is too long, too few
    ports, a setting that only a program can make for itself, and thread placement that only a
    running Atoll can carry out."""
    if plan.task_threads is not None and not plan.task_threads.openmp:
        raise UsageError(
            f"placement {plan.placement}: Atoll binds the threads of {plan.engine} while they run, "
            "and a rendered deployment runs without Atoll; make the plan with --placement none, "
            "or start it with 'atoll up'"
        )
    if plan.thp is HugePages.NEVER:
        raise UsageError(
            "--thp never: only a program can turn huge pages off for itself "
            "(PR_SET_THP_DISABLE), and neither numactl nor systemd does; use 'atoll up', or turn "
            "them off on the whole machine ('atoll apply thp-enabled=never')"
        )
    engine = unattended(engine)
    ports = ports_from(target.port_base, wanted_ports(engine, plan))
    layout = laid_out(
        engine,
        plan,
        installation,
        run_dir=target.folder,
        ports=list(ports),
        scratch_dir=target.data,
    )
    processes: list[ProcessSpec] = []
    prepare: dict[str, tuple[str, ...]] = {}
    data_of: dict[str, str] = {}
    secret: dict[str, str] = {}
    for spec in layout.processes:
        if spec.role is Role.DRIVER:
            continue
        make, data, own = _without_template(spec.argv)
        public = {key: value for key, value in spec.env.items() if not _is_secret(key, value)}
        if preload:
            public["LD_PRELOAD"] = f"{preload}:{public.get('LD_PRELOAD', '')}".rstrip(":")
        if hidden := {(key, value) for key, value in spec.env.items() if key not in public}:
            secret[f"secret/{spec.name}.env"] = _assignments(dict(sorted(hidden)))
        processes.append(spec.model_copy(update={"argv": own, "env": public}))
        if make:
            prepare[spec.name], data_of[spec.name] = make, data
    if any(spec.argv[0] == sys.executable for spec in processes):
        raise UsageError(
            f"{plan.engine}: has no server that could start without Atoll; 'atoll up "
            f"{plan.engine}' starts it, 'atoll plan {plan.engine}' shows its places"
        )
    for spec in processes:
        if spec.ready_socket and len(spec.ready_socket.encode()) > _MAX_SOCKET_BYTES:
            raise UsageError(
                f"{spec.ready_socket}: too long for a UNIX socket (at most {_MAX_SOCKET_BYTES} "
                "bytes); give a shorter folder with --at"
            )
    layout = replace(layout, files={**layout.files, **secret})
    node_bytes = {node.os_index: node.memory_bytes for node in machine.nodes} if machine else {}
    return UnattendedDeployment(
        plan,
        target,
        layout,
        tuple(processes),
        prepare,
        data_of,
        facts_of(engine),
        _coordinator_bytes(plan, engine.traits),
        node_bytes if any(node_bytes.values()) else {},
    )


def _coordinator_bytes(plan: Plan, traits: EngineTraits) -> int:
    if plan.coordinator is None:
        return 0
    return plan.coordinator.heap_bytes + traits.coordinator_overhead_bytes


def listens(spec: ProcessSpec) -> str:
    """A command for bash that succeeds once the process accepts connections; empty if it is
    ready without."""
    if spec.ready_port is not None:  # bash(1), Redirections
        return f": </dev/tcp/{spec.ready_address}/{spec.ready_port}"
    if spec.ready_socket is not None:
        path = shlex.quote(f" {spec.ready_socket}")
        return f"grep -F {path} /proc/net/unix | grep -q ' {_LISTENS} '"
    return ""


def earlier(deployment: UnattendedDeployment, spec: ProcessSpec) -> list[ProcessSpec]:
    """The processes that must accept connections before this one starts."""
    return [other for other in deployment.processes if other.stage < spec.stage]


def writable(deployment: UnattendedDeployment, spec: ProcessSpec) -> list[str]:
    """The folders in which the process writes."""
    target = deployment.target
    return [target.data, *([target.folder] if spec.ready_socket else [])]


def _is_secret(key: str, value: str) -> bool:
    assignment = f"{key}={value}"
    return masked(assignment) != assignment


def _assignments(environment: Mapping[str, str]) -> str:
    """In the form that a shell and systemd's EnvironmentFile= both read."""
    quoted = {
        key: "".join(f"\\{mark}" if mark in '"\\`$' else mark for mark in value)
        for key, value in environment.items()
    }
    return "".join(f'{key}="{value}"\n' for key, value in quoted.items())


def _without_template(argv: tuple[str, ...]) -> tuple[tuple[str, ...], str, tuple[str, ...]]:
    """(the command that creates the data directory, the directory, the engine's own command)."""
    if template_instance.__file__ not in argv:
        return (), "", argv
    _, data, *commands = argv[argv.index(template_instance.__file__) + 1 :]
    border = commands.index("--")
    make = tuple(word.replace("{}", data) for word in commands[:border])
    return make, data, tuple(commands[border + 1 :])


def summary_before_start(
    engine: Engine, plans: Sequence[Plan], installation: Installation, tree: UserTree
) -> list[str]:
    """What the plans' deployments will change in the user's configuration. Their folders and ports
    are chosen later."""
    layouts = []
    ports: set[int] = set()
    for plan in plans:
        own = range(_ANY_PORT, _ANY_PORT + wanted_ports(engine, plan))
        ports.update(own)
        layouts.append(
            laid_out(
                engine,
                plan,
                installation,
                run_dir="RUN_FOLDER",
                ports=list(own),
                scratch_dir="SCRATCH_FOLDER",
            )
        )
    return summary(tree, layouts, any_ports=ports)


def folder_of(
    deployment: UnattendedDeployment, scripts: Mapping[str, str], readme: str
) -> Rendering:
    """The layout's files without those that only drivers read, the scripts, and the README."""
    drivers = [spec for spec in deployment.layout.processes if spec.role is Role.DRIVER]
    named = " ".join(word for spec in drivers for word in spec.argv)
    files = {
        path: text
        for path, text in deployment.layout.files.items()
        if f"{deployment.target.folder}/{path}" not in named
    }
    files["plan.json"] = deployment.plan.model_dump_json(indent=2) + "\n"
    files[FILE] = (
        Rendered(
            name=deployment.target.name, mark=deployment.mark, processes=deployment.processes
        ).model_dump_json(indent=2)
        + "\n"
    )
    files["README.md"] = readme
    return Rendering(
        files=files,
        scripts=scripts,
        copies=deployment.layout.copies,
        links=deployment.layout.links,
        folders=(
            *deployment.target.own_data,
            *sorted({spec.cwd for spec in deployment.processes if spec.cwd}),
        ),
    )


def numactl_argv(plan: Plan, process: ProcessSpec, *, cpus: bool = True) -> list[str]:
    """The process behind numactl; the process alone if it needs no place. `cpus`: False if another
    sets the mask."""
    flags = place_flags(plan, process)
    if not cpus and flags[:1] == ["-C"]:
        flags = flags[2:]
    if not flags:
        return list(process.argv)
    argv = ["numactl", *flags, "--", *process.argv]
    slot = None if process.slot is None else plan.slots[process.slot]
    if slot and slot.memory_policy is MemoryPolicy.PREFERRED and len(slot.memory_nodes) > 1:
        argv[argv.index("-p")] = "-P"  # numactl's -p takes one node
    return argv


def slot_places(plan: Plan) -> Sequence[Sequence[str]]:
    """For each slot the numactl command that puts a program there, with the closing `--`; empty
    for a slot without a place."""
    specs = [
        ProcessSpec(
            name="place", role=Role.WORKER, slot=slot.index, argv=("PROGRAM",), env={}, stage=0
        )
        for slot in plan.slots
    ]
    return [numactl_argv(plan, spec)[:-1] for spec in specs]


def place_of(plan: Plan, process: ProcessSpec) -> str:
    """The flags of numactl: '-C 0-7 -m 0' for CPUs 0-7 and memory bound to node 0."""
    words = numactl_argv(plan, process)
    return " ".join(words[1 : words.index("--")]) if words[0] == "numactl" else "anywhere"
