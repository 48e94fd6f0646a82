"""A plan laid out for the folder where it will stay, to be started by hand or by systemd. Pure.

The layout is that of `atoll up`, with fixed ports and paths. It leaves out drivers: the driver is
the user's own application.
"""

from __future__ import annotations

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
from atoll.schema.plan import EngineTraits, HugePages, MemoryPolicy, Plan
from atoll.schema.rendered import FILE, Rendered
from atoll.supervise.place import place_flags

# The kernel's limit for the path of a UNIX socket, without the final NUL.
_MAX_SOCKET_BYTES = 107
_ANY_PORT = 50000  # no agent of a user's is likely to have it


@dataclass(frozen=True, slots=True)
class UnattendedDeployment:
    """A deployment that runs without Atoll."""

    plan: Plan
    target: Target
    layout: Layout
    processes: tuple[ProcessSpec, ...]  # without drivers
    # Process -> the command that creates its data directory, to be run once.
    prepare: Mapping[str, tuple[str, ...]]
    facts: EngineFacts
    memory_bytes: int  # what the plan gives all of it together

    @property
    def mark(self) -> str:
        """Tells this deployment's processes from others; see `atoll.inspect.rendered`."""
        return f"{self.target.name}:{self.target.folder}"

    def environment(self, spec: ProcessSpec) -> list[tuple[str, str]]:
        return sorted({**spec.env, MARK: self.mark, PROCESS_MARK: spec.name}.items())

    def secret_environment(self, spec: ProcessSpec) -> list[str]:
        """Paths of files with further variables of the process, NAME="value" on each line."""
        path = f"secret/{spec.name}.env"
        return [f"{self.target.folder}/{path}"] if path in self.layout.files else []


def lay_out(
    plan: Plan, engine: Engine, installation: Installation, target: Target, *, preload: str = ""
) -> UnattendedDeployment:
    """`preload`: the library of the plan's malloc.

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
    secret: dict[str, str] = {}
    for spec in layout.processes:
        if spec.role is Role.DRIVER:
            continue
        make, own = _without_template(spec.argv)
        public = {key: value for key, value in spec.env.items() if not _is_secret(key, value)}
        if preload:
            public["LD_PRELOAD"] = f"{preload}:{public.get('LD_PRELOAD', '')}".rstrip(":")
        if hidden := {(key, value) for key, value in spec.env.items() if key not in public}:
            secret[f"secret/{spec.name}.env"] = _assignments(dict(sorted(hidden)))
        processes.append(spec.model_copy(update={"argv": own, "env": public}))
        if make:
            prepare[spec.name] = make
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
    return UnattendedDeployment(
        plan,
        target,
        layout,
        tuple(processes),
        prepare,
        facts_of(engine),
        _memory_bytes(plan, engine.traits),
    )


def _memory_bytes(plan: Plan, traits: EngineTraits) -> int:
    workers = sum(slot.memory_bytes for slot in plan.slots)
    if plan.coordinator is None:
        return workers
    return workers + plan.coordinator.heap_bytes + traits.coordinator_overhead_bytes


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


def _without_template(argv: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(the command that creates the data directory, the engine's own command line)."""
    if template_instance.__file__ not in argv:
        return (), argv
    _, data, *commands = argv[argv.index(template_instance.__file__) + 1 :]
    border = commands.index("--")
    make = tuple(word.replace("{}", data) for word in commands[:border])
    return make, tuple(commands[border + 1 :])


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


def numactl_argv(plan: Plan, process: ProcessSpec) -> list[str]:
    """The process behind numactl; the process alone if it needs no place."""
    flags = place_flags(plan, process)
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
