"""A user's own Spark configuration (the folder that SPARK_CONF_DIR names), made ours where it must.

Of spark-defaults.conf only what placement decides is set, and what would reach beyond the
deployment taken out; JVM options of the user stay beside ours, but for those that hold for a whole
machine. All other files are taken as they are. spark-env.sh is a shell script, which Atoll does not
run, as it runs no script of Spark's: what it exports with a literal value is honoured, and anything
else in it refused, because it would be passed over in silence. Pure.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from atoll.engines.base import Base
from atoll.engines.settings import merge_flags, merge_properties, read_properties
from atoll.engines.settings_java import MACHINE_WIDE, flag_kind
from atoll.errors import UsageError

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
# What would undo the plan: executors of another size or number, ports that N executors on one
# machine cannot share, another place for the driver.
_TAKEN_OUT = (
    "spark.blockManager.port",
    "spark.driver.blockManager.port",
    "spark.driver.port",
    "spark.dynamicAllocation.enabled",
    "spark.executor.cores",
    "spark.executor.instances",
    "spark.local.dir",
    "spark.submit.deployMode",
)
_OPTIONS = ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions")
# Read by Spark's scripts alone.
_SCRIPTS_OWN = re.compile(r"SPARK_(\w+_OPTS|DAEMON_CLASSPATH)")
# An assignment whose value is what it says: no variable, command, pattern or home folder in it.
_EXPORT = re.compile(r"(?:export\s+)?(?P<name>[A-Za-z_]\w*)=(?P<value>'[^']*'|[^'`$*?;&|<>()~]*)")


def check(base: Base) -> None:
    """Raises UsageError where the tree is none of Spark's, or cannot be read."""
    if not any(name in base.texts for name in _KNOWN):
        raise UsageError(
            f"{base.root}: has no {_DEFAULTS}; give the folder that SPARK_CONF_DIR names"
        )
    where = f"{base.root}/{_DEFAULTS}"
    for option in _OPTIONS:
        _options(read_properties(base.texts.get(_DEFAULTS, ""), where=where), option, where)
    environment(base)


def files(base: Base, ours: Mapping[str, str]) -> dict[str, str]:
    """Path below conf -> text. `ours`: spark-defaults.conf as it would be without the user's."""
    where = f"{base.root}/{_DEFAULTS}"
    text = base.texts.get(_DEFAULTS, "")
    theirs = read_properties(text, where=where)
    settings: dict[str, str | None] = {
        key: value for key, value in ours.items() if key not in _THEIRS
    }
    settings |= dict.fromkeys(_TAKEN_OUT)
    for option in _OPTIONS:
        # The user's choice first: a JVM has one collector, and ours is a matter of taste.
        merged = merge_flags(
            "".join(f"{flag}\n" for flag in shlex.split(ours.get(option, ""))),
            [flag for flag in _options(theirs, option, where) if not _is_not_for_a_slot(flag)],
            where=where,
        )
        settings[option] = " ".join(
            f'"{flag}"' if " " in flag else flag
            for flag in merged.splitlines()
            if not flag.startswith("#")
        )
    texts = {name: body for name, body in base.texts.items() if name != _ENVIRONMENT}
    return texts | {_DEFAULTS: merge_properties(text, settings, where=where, separator=" ")}


def environment(base: Base) -> dict[str, str]:
    """What spark-env.sh exports."""
    found: dict[str, str] = {}
    for number, line in enumerate(base.texts.get(_ENVIRONMENT, "").splitlines(), start=1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
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
        try:
            words = shlex.split(match["value"], comments=True)
        except ValueError as fault:
            raise UsageError(f"{where}: {fault}") from None
        if len(words) > 1:
            raise UsageError(f"{where}: the value of {name} has a blank; put it in quotes")
        found[name] = words[0] if words else ""
    return found


def _is_not_for_a_slot(flag: str) -> bool:
    """Would outdo what the plan says, or does not go with the heap that it gives."""
    return flag_kind(flag) == "-Xms" or MACHINE_WIDE.match(flag) is not None


def _options(theirs: Mapping[str, str], option: str, where: str) -> list[str]:
    """JVM options, taken apart as Spark does. -Xmx is refused by Spark itself."""
    try:
        return shlex.split(theirs.get(option, ""))
    except ValueError as fault:
        raise UsageError(f"{where}: {option}: {fault}") from None
