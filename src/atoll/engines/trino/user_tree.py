"""A user's `etc` tree of Trino or Presto: what is wrong in it, and what its copies need. Pure.

Every instance works in a folder of its own with a copy of the tree below `etc`, so paths that begin
with etc/ lead into the copy, absolute ones to where they always did, and others nowhere.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence

from atoll.engines.trino.environment import holds_settings, numbered_properties, variables
from atoll.engines.userconfig.included import refuse_closed
from atoll.engines.userconfig.java import DIRECT_MEMORY, direct_memory_bytes
from atoll.engines.userconfig.merge import read_flags, read_properties
from atoll.engines.userconfig.pieces import fault, lines
from atoll.engines.userconfig.tree import UserTree
from atoll.errors import UsageError
from atoll.schema.deployment import ProcessSpec
from atoll.schema.plan import EngineTraits

CONFIG, NODE, JVM = "config.properties", "node.properties", "jvm.config"
SECRETS = "secrets.toml"  # of Trino: which providers of secrets there are
CATALOG_FOLDER = "catalog.config-dir"

# Settings whose value is a file, or several, that must be there when the server starts.
_FILES = re.compile(
    r"(?:^|[.-])(?:config-files?|(?:password|group|key|mapping)-file|user-mapping\.file|keytab|"
    r"(?:keystore|truststore)\.path|krb5\.config|config\.resources|trust-certificate)$"
)
# The same in a JVM's flags: -Djava.security.auth.login.config=etc/jaas.conf, -javaagent:etc/a.jar.
_FILE_IN_FLAG = re.compile(r"-(?:D[^=]+=|javaagent:)(etc/[^=]+)")


def check(base: UserTree) -> None:
    """Raises UsageError 'FILE:LINE: ...' where the tree is none, or one of its files cannot be
    read, or names one that will not be there."""
    refuse_closed(base, base.closed)
    if CONFIG not in base.texts:
        raise UsageError(
            f"{base.root}/{CONFIG} is not there; --base takes the folder that holds it, "
            "as /etc/trino"
        )
    for name in base.texts:
        if holds_settings(name):
            for number, key, value in numbered_properties(
                base.texts[name], where=f"{base.root}/{name}"
            ):
                if _FILES.search(key):
                    for path in value.split(","):
                        _check_file(base, path.strip(), name, number)
    _check_flags(base)
    catalog_folder(base)
    taken_from_environment(base)


def _check_file(base: UserTree, path: str, name: str, number: int) -> None:
    """`path`, named there, will be found, as far as that can be known; as JSON it can be read."""
    where = f"{base.root}/{name}"
    if not path or "://" in path or "${" in path:
        return
    inside = _inside(base, path)
    if not os.path.isabs(path):
        if inside is None:
            raise fault(
                where,
                number,
                f"{path!r} is looked for in the server's working folder, where only etc is; "
                "give an absolute path, or one that begins with etc/",
            )
        _require(base, inside, f"{where}:{number}")
    if inside and inside in base.texts and path.endswith(".json"):
        try:
            json.loads(base.texts[inside])
        except json.JSONDecodeError as refused:
            raise fault(
                f"{base.root}/{inside}", refused.lineno, f"is no JSON: {refused.msg}"
            ) from None
        except RecursionError:
            raise UsageError(f"{base.root}/{inside}: is nested too deeply to be read") from None


def _require(base: UserTree, inside: str, where: str) -> None:
    files = (*base.texts, *base.others)
    if any(file == inside or file.startswith(f"{inside}/") for file in files):
        return
    hidden = "; files that begin with a dot are passed over" if "/." in f"/{inside}" else ""
    raise UsageError(f"{where}: etc/{inside} is not in {base.root}{hidden}")


def _inside(base: UserTree, path: str) -> str | None:
    """The path below the tree's root, '' for the root itself; None where it leads elsewhere."""
    below = os.path.normpath(path)
    root = base.root if os.path.isabs(below) else "etc"
    if below == root:
        return ""
    return below.removeprefix(f"{root}/") if below.startswith(f"{root}/") else None


def _check_flags(base: UserTree) -> None:
    where = f"{base.root}/{JVM}"
    read_flags(base.texts.get(JVM, ""), where=where)
    for number, body, _ in lines(base.texts.get(JVM, "")):
        if match := _FILE_IN_FLAG.match(body.strip()):
            inside = _inside(base, match[1])
            if inside:
                _require(base, inside, f"{where}:{number}")


def properties_of_server(base: UserTree) -> dict[str, str]:
    """The JVM's own properties go before config.properties, and node.properties become such."""
    config, node = (
        read_properties(base.texts.get(name, ""), where=f"{base.root}/{name}")
        for name in (CONFIG, NODE)
    )
    given = read_flags(base.texts.get(JVM, ""), where=f"{base.root}/{JVM}")
    own = (flag[2:].partition("=") for flag in given if flag.startswith("-D"))
    return config | {key: value for key, _, value in own} | node


def secrets_links(
    base: UserTree, home: str, plugins: str, processes: Sequence[ProcessSpec]
) -> dict[str, str]:
    """What reads the secrets that a tree names (${keystore:NAME}), `plugins` below `home`: looked
    for in the working folder, where bin/launcher links it."""
    if not plugins or SECRETS not in base.texts:
        return {}
    return {f"{spec.name}/{plugins}": f"{home}/{plugins}" for spec in processes}


def catalog_folder(base: UserTree) -> str:
    """Where the catalogs are, below the root. Raises UsageError where that is outside."""
    # As the server has it: node.properties become the JVM's own, which go first.
    for name in (NODE, CONFIG):
        for number, key, value in numbered_properties(
            base.texts.get(name, ""), where=f"{base.root}/{name}"
        ):
            if key == CATALOG_FOLDER:
                inside = _inside(base, value)
                if not inside:
                    raise fault(
                        f"{base.root}/{name}",
                        number,
                        f"{CATALOG_FOLDER}: {value!r} is no folder in {base.root}; put the "
                        "catalogs into it, or a link to their folder",
                    )
                return inside
    return "catalog"


def taken_from_environment(base: UserTree) -> dict[str, str]:
    """The variables that the tree names (${ENV:NAME}) with their values; none where the environment
    is not known. Raises UsageError for one that is not set."""
    if base.environment is None:
        return {}
    named = variables(base.texts, root=f"{base.root}/")
    for name, where in named.items():
        if name not in base.environment:
            raise UsageError(f"{where}: the environment variable {name} is not set; set it")
    return {name: base.environment[name] for name in named}


def counted(ours: EngineTraits, base: UserTree | None) -> EngineTraits:
    """`ours` with what the user's JVM flags ask for beside the heap, in every process alike."""
    if base is None:
        return ours
    where = f"{base.root}/{JVM}"
    direct = direct_memory_bytes(read_flags(base.texts.get(JVM, ""), where=where), where=where)
    if not direct:
        return ours
    return ours.model_copy(
        update={
            "coordinator_overhead_bytes": ours.coordinator_overhead_bytes + direct,
            "asked_bytes": direct,
            "asked_source": f"{where} ({DIRECT_MEMORY})",
        }
    )
