"""A user's own Spark configuration (the folder that SPARK_CONF_DIR names), made ours where it must.

Of spark-defaults.conf only what placement decides is set, and what would reach beyond the
deployment taken out; JVM options of the user stay beside ours, but for those that hold for a whole
machine. All other files are taken as they are. spark-env.sh is a shell script, which Atoll does not
run, as it runs no script of Spark's: what it exports with a literal value is honoured, and what
cannot be is refused. Variables that the deployment decides, and those that only Spark's scripts
read, are taken out of the copy, where the difference shows them. Pure.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Mapping

from atoll.engines.spark.asks import DEFAULT_OPTIONS, EXTRA_OPTIONS, counted, options_of
from atoll.engines.spark.settings import options
from atoll.engines.userconfig.included import refuse_closed
from atoll.engines.userconfig.java import MACHINE_WIDE, flag_kind
from atoll.engines.userconfig.merge import merge_flags, merge_properties, read_properties
from atoll.engines.userconfig.pieces import lines
from atoll.engines.userconfig.tree import UserTree
from atoll.errors import UsageError
from atoll.schema.plan import EngineTraits

_DEFAULTS = "spark-defaults.conf"
_ENVIRONMENT = "spark-env.sh"
_KNOWN = (_DEFAULTS, _ENVIRONMENT, "log4j2.properties", "hive-site.xml", "metrics.properties")
# What we choose where nobody else does.
_THEIRS = (
    "spark.app.name",
    "spark.sql.adaptive.coalescePartitions.enabled",
    "spark.sql.catalogImplementation",
    "spark.sql.warehouse.dir",
    "spark.sql.session.timeZone",
    "spark.ui.killEnabled",
    "spark.ui.showConsoleProgress",
)
# Read by every JVM, and it outdoes what a command line says before it, or all of it.
_JVM_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
# What would undo the plan: executors of another size or number, ports that N workers on one machine
# cannot share, another place for the driver; and what would join another cluster's masters.
_TAKEN_OUT = (
    "spark.blockManager.port",
    "spark.deploy.recoveryMode",
    "spark.driver.blockManager.port",
    "spark.driver.port",
    "spark.dynamicAllocation.enabled",
    "spark.executor.cores",
    "spark.executor.instances",
    "spark.local.dir",
    "spark.master.ui.port",
    "spark.shuffle.service.enabled",
    "spark.submit.deployMode",
    "spark.worker.ui.port",
    *(f"spark.executorEnv.{name}" for name in _JVM_VARIABLES),
)
# Read by Spark's scripts alone, and worth an error: it says what a JVM shall do.
_SCRIPTS_OWN = re.compile(r"SPARK_(\w+_OPTS|DAEMON_CLASSPATH)")
# Where things lie and how large they are, which the deployment decides, and what scripts do.
_DECIDED = re.compile(
    r"JAVA_HOME|SPARK_(HOME|CONF_DIR|SCALA_VERSION|ENV_LOADED|PUBLIC_DNS|NICENESS|NO_DAEMONIZE"
    r"|(MASTER|WORKER|DAEMON|EXECUTOR|DRIVER|LOCAL|LOG|PID|IDENT|SSH|HISTORY|SHUFFLE)_\w+)"
)
# An assignment whose value is what it says: no variable, command, pattern or home folder in it.
_EXPORT = re.compile(r"(?:export\s+)?(?P<name>[A-Za-z_]\w*)=(?P<value>'[^']*'|[^'`$*?;&|<>()~]*)")


def check(base: UserTree) -> None:
    """Raises UsageError where the tree is none of Spark's, or cannot be read."""
    refuse_closed(base, base.closed)
    if not any(name in base.texts for name in _KNOWN):
        raise UsageError(
            f"{base.root}: has no {_DEFAULTS}; give the folder that SPARK_CONF_DIR names"
        )
    where = f"{base.root}/{_DEFAULTS}"
    theirs = read_properties(base.texts.get(_DEFAULTS, ""), where=where)
    for option in (*DEFAULT_OPTIONS, *EXTRA_OPTIONS):
        options_of(theirs, option, where)
    environment(base)


def traits(ours: EngineTraits, base: UserTree) -> EngineTraits:
    """With what this configuration takes. Raises UsageError for a size that is none."""
    where = f"{base.root}/{_DEFAULTS}"
    theirs = read_properties(base.texts.get(_DEFAULTS, ""), where=where)
    return counted(ours, theirs, where=where)


def files(base: UserTree, ours: Mapping[str, str], placement: Collection[str]) -> dict[str, str]:
    """Path below conf -> text. `ours`: spark-defaults.conf as it would be without the user's;
    `placement`: the kinds of JVM flags that the plan decides."""
    where = f"{base.root}/{_DEFAULTS}"
    text = base.texts.get(_DEFAULTS, "")
    theirs = read_properties(text, where=where)
    settings: dict[str, str | None] = {
        key: value for key, value in ours.items() if key not in _THEIRS
    }
    settings |= dict.fromkeys(_TAKEN_OUT)
    for option in (*DEFAULT_OPTIONS, *EXTRA_OPTIONS):
        said = options_of(theirs, option, where)
        if not said and option not in ours:
            continue
        decided = set(placement) if ".executor." in option else set()
        # The user's choice first: a JVM has one collector, and ours is a matter of taste.
        merged = merge_flags(
            "".join(f"{flag}\n" for flag in shlex.split(ours.get(option, ""))),
            [flag for flag in said if not _is_not_for_a_slot(flag, decided)],
            where=where,
        )
        flags = [flag for flag in merged.splitlines() if not flag.startswith("#")]
        settings[option] = options(flags) or None
    texts = dict(base.texts)
    if _ENVIRONMENT in texts:
        texts[_ENVIRONMENT] = "".join(
            raw for raw, name, _ in _exports(base) if not _DECIDED.fullmatch(name)
        )
    return texts | {_DEFAULTS: merge_properties(text, settings, where=where, separator=" ")}


def environment(base: UserTree) -> dict[str, str]:
    """What spark-env.sh exports, less what the deployment decides."""
    return {
        name: value for _, name, value in _exports(base) if name and not _DECIDED.fullmatch(name)
    }


def _exports(base: UserTree) -> Iterator[tuple[str, str, str]]:
    """(line, name, value); of a comment or a blank line both are empty."""
    for number, body, end in lines(base.texts.get(_ENVIRONMENT, "")):
        stripped = body.strip()
        if not stripped or stripped.startswith("#"):
            yield body + end, "", ""
            continue
        where = f"{base.root}/{_ENVIRONMENT}:{number}"
        match = _EXPORT.fullmatch(stripped)
        if match is None:
            raise UsageError(
                f"{where}: is not run as a script; of it only lines as 'export NAME=value' with a "
                "literal value can be honoured"
            )
        name = match["name"]
        if _SCRIPTS_OWN.fullmatch(name):
            raise UsageError(
                f"{where}: {name} is read by Spark's scripts, which Atoll does not use; "
                f"set it in {_DEFAULTS}"
            )
        if name in _JVM_VARIABLES:
            raise UsageError(
                f"{where}: {name} is read by every JVM and would outdo the plan; "
                f"set spark.executor.extraJavaOptions in {_DEFAULTS}"
            )
        try:
            words = shlex.split(match["value"], comments=True)
        except ValueError as fault:
            raise UsageError(f"{where}: {fault}") from None
        if len(words) > 1:
            raise UsageError(f"{where}: the value of {name} has a blank; put it in quotes")
        yield body + end, name, words[0] if words else ""


def _is_not_for_a_slot(flag: str, decided: Collection[str]) -> bool:
    """Would outdo what the plan says, or does not go with the heap that it gives."""
    kind = flag_kind(flag)
    return kind in ("-Xms", "-Xmx") or kind in decided or MACHINE_WIDE.match(flag) is not None
