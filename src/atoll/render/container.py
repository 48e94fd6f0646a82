"""What Compose and Kubernetes share: the command, the folders and the rights of a container. Pure.

A container has the host's network and the same paths as the host, so that addresses and settings
of the plan stay true. Its image has the engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from atoll.render.deployment import UnattendedDeployment, numactl_argv, writable
from atoll.schema.deployment import ProcessSpec
from atoll.schema.plan import MemoryPolicy

# The profiles of container runtimes allow set_mempolicy(2) only with this capability.
MEMORY_CAPABILITY = "SYS_NICE"
_WITH_SECRETS = 'set -a; . "$0"; set +a; exec "$@"'


def command(deployment: UnattendedDeployment, spec: ProcessSpec) -> list[str]:
    """The process behind numactl if it has a memory policy; the runtime sets the CPUs."""
    return with_secrets(deployment, spec, numactl_argv(deployment.plan, spec, cpus=False))


def with_secrets(
    deployment: UnattendedDeployment, spec: ProcessSpec, argv: Sequence[str]
) -> list[str]:
    """`argv` behind a shell that reads the process's secret variables, if it has some."""
    argv = list(argv)
    for path in deployment.secret_environment(spec):
        argv = ["/bin/sh", "-c", _WITH_SECRETS, path, *argv]
    return argv


def sets_memory(deployment: UnattendedDeployment, spec: ProcessSpec) -> bool:
    return deployment.place(spec).policy is not MemoryPolicy.FIRST_TOUCH


def folders(deployment: UnattendedDeployment, spec: ProcessSpec) -> dict[str, bool]:
    """Folders of the host that the container has at the same path -> whether it may write."""
    may_write = writable(deployment, spec)
    target = deployment.target
    return {path: path in may_write for path in (target.folder, target.data)}


def working_folder(deployment: UnattendedDeployment, spec: ProcessSpec) -> str:
    return f"{deployment.target.folder}/{spec.cwd}".rstrip("/")


def needs_of_image(deployment: UnattendedDeployment, *, numactl: bool) -> list[str]:
    """Lines of the README: what the image must have."""
    target = deployment.target
    programs = dict.fromkeys(
        [
            *(spec.argv[0] for spec in deployment.processes),
            *(argv[0] for argv in deployment.prepare.values()),
        ]
    )
    lines = [
        "## The image",
        "",
        f"`{target.image}` must have",
        "",
        f"- the engine, at the paths that the files name: {_code(programs)};",
        f"- an account with the number {target.user};",
        "- `sh`, `bash`, `grep` and `sleep`.",
    ]
    if numactl and any(sets_memory(deployment, spec) for spec in deployment.processes):
        lines.append("- `numactl`, which sets the memory policy of each process.")
    return [
        *lines,
        "",
        "A container has the network of the host, and the same folders at the same paths.",
    ]


def _code(texts: Iterable[str]) -> str:
    return ", ".join(f"`{text}`" for text in texts)
