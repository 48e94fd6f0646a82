"""Lays out Trino and Presto: a coordinator, a worker per slot, and an `etc` folder for each.

The folders are copies of the user's own, or of Atoll's. Both get the same settings on top
(`atoll.engines.trino.settings`). Everything listens on 127.0.0.1, or where the plan says; the
secrets of a deployment are only in files.
"""

from __future__ import annotations

import json
import secrets
import shlex
from collections.abc import Mapping
from urllib.parse import quote

from atoll.engines.api import Layout
from atoll.engines.explained import Reasons, Why, reasons, values
from atoll.engines.sql.shell import shell_command
from atoll.engines.trino.family import Family
from atoll.engines.trino.removed import REMOVED_FROM_NODE, removed_flags, removed_settings
from atoll.engines.trino.settings import (
    HTTPS_PORT,
    OWN_FOLDERS,
    Cluster,
    Instance,
    asks_password,
    authenticates,
    jvm_flags,
    node_settings,
    own_folders,
    server_settings,
    serves_tls,
)
from atoll.engines.trino.user_tree import (
    CONFIG,
    JVM,
    NODE,
    SECRETS,
    environment,
    holds_settings,
    server_properties,
)
from atoll.engines.userconfig.agents import AGENT, is_agent, text_for_instance
from atoll.engines.userconfig.changes import setting_name
from atoll.engines.userconfig.java import ARGUMENTS, write_arguments
from atoll.engines.userconfig.java import flags as java_flags
from atoll.engines.userconfig.merge import (
    merge_flags,
    merge_properties,
    read_flags,
    read_properties,
)
from atoll.engines.userconfig.tree import UserTree
from atoll.errors import UsageError
from atoll.schema.deployment import Access, ProcessSpec, Role
from atoll.schema.plan import Plan

CATALOG = "atoll"  # has a suite's tables; no user's catalog has that name
SCHEMA = "suite"

_DEPLOY = "Trino's manual, Deploying Trino"
_FILE = "Trino's manual, File-based access control"

# At INFO the log begins with a table of all settings, whose names contain words such as 'error' and
# would pass for a server's last words, and then reports every filter of every split. The two
# classes warn while other instances are still starting.
_LEVELS = """\
=WARN
Bootstrap=WARN
{package}.metadata.RemoteNodeState=ERROR
{package}.memory.RemoteNodeMemory=ERROR
"""
_OTHER_REASONS: Reasons = {
    "-Dconfig": Why("the configuration file, from the working folder", _DEPLOY),
    "-DsecretsConfig": Why("the providers of secrets that the configuration uses", _DEPLOY),
    "-Dlog.levels-file": Why("the levels of the log", _DEPLOY),
    "access-control.name": Why(
        "anybody who can open a port of 127.0.0.1 could have the server read files; so it answers "
        "to one user, whose name is in the file 'user'",
        _FILE,
    ),
    "security.config-file": Why("the rules for that user", _FILE),
}


def ports(plan: Plan, tree: UserTree | None, *, outlives_atoll: bool) -> int:
    """One per instance, and before them one for TLS if the tree has it. Clients of a cluster that
    outlives Atoll know its TLS port, which stays."""
    tls = tree is not None and serves_tls(server_properties(tree)) and not outlives_atoll
    return 1 + len(plan.slots) + tls


def lay_out(cluster: Cluster) -> Layout:
    family, tree = cluster.family, cluster.tree
    user = secrets.token_hex(16)
    texts = {JVM: "", **tree.texts} if tree else _own_texts(family)
    texts |= family.files
    is_closed = family.answers_one and tree is None
    if is_closed:
        texts |= _access(user)
    # The suite's catalog reads every file that the server can read, which is wrong for a cluster
    # of the user's, and for one on the network.
    if not (tree and cluster.outlives_atoll) and not cluster.on_network:
        suite = values(family.suite_catalog)
        texts.setdefault(
            f"{cluster.catalogs}/{CATALOG}.properties",
            "".join(f"{k}={value.format(scratch=cluster.scratch)}\n" for k, value in suite.items()),
        )
    if tree and cluster.outlives_atoll and cluster.tls_port:
        _refuse_taken(cluster, tree)
    if tree and not cluster.outlives_atoll:
        _refuse_opening(cluster, tree)
    home, java = cluster.installation.home, cluster.installation.java
    variables = {
        "JAVA_HOME": java.removesuffix("/bin/java"),
        **(environment(tree) if tree else {}),
    }
    processes: list[ProcessSpec] = []
    files: dict[str, str] = {"user": user} if is_closed else {}
    copies: dict[str, str] = {}
    why: dict[str, Why] = {**_OTHER_REASONS, **OWN_FOLDERS, **reasons(family.suite_catalog)}
    why |= reasons(family.own_config)
    flags = family.flags | family.arguments
    why |= {setting_name(flag): reason for flag, reason in flags.items()}
    for instance in cluster.instances:
        etc = f"{instance.name}/etc"
        changed, changed_why = _configured(cluster, instance, texts)
        why |= changed_why
        files |= {f"{etc}/{name}": text for name, text in (texts | changed).items()}
        if tree:
            copies |= {f"{etc}/{name}": f"{tree.root}/{name}" for name in tree.others}
        options = _options(cluster, instance, changed)
        if tree:
            # A user's flags may contain passwords, and everybody can read a command line.
            arguments = f"{instance.name}/{ARGUMENTS}"
            files[arguments] = write_arguments(options)
            options = (f"@{cluster.run_dir}/{arguments}",)
        processes.append(_process(cluster, instance, options, variables, texts))
    endpoint = f"http://{cluster.address}:{cluster.http_ports[0]}/{CATALOG}/{SCHEMA}"
    if is_closed:
        endpoint += f"?user-file={quote(cluster.run_dir)}/user"
    return Layout(
        processes=tuple(processes),
        files=files,
        copies=copies,
        links=_secrets_links(cluster, tree)
        if tree
        else {f"plugin/{name}": f"{home}/plugin/{name}" for name in family.plugins},
        endpoints=(endpoint,),
        access=(_access_of(cluster, endpoint, is_closed=is_closed),),
        reasons=why,
    )


def _access_of(cluster: Cluster, endpoint: str, *, is_closed: bool) -> Access:
    name, config = cluster.family.name, cluster.config
    address = f"http://{cluster.address}:{cluster.http_ports[0]}"
    if cluster.tls_port:
        address = f"https://{cluster.address}:{cluster.tls_port}"
    words = [name, "--server", address]
    remark = (
        f"{name!r} is the engine's own client, which Atoll does not install; without it: "
        f"{shell_command(name, endpoint)}"
    )
    if is_closed:
        words.append(f'--user "$(cat {shlex.quote(f"{cluster.run_dir}/user")})"')
    if cluster.tls_port and asks_password(config):
        words += ['--user "$USER"', "--password"]
        remark = f"it asks for the password that your configuration gives this user; {remark}"
    return Access(address=address, command=" ".join(words), remark=remark)


def _refuse_taken(cluster: Cluster, tree: UserTree) -> None:
    port = cluster.tls_port
    ports = [instance.port for instance in cluster.instances]
    if port in map(str, ports):
        raise UsageError(
            f"{tree.root}/{CONFIG}: {HTTPS_PORT} {port} is one of the ports of the instances, "
            f"{ports[0]} to {ports[-1]}; give another --port-base"
        )


def _refuse_opening(cluster: Cluster, tree: UserTree) -> None:
    """Atoll has no password of the user's, so it has to switch authentication off for HTTP."""
    if cluster.on_network and authenticates(cluster):
        raise UsageError(
            f"{tree.root}/{CONFIG}: has authentication, which 'atoll up' needs to switch off for "
            "HTTP; leave out --listen, or start what 'atoll render' writes"
        )


def _own_texts(family: Family) -> dict[str, str]:
    return {
        CONFIG: merge_properties("", values(family.own_config), where=CONFIG),
        NODE: "",
        JVM: "".join(f"{flag}\n" for flag in family.flags),
        "log.properties": _LEVELS.format(package=family.main_class.partition(".server.")[0]),
        "catalog/tpch.properties": "connector.name=tpch\n",
        "catalog/tpcds.properties": "connector.name=tpcds\n",
    }


def _access(user: str) -> dict[str, str]:
    rules = {
        "catalogs": [{"user": user, "allow": "all"}],
        "queries": [{"user": user, "allow": ["execute", "kill", "view"]}],
        "system_information": [{"user": user, "allow": ["read"]}],  # for the failure detector
    }
    return {
        "access-control.properties": (
            "access-control.name=file\nsecurity.config-file=etc/rules.json\n"
        ),
        "rules.json": json.dumps(rules) + "\n",
    }


def _configured(
    cluster: Cluster, instance: Instance, texts: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, Why]]:
    """The files that get Atoll's settings, and the reasons for these."""
    root = f"{cluster.tree.root}/" if cluster.tree else ""
    given = {name: texts.get(name, "") for name in (CONFIG, NODE, JVM)}
    for name, text in texts.items():
        if holds_settings(name) and (own := own_folders(name, text, instance, cluster.scratch)):
            given[name] = merge_properties(text, own, where=root + name)
    server = server_settings(cluster, instance)
    node = node_settings(cluster, instance, read_properties(given[NODE], where=root + NODE))
    flags = jvm_flags(cluster, instance, read_flags(given[JVM], where=root + JVM))
    removed = removed_settings(cluster, instance)
    config = dict.fromkeys(removed) | values(server)
    # They become the JVM's own properties, which override config.properties.
    named = dict.fromkeys([*REMOVED_FROM_NODE, *config]) | values(node)
    given[CONFIG] = merge_properties(given[CONFIG], config, where=root + CONFIG)
    given[NODE] = merge_properties(given[NODE], named, where=root + NODE)
    theirs = text_for_instance(
        java_flags(given[JVM], where=root + JVM), instance.agents, is_first=instance.is_first
    )
    given[JVM] = merge_flags(
        theirs, list(flags), where=root + JVM, without=removed_flags(cluster, named)
    )
    why = {setting_name(flag): reason for flag, reason in flags.items()}
    why |= {setting_name(flag): AGENT for flag in read_flags(theirs, where=JVM) if is_agent(flag)}
    return given, {**REMOVED_FROM_NODE, **removed, **reasons(server), **reasons(node), **why}


def _options(cluster: Cluster, instance: Instance, changed: Mapping[str, str]) -> tuple[str, ...]:
    """The JVM's flags, as bin/launcher gives them."""
    node = read_properties(changed[NODE], where=NODE)
    return (
        *read_flags(changed[JVM], where=JVM),
        *(
            argument.format(port=instance.port)
            for argument in cluster.family.arguments
            # The user's own agent of JMX; a JVM has one.
            if not (cluster.opens_jmx and argument.startswith("-Dcom.sun.management."))
        ),
        *(f"-D{key}={value}" for key, value in node.items()),
    )


def _process(
    cluster: Cluster,
    instance: Instance,
    options: tuple[str, ...],
    variables: Mapping[str, str],
    texts: Mapping[str, str],
) -> ProcessSpec:
    named = {"log.levels-file": "log.properties"}
    if cluster.family.secrets_plugins:
        named["secretsConfig"] = SECRETS
    return ProcessSpec(
        name=instance.name,
        role=Role.WORKER if instance.slot else Role.COORDINATOR,
        slot=instance.slot.index if instance.slot else None,
        argv=(
            cluster.installation.java,
            *options,
            f"-Dconfig=etc/{CONFIG}",
            *(f"-D{key}=etc/{name}" for key, name in named.items() if name in texts),
            *("-cp", f"{cluster.installation.home}/lib/*"),
            cluster.family.main_class,
        ),
        env=dict(variables),
        cwd=instance.name,
        stage=0,
        ready_port=instance.port,
        ready_address=instance.address,
    )


def _secrets_links(cluster: Cluster, tree: UserTree) -> dict[str, str]:
    """The plugins that read the secrets named by a tree (${keystore:NAME}). The server looks for
    them in the working folder, where bin/launcher links them."""
    plugins = cluster.family.secrets_plugins
    if not plugins or SECRETS not in tree.texts:
        return {}
    home = cluster.installation.home
    return {f"{each.name}/{plugins}": f"{home}/{plugins}" for each in cluster.instances}
