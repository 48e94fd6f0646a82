"""How Trino and Presto are laid out: a coordinator, a worker per slot, and an `etc` tree for each.

The trees are made from Atoll's own texts or from a user's, and both get the same settings on top
(`atoll.engines.trino.settings`).

Promises: everything binds 127.0.0.1; the secrets of a deployment lie in files alone.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from urllib.parse import quote

from atoll.engines.api import Installation, Layout
from atoll.engines.trino.family import CATALOGS, Family
from atoll.engines.trino.settings import (
    HTTPS_PORT,
    Instance,
    merged,
    own_settings,
    serves_tls,
    shared_settings,
)
from atoll.engines.trino.user_tree import (
    CONFIG,
    JVM,
    NODE,
    SECRETS,
    catalog_folder,
    properties_of_server,
    secrets_links,
    taken_from_environment,
)
from atoll.engines.userconfig.java import ARGUMENTS, write_arguments
from atoll.engines.userconfig.merge import merge_properties, read_flags, read_properties
from atoll.engines.userconfig.tree import UserTree
from atoll.errors import UsageError
from atoll.plan.jvm import placement_flags
from atoll.schema.deployment import ProcessSpec, Role
from atoll.schema.plan import Plan

CATALOG = "atoll"  # where a suite's tables are; no user's catalog has that name
SCHEMA = "suite"
COORDINATOR_BYTES = 1 << 30  # the least heap of a coordinator

# At INFO the log begins with a table of all settings, whose names speak of errors and would pass
# for the last words of whoever dies, and then tells every filter of every split. The two classes
# warn while others are still starting.
_LEVELS = """\
=WARN
Bootstrap=WARN
{package}.metadata.RemoteNodeState=ERROR
{package}.memory.RemoteNodeMemory=ERROR
"""


def ports(plan: Plan, base: UserTree | None, *, stands: bool) -> int:
    """Clients of a cluster that outlives Atoll know its port of TLS, which stays; else a free one
    is taken."""
    return 1 + len(plan.slots) + (1 if serves_tls(_config(base)) and not stands else 0)


def _config(base: UserTree | None) -> dict[str, str]:
    """What the user's configuration says by itself."""
    return properties_of_server(base) if base else {}


def _refuse_taken(port: str, ports: Sequence[int], base: UserTree | None) -> None:
    if base and port in map(str, ports):
        raise UsageError(
            f"{base.root}/{CONFIG}: {HTTPS_PORT} {port} is one of the ports of the instances, "
            f"{ports[0]} to {ports[-1]}; give these another --port-base"
        )


def lay_out(
    family: Family,
    plan: Plan,
    installation: Installation,
    *,
    base: UserTree | None,
    run_dir: str,
    scratch: str,
    ports: Sequence[int],
    stands: bool,
) -> Layout:
    coordinator = Instance(
        "coordinator",
        None,
        ports[0],
        # A plan edited by hand may name no heap, or no coordinator.
        (plan.coordinator.heap_bytes if plan.coordinator else 0) or COORDINATOR_BYTES,
        (),
    )
    workers = [
        Instance(
            f"worker-{slot.index}",
            slot,
            port,
            slot.heap_bytes,
            tuple(placement_flags(slot, plan)),
        )
        for slot, port in zip(plan.slots, ports[1:], strict=False)
    ]
    user = secrets.token_hex(16)
    catalogs = catalog_folder(base) if base else "catalog"
    texts = {JVM: "", **base.texts} if base else _own_texts(family)
    texts |= family.files
    is_closed = family.answers_one and base is None
    if is_closed:
        texts |= _access(user)
    # It reads all files that the server may read, which is not for a cluster of the user's.
    if not (base and stands):
        suites = family.suite_catalog.format(scratch=scratch)
        texts.setdefault(f"{catalogs}/{CATALOG}.properties", suites)
    environment = {
        "JAVA_HOME": installation.java.removesuffix("/bin/java"),
        **(taken_from_environment(base) if base else {}),
    }
    config = _config(base) if base else read_properties(texts[CONFIG], where=CONFIG)
    if stands and serves_tls(config):
        _refuse_taken(config.get(HTTPS_PORT, "8443"), ports[: 1 + len(workers)], base)
    shared = shared_settings(
        family, plan, coordinator.port, installation, run_dir, base, catalogs=catalogs
    )
    processes: list[ProcessSpec] = []
    files: dict[str, str] = {"user": user} if is_closed else {}
    copies: dict[str, str] = {}
    for instance in (coordinator, *workers):
        own = own_settings(family, instance, base, config, ports, scratch, stands=stands)
        etc = f"{instance.name}/etc"
        changed = merged(texts, base, instance, {**shared, **own}, scratch)
        files |= {f"{etc}/{name}": text for name, text in (texts | changed).items()}
        if base:
            copies |= {f"{etc}/{name}": f"{base.root}/{name}" for name in base.others}
        options = _options(family, instance, changed)
        if base:
            # A user's flags may have passwords in them, and everybody can read a command line.
            arguments = f"{instance.name}/{ARGUMENTS}"
            files[arguments] = write_arguments(options)
            options = (f"@{run_dir}/{arguments}",)
        processes.append(
            _process(
                family,
                instance,
                installation,
                options,
                environment,
                _named(family, texts),
            )
        )
    return Layout(
        processes=tuple(processes),
        files=files,
        copies=copies,
        links=secrets_links(base, installation.home, family.secrets_plugins, processes)
        if base
        else {f"plugin/{name}": f"{installation.home}/plugin/{name}" for name in family.plugins},
        endpoints=(
            f"http://127.0.0.1:{coordinator.port}/{CATALOG}/{SCHEMA}"
            + (f"?user-file={quote(run_dir)}/user" if is_closed else ""),
        ),
    )


def _access(user: str) -> dict[str, str]:
    """Who may open a port of 127.0.0.1 could have the server read any file that it may read. So it
    answers to one user alone, whose name nobody else knows."""
    rules = {
        "catalogs": [{"user": user, "allow": "all"}],
        "queries": [{"user": user, "allow": ["execute", "kill", "view"]}],
        "system_information": [{"user": user, "allow": ["read"]}],  # the failure detector's
    }
    return {
        "access-control.properties": (
            "access-control.name=file\nsecurity.config-file=etc/rules.json\n"
        ),
        "rules.json": json.dumps(rules) + "\n",
    }


def _own_texts(family: Family) -> dict[str, str]:
    return {
        CONFIG: merge_properties("", family.own_config, where=CONFIG),
        NODE: "node.environment=atoll\n",
        JVM: "".join(f"{flag}\n" for flag in family.flags),
        "log.properties": _LEVELS.format(package=family.main_class.partition(".server.")[0]),
        **{f"catalog/{name}.properties": text for name, text in CATALOGS.items()},
    }


def _options(family: Family, instance: Instance, changed: Mapping[str, str]) -> tuple[str, ...]:
    """The JVM's, as bin/launcher gives them."""
    node = read_properties(changed[NODE], where=NODE)
    return (
        *read_flags(changed[JVM], where=JVM),
        *(argument.format(port=instance.port) for argument in family.arguments),
        *(f"-D{key}={value}" for key, value in node.items()),
    )


def _named(family: Family, texts: Mapping[str, str]) -> tuple[str, ...]:
    """The files that bin/launcher names to the server where they are there."""
    known = {"log.levels-file": "log.properties"}
    if family.secrets_plugins:
        known["secretsConfig"] = SECRETS
    return tuple(f"-D{key}=etc/{name}" for key, name in known.items() if name in texts)


def _process(
    family: Family,
    instance: Instance,
    installation: Installation,
    options: tuple[str, ...],
    environment: dict[str, str],
    named: tuple[str, ...],
) -> ProcessSpec:
    return ProcessSpec(
        name=instance.name,
        role=Role.WORKER if instance.slot else Role.COORDINATOR,
        slot=instance.slot.index if instance.slot else None,
        argv=(
            installation.java,
            *options,
            f"-Dconfig=etc/{CONFIG}",
            *named,
            *("-cp", f"{installation.home}/lib/*"),
            family.main_class,
        ),
        env=environment,
        cwd=instance.name,
        stage=0,
        ready_port=instance.port,
    )
