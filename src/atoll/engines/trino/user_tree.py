"""A user's own `etc` folder of Trino or Presto: what is wrong in it, what its copies need. Pure.

Every instance works in its own folder, with a copy of the tree below `etc`. So a path that begins
with etc/ leads into the copy, an absolute path to where it always did, and any other path nowhere.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping

from atoll.engines.userconfig.agents import Listener, listeners, refuse_shared
from atoll.engines.userconfig.included import refuse_closed
from atoll.engines.userconfig.java import DIRECT_MEMORY, direct_memory_bytes, flags, properties
from atoll.engines.userconfig.merge import read_flags, read_properties
from atoll.engines.userconfig.pieces import fault, lines, numbered
from atoll.engines.userconfig.tree import UserTree
from atoll.errors import UsageError
from atoll.schema.plan import EngineTraits

CONFIG, NODE, JVM = "config.properties", "node.properties", "jvm.config"
SECRETS = "secrets.toml"  # Trino's list of providers of secrets
CATALOG_FOLDER = "catalog.config-dir"
# Ports of the JMX agent that the server itself starts.
JMX_PORTS = ("jmx.rmiregistry.port", "jmx.rmiserver.port")

# Settings that name one or more files, which must exist when the server starts.
_FILES = re.compile(
    r"(?:^|[.-])(?:config-files?|(?:password|group|key|mapping)-file|user-mapping\.file|keytab|"
    r"(?:keystore|truststore)\.path|krb5\.config|config\.resources|trust-certificate)$"
)
# JVM flags that name a file: -Djava.security.auth.login.config=etc/jaas.conf, -javaagent:etc/a.jar.
_FILE_IN_FLAG = re.compile(r"-(?:D[^=]+=|javaagent:)(etc/[^=]+)")
# ${ENV:NAME}: Trino's manual, Secrets; Bootstrap of Presto 0.287.
_VARIABLE = re.compile(r"\$\{(?i:ENV):([^}]+)\}")


def check(tree: UserTree) -> None:
    """Raises UsageError 'FILE:LINE: ...' for a folder that is not a configuration, a file that
    cannot be read, and a file that is named but will not exist."""
    refuse_closed(tree, tree.closed)
    if CONFIG not in tree.texts:
        raise UsageError(
            f"{tree.root}: no {CONFIG} found; give the folder that contains it, "
            "for example /etc/trino"
        )
    for name, text in tree.texts.items():
        for number, key, value in _numbered_properties(name, text, root=f"{tree.root}/"):
            if _FILES.search(key):
                for path in value.split(","):
                    _check_file(tree, path.strip(), name, number)
    _check_flags(tree)
    refuse_shared(agents(tree))
    catalog_folder(tree)
    environment(tree)


def _check_file(tree: UserTree, path: str, name: str, number: int) -> None:
    """Raises UsageError if the file `path`, named on that line, will not be found, as far as Atoll
    can know, or is JSON that cannot be read."""
    where = f"{tree.root}/{name}"
    if not path or "://" in path or "${" in path:
        return
    inside = _inside(tree, path)
    if not os.path.isabs(path):
        if inside is None:
            raise fault(
                where,
                number,
                f"{path!r} is relative to the server's working folder, which contains only etc; "
                "give an absolute path, or one that begins with etc/",
            )
        _require(tree, inside, f"{where}:{number}")
    if inside and inside in tree.texts and path.endswith(".json"):
        try:
            json.loads(tree.texts[inside])
        except json.JSONDecodeError as refused:
            raise fault(
                f"{tree.root}/{inside}", refused.lineno, f"is not JSON: {refused.msg}"
            ) from None
        except RecursionError:
            raise UsageError(f"{tree.root}/{inside}: is nested too deeply to be read") from None


def _require(tree: UserTree, inside: str, where: str) -> None:
    files = (*tree.texts, *tree.others)
    if any(file == inside or file.startswith(f"{inside}/") for file in files):
        return
    hidden = "; files that begin with a dot are skipped" if "/." in f"/{inside}" else ""
    raise UsageError(f"{where}: etc/{inside} is not in {tree.root}{hidden}")


def _inside(tree: UserTree, path: str) -> str | None:
    """The path below the tree's root, '' for the root itself, None for a path outside it."""
    below = os.path.normpath(path)
    root = tree.root if os.path.isabs(below) else "etc"
    if below == root:
        return ""
    return below.removeprefix(f"{root}/") if below.startswith(f"{root}/") else None


def _check_flags(tree: UserTree) -> None:
    where = f"{tree.root}/{JVM}"
    read_flags(tree.texts.get(JVM, ""), where=where)
    for number, body, _ in lines(tree.texts.get(JVM, "")):
        if match := _FILE_IN_FLAG.match(body.strip()):
            inside = _inside(tree, match[1])
            if inside:
                _require(tree, inside, f"{where}:{number}")


def server_properties(tree: UserTree) -> dict[str, str]:
    """The properties of the server, as the tree alone would set them.

    Properties in jvm.config override config.properties, and node.properties override both.
    """
    config, node = (
        read_properties(tree.texts.get(name, ""), where=f"{tree.root}/{name}")
        for name in (CONFIG, NODE)
    )
    given = read_flags(tree.texts.get(JVM, ""), where=f"{tree.root}/{JVM}")
    own = (flag[2:].partition("=") for flag in given if flag.startswith("-D"))
    return config | {key: value for key, _, value in own} | node


def agents(tree: UserTree) -> list[Listener]:
    """The agents and exporters that listen in each of the user's servers."""
    where = f"{tree.root}/{JVM}"
    given = [
        (f"{where}:{number}", piece.value)
        for number, piece in numbered(flags(tree.texts.get(JVM, ""), where=where))
    ]
    config, node = (
        [
            (f"{tree.root}/{name}:{number}", key, value)
            for number, key, value in _numbered_properties(
                name, tree.texts.get(name, ""), root=f"{tree.root}/"
            )
        ]
        for name in (CONFIG, NODE)
    )
    own = [(place, *flag[2:].partition("=")[::2]) for place, flag in given if flag.startswith("-D")]
    ports = {
        key: Listener(int(value), place, is_jmx=True)
        for place, key, value in (*config, *own, *node)  # as in `server_properties`
        if key in JMX_PORTS and is_port(value)
    }
    return [*listeners(given), *ports.values()]


def is_port(value: str) -> bool:
    """Whether it is a port of the user's choice; 0 is any free port."""
    return value.isdecimal() and int(value) > 0


def catalog_folder(tree: UserTree) -> str:
    """The folder of the catalogs, below the root. Raises UsageError if it is outside."""
    for name in (NODE, CONFIG):  # the first overrides the second
        for number, key, value in _numbered_properties(
            name, tree.texts.get(name, ""), root=f"{tree.root}/"
        ):
            if key == CATALOG_FOLDER:
                inside = _inside(tree, value)
                if not inside:
                    raise fault(
                        f"{tree.root}/{name}",
                        number,
                        f"{CATALOG_FOLDER}: {value!r} is not a folder in {tree.root}; put the "
                        "catalogs into it, or a link to their folder",
                    )
                return inside
    return "catalog"


def environment(tree: UserTree) -> dict[str, str]:
    """The variables that the tree names (${ENV:NAME}), with their values; empty if the environment
    is not known. Raises UsageError for a variable that is not set."""
    if tree.environment is None:
        return {}
    named = variables(tree.texts, root=f"{tree.root}/")
    for name, where in named.items():
        if name not in tree.environment:
            raise UsageError(f"{where}: the environment variable {name} is not set; set it")
    return {name: tree.environment[name] for name in named}


def variables(texts: Mapping[str, str], *, root: str = "") -> dict[str, str]:
    """The variables that properties files name, each with the first FILE:LINE that names it."""
    found: dict[str, str] = {}
    for path, text in sorted(texts.items()):
        for number, _, value in _numbered_properties(path, text, root=root):
            for name in _VARIABLE.findall(value):
                found.setdefault(name, f"{root}{path}:{number}")
    return found


def holds_settings(path: str) -> bool:
    """Whether the file has settings of the server. In log.properties, the empty key is the root
    logger."""
    return path.endswith(".properties") and os.path.basename(path) != "log.properties"


def _numbered_properties(path: str, text: str, *, root: str) -> Iterator[tuple[int, str, str]]:
    """(line, key, value) of each setting in the file, if it has settings of the server."""
    pieces = properties(text, where=root + path) if holds_settings(path) else ()
    for number, piece in numbered(pieces):
        if piece.key:
            yield number, piece.key, piece.value


def with_direct_memory(ours: EngineTraits, tree: UserTree | None) -> EngineTraits:
    """`ours` with the direct memory that the user's jvm.config allows every process outside its
    heap. Raises UsageError for a size that cannot be read."""
    if tree is None:
        return ours
    where = f"{tree.root}/{JVM}"
    direct = direct_memory_bytes(read_flags(tree.texts.get(JVM, ""), where=where), where=where)
    if not direct:
        return ours
    return ours.model_copy(
        update={
            "coordinator_overhead_bytes": ours.coordinator_overhead_bytes + direct,
            "asked_bytes": direct,
            "asked_source": f"{where} ({DIRECT_MEMORY})",
        }
    )
