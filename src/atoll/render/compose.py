"""A deployment as a Compose file: a service per process. Pure.

`cpuset` is a hard limit, as systemd's AllowedCPUs=. The format has no memory nodes, so numactl sets
the memory policy inside the container.

Source: the Compose Specification (compose-spec, 05-services.md); checked by docker-compose 1.29.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace

from atoll.engines.rendered import Rendering
from atoll.errors import UsageError
from atoll.render.container import (
    MEMORY_CAPABILITY,
    command,
    folders,
    needs_of_image,
    sets_memory,
    working_folder,
)
from atoll.render.deployment import (
    START_S,
    STOP_S,
    UnattendedDeployment,
    earlier,
    folder_of,
    listens,
)
from atoll.render.native import preparations, readme
from atoll.render.yaml import Value, yaml_text
from atoll.schema.cpulist import format_cpulist
from atoll.schema.deployment import ProcessSpec

_FILE = "compose.yaml"
_PROJECT = re.compile("[a-z0-9][a-z0-9_-]*")
_CREATE = "create"  # the profile of the services that create data directories


def render_compose(deployment: UnattendedDeployment) -> Rendering:
    """Raises UsageError for a name that a project cannot have."""
    if not _PROJECT.fullmatch(deployment.target.name):
        raise UsageError(
            f"--name {deployment.target.name}: a Compose project has only small letters, digits, "
            "'_' and '-', and begins with a letter or digit; give another name"
        )
    rendering = folder_of(deployment, {}, readme(deployment, _how(deployment)))
    return replace(rendering, files={**rendering.files, _FILE: compose_file(deployment)})


def compose_file(deployment: UnattendedDeployment) -> str:
    services: dict[str, Value] = {}
    for spec in deployment.processes:
        if argv := deployment.prepare.get(spec.name):
            creator = _container(deployment, spec.model_copy(update={"argv": argv}))
            services[f"{_CREATE}-{spec.name}"] = {"profiles": [_CREATE], **creator}
        services[spec.name] = _service(deployment, spec)
    return yaml_text({"services": _uninterpolated(services)})


def _container(deployment: UnattendedDeployment, spec: ProcessSpec) -> dict[str, Value]:
    target, place = deployment.target, deployment.place(spec)
    # A number alone would have root's group.
    parts: dict[str, Value] = {"image": target.image, "user": f"{target.user}:{target.user}"}
    if place.cpus is not None:
        parts["cpuset"] = format_cpulist(place.cpus)
    if place.limit_bytes is not None:
        parts["mem_limit"] = place.limit_bytes
        # /dev/shm, by which a database's processes may share memory; a container has 64 MB.
        parts["shm_size"] = place.limit_bytes
    else:
        parts["ipc"] = "host"  # its /dev/shm has no limit of a container
    parts |= {
        # All of it: an entry point of the image would start something else.
        "entrypoint": command(deployment, spec),
        "working_dir": working_folder(deployment, spec),
        "environment": dict(deployment.environment(spec)),
        "network_mode": "host",
        "read_only": True,
        "tmpfs": ["/tmp"],
        "volumes": [
            {"type": "bind", "source": path, "target": path, "read_only": not may_write}
            for path, may_write in folders(deployment, spec).items()
        ],
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        "ulimits": {"nofile": 131072},
    }
    if sets_memory(deployment, spec):
        parts["cap_add"] = [MEMORY_CAPABILITY]
    return parts


def _service(deployment: UnattendedDeployment, spec: ProcessSpec) -> dict[str, Value]:
    service = {
        **_container(deployment, spec),
        "restart": "on-failure",
        "stop_signal": deployment.facts.stop_signal,
        "stop_grace_period": f"{STOP_S}s",
    }
    if test := listens(spec):
        service["healthcheck"] = {
            "test": ["CMD", "bash", "-c", test],
            "interval": "2s",
            "timeout": "5s",
            "start_period": f"{START_S}s",
        }
    if before := earlier(deployment, spec):
        service["depends_on"] = {
            other.name: {"condition": "service_healthy" if listens(other) else "service_started"}
            for other in before
        }
    return service


def _uninterpolated(value: Value) -> Value:
    """Compose replaces $NAME in every text, but for $$."""
    if isinstance(value, str):
        return value.replace("$", "$$")
    if isinstance(value, Mapping):
        return {key: _uninterpolated(own) for key, own in value.items()}
    if isinstance(value, Sequence):
        return [_uninterpolated(own) for own in value]
    return value


def _how(deployment: UnattendedDeployment) -> list[str]:
    target = deployment.target
    file = f"/etc/atoll/{target.name}.{_FILE}"
    compose = f"docker compose -p {target.name} -f {file}"
    lines = [
        *needs_of_image(deployment, numactl=True),
        "",
        "## The Compose file",
        "",
        "Copy it, do not link it: the engine's account must not be able to change what root "
        "starts.",
        "",
        "```sh",
        f"install -D -m 600 {shlex.quote(f'{target.folder}/{_FILE}')} {file}",
        "```",
        "",
        *preparations(deployment, lambda spec: f"{compose} run --rm {_CREATE}-{spec.name}"),
        "## Start",
        "",
        "```sh",
        f"{compose} up -d",
        "```",
        "",
        f"`{compose} stop` stops all of it. Docker restarts a container that fails. Do not count "
        "on it after Docker or the machine has restarted: use `up -d` again.",
        "",
        "`cpuset` needs a Docker that root runs. Compose has no memory nodes: numactl sets the "
        f"memory policy in the container, which has the capability {MEMORY_CAPABILITY} for it. "
        "A process can change a policy, so only the CPUs are a hard limit.",
    ]
    if len({spec.stage for spec in deployment.processes}) > 1:
        lines += ["", "Compose starts a service once those before it accept connections."]
    return lines
