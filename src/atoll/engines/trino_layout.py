"""How Trino and Presto are laid out: a coordinator, a worker per slot, and an `etc` tree for each.

The trees are made from Atoll's own texts or from a user's, and both get the same settings on top
(`atoll.engines.trino_settings`).

Promises: everything binds 127.0.0.1; the secrets of a deployment lie in files alone.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from urllib.parse import quote

from atoll.engines.base import Base, Installation, Layout
from atoll.engines.settings import merge_properties, read_flags, read_properties
from atoll.engines.settings_java import ARGUMENTS, write_arguments
from atoll.engines.trino_settings import (
    CONFIG,
    JVM,
    NODE,
    Family,
    Instance,
    has_https,
    merged,
    own_settings,
    shared_settings,
)
from atoll.errors import UsageError
from atoll.plan.jvm import placement_flags
from atoll.schema.deployment import ProcessSpec, Role
from atoll.schema.plan import Plan

CATALOG = "atoll"  # where a suite's tables are; no user's catalog has that name
SCHEMA = "suite"

# At INFO the log begins with a table of all settings, whose names speak of errors and would pass
# for the last words of whoever dies, and then tells every filter of every split. The two classes
# warn while others are still starting.
_LEVELS = """\
=WARN
Bootstrap=WARN
{package}.metadata.RemoteNodeState=ERROR
{package}.memory.RemoteNodeMemory=ERROR
"""


def check(base: Base) -> None:
    """Raises UsageError where the tree is none, or one of its files cannot be read."""
    if CONFIG not in base.texts:
        raise UsageError(
            f"{base.root}/{CONFIG} is not there; --base takes the folder that holds it, "
            "as /etc/trino"
        )
    for name in base.texts:
        where = f"{base.root}/{name}"
        if name == JVM:
            read_flags(base.texts[name], where=where)
        elif name.endswith(".properties"):
            read_properties(base.texts[name], where=where)


def ports(plan: Plan, base: Base | None) -> int:
    config = read_properties(base.texts[CONFIG], where=f"{base.root}/{CONFIG}") if base else {}
    return 1 + len(plan.slots) + (1 if has_https(config) else 0)


def lay_out(
    family: Family,
    plan: Plan,
    installation: Installation,
    *,
    base: Base | None,
    run_dir: str,
    scratch: str,
    ports: Sequence[int],
    stands: bool,
) -> Layout:
    coordinator = Instance(
        "coordinator",
        None,
        ports[0],
        plan.coordinator.heap_bytes if plan.coordinator else 0,
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
    texts = dict(base.texts) if base else _own_texts(family)
    is_closed = family.answers_one and base is None
    if is_closed:
        texts |= _access(user)
    # It reads all files that the server may read, which is not for a cluster of the user's.
    if not (base and stands):
        suites = family.suite_catalog.format(scratch=scratch)
        texts.setdefault(f"catalog/{CATALOG}.properties", suites)
    config = read_properties(texts[CONFIG], where=f"{base.root}/{CONFIG}" if base else CONFIG)
    shared = shared_settings(family, plan, coordinator.port, installation, run_dir, base)
    processes: list[ProcessSpec] = []
    files: dict[str, str] = {"user": user} if is_closed else {}
    copies: dict[str, str] = {}
    for instance in (coordinator, *workers):
        own = own_settings(family, instance, base, config, ports, scratch)
        etc = f"{instance.name}/etc"
        changed = merged(texts, base, instance, {**shared, **own}, scratch)
        files |= {f"{etc}/{name}": text for name, text in (texts | changed).items()}
        if base:
            copies |= {f"{etc}/{name}": f"{base.root}/{name}" for name in base.others}
        options = _options(family, changed)
        if base:
            # A user's flags may have passwords in them, and everybody can read a command line.
            arguments = f"{instance.name}/{ARGUMENTS}"
            files[arguments] = write_arguments(options)
            options = (f"@{run_dir}/{arguments}",)
        processes.append(
            _process(family, instance, installation, options, has_levels="log.properties" in texts)
        )
    return Layout(
        processes=tuple(processes),
        files=files,
        copies=copies,
        links={}
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
        **{f"catalog/{name}.properties": text for name, text in family.catalogs.items()},
    }


def _options(family: Family, changed: Mapping[str, str]) -> tuple[str, ...]:
    """The JVM's, as bin/launcher gives them."""
    node = read_properties(changed[NODE], where=NODE)
    return (
        *read_flags(changed[JVM], where=JVM),
        *family.arguments,
        *(f"-D{key}={value}" for key, value in node.items()),
    )


def _process(
    family: Family,
    instance: Instance,
    installation: Installation,
    options: tuple[str, ...],
    *,
    has_levels: bool,
) -> ProcessSpec:
    return ProcessSpec(
        name=instance.name,
        role=Role.WORKER if instance.slot else Role.COORDINATOR,
        slot=instance.slot.index if instance.slot else None,
        argv=(
            installation.java,
            *options,
            f"-Dconfig=etc/{CONFIG}",
            *(("-Dlog.levels-file=etc/log.properties",) if has_levels else ()),
            *("-cp", f"{installation.home}/lib/*"),
            family.main_class,
        ),
        env={"JAVA_HOME": installation.java.removesuffix("/bin/java")},
        cwd=instance.name,
        stage=0,
        ready_port=instance.port,
    )
