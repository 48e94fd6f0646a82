"""What is rendered: a plan laid out for a folder where it will stay, started by hand or by systemd.

The same `layout` as for `atoll up`, with fixed ports and paths. Drivers are left out: that is the
user's own application. Pure.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from atoll.engines.api import Engine, Installation, Layout
from atoll.engines.calls import laid_out, standing, wanted_ports
from atoll.engines.facts import EngineFacts, facts_of
from atoll.engines.loading import instance as template_instance
from atoll.engines.userconfig.changes import masked
from atoll.errors import UsageError
from atoll.schema.deployment import ProcessSpec, Role
from atoll.schema.plan import EngineTraits, MemoryPolicy, Plan
from atoll.supervise.place import placed_argv

_LAST_PORT = 65535

# The kernel's limit of a UNIX socket's path, its end not counted.
_MOST_SOCKET_BYTES = 107


@dataclass(frozen=True, slots=True)
class Rendering:
    """A folder to be written: paths below it, and what lies there."""

    files: Mapping[str, str]
    scripts: Mapping[str, str] = field(default_factory=dict)  # files that can be executed
    copies: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    folders: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Target:
    """Where and as what a rendered deployment will run."""

    name: str
    folder: str  # absolute, on the machine that it is for
    user: str
    port_base: int

    @property
    def data(self) -> str:
        """For what grows: data directories, spilled data."""
        return f"{self.folder}/data"


def ports_from(first: int, count: int) -> range:
    """Raises UsageError where there are not so many."""
    if first + count - 1 > _LAST_PORT:
        raise UsageError(
            f"--port-base {first}: of {count} ports from there some are above {_LAST_PORT}; "
            "give a lower one"
        )
    return range(first, first + count)


@dataclass(frozen=True, slots=True)
class Standing:
    """A deployment that outlives Atoll."""

    plan: Plan
    target: Target
    layout: Layout
    processes: tuple[ProcessSpec, ...]  # without drivers
    # Process -> the command that makes what it begins with, once.
    prepare: Mapping[str, tuple[str, ...]]
    facts: EngineFacts

    def secret_environment(self, spec: ProcessSpec) -> list[str]:
        """Paths of what the process finds in its environment beside `spec.env`: NAME="value"."""
        path = f"secret/{spec.name}.env"
        return [f"{self.target.folder}/{path}"] if path in self.layout.files else []


def coordinator_bytes(plan: Plan, traits: EngineTraits) -> int:
    """What the coordinator may take; a plan edited by hand may name none, or no heap."""
    return (plan.coordinator.heap_bytes if plan.coordinator else 0) or traits.coordinator_bytes


def stand(plan: Plan, engine: Engine, installation: Installation, target: Target) -> Standing:
    """Raises UsageError for an engine without a server of its own, for a path too long, and for
    ports that there are not."""
    engine = standing(engine)
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
        make, own = _by_hand(spec.argv)
        public = {key: value for key, value in spec.env.items() if not _is_secret(key, value)}
        if hidden := spec.env.items() - public.items():
            secret[f"secret/{spec.name}.env"] = _assignments(dict(sorted(hidden)))
        processes.append(spec.model_copy(update={"argv": own, "env": public}))
        if make:
            prepare[spec.name] = make
    if any(spec.argv[0] == sys.executable for spec in processes):
        raise UsageError(
            f"{plan.engine}: has no server of its own that could be started without Atoll; "
            f"'atoll up {plan.engine}' starts it, 'atoll plan {plan.engine}' says who sits where"
        )
    for spec in processes:
        if spec.ready_socket and len(spec.ready_socket.encode()) > _MOST_SOCKET_BYTES:
            raise UsageError(
                f"{spec.ready_socket}: too long for a UNIX socket (at most {_MOST_SOCKET_BYTES} "
                "bytes); give a shorter folder with --at"
            )
    layout = replace(layout, files={**layout.files, **secret})
    return Standing(plan, target, layout, tuple(processes), prepare, facts_of(engine))


def _is_secret(key: str, value: str) -> bool:
    line = f"{key}={value}"
    return masked(line) != line


def _assignments(environment: Mapping[str, str]) -> str:
    """As a shell and systemd's EnvironmentFile= both read them."""
    quoted = {
        key: "".join(f"\\{mark}" if mark in '"\\`$' else mark for mark in value)
        for key, value in environment.items()
    }
    return "".join(f'{key}="{value}"\n' for key, value in quoted.items())


def _by_hand(argv: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(what is to be run once before, the engine's own command line)."""
    if template_instance.__file__ not in argv:
        return (), argv
    _, data, *commands = argv[argv.index(template_instance.__file__) + 1 :]
    border = commands.index("--")
    make = tuple(word.replace("{}", data) for word in commands[:border])
    return make, tuple(commands[border + 1 :])


def preview(engine: Engine, plan: Plan, installation: Installation) -> Layout:
    """The layout somewhere, to see what is in its files."""
    ports = range(8080, 8080 + wanted_ports(engine, plan))
    return laid_out(engine, plan, installation, run_dir="/run/atoll", ports=list(ports))


def folder_of(standing: Standing, scripts: Mapping[str, str], readme: str) -> Rendering:
    """The layout's files, less what only drivers read, with `scripts` and how to use it all."""
    drivers = [spec for spec in standing.layout.processes if spec.role is Role.DRIVER]
    named = " ".join(word for spec in drivers for word in spec.argv)
    files = {
        path: text
        for path, text in standing.layout.files.items()
        if f"{standing.target.folder}/{path}" not in named
    }
    files["plan.json"] = standing.plan.model_dump_json(indent=2) + "\n"
    files["README.md"] = readme
    return Rendering(
        files=files,
        scripts=scripts,
        copies=standing.layout.copies,
        links=standing.layout.links,
        folders=("data", *sorted({spec.cwd for spec in standing.processes if spec.cwd})),
    )


def numactl_argv(plan: Plan, process: ProcessSpec) -> list[str]:
    """`process` behind numactl, which takes atoll-exec's flags; without where none is needed."""
    argv = placed_argv("numactl", plan, process)
    if argv[1] == "--":
        return argv[2:]
    slot = None if process.slot is None else plan.slots[process.slot]
    if slot and slot.memory_policy is MemoryPolicy.PREFERRED and len(slot.memory_nodes) > 1:
        argv[argv.index("-p")] = "-P"  # numactl's -p takes one node
    return argv


def place_of(plan: Plan, process: ProcessSpec) -> str:
    """'CPUs 0-7, memory bound to node 0' in numactl's words: '-C 0-7 -m 0'."""
    words = numactl_argv(plan, process)
    return " ".join(words[1 : words.index("--")]) if words[0] == "numactl" else "anywhere"
