"""A user's own Spark configuration: the folder that SPARK_CONF_DIR names. Pure.

In spark-defaults.conf Atoll sets only what placement decides, and removes what would reach beyond
the deployment. JVM options of the user stay next to Atoll's, except those for a whole machine. All
other files are taken as they are.

spark-env.sh is a shell script. Atoll runs no script of Spark's: it honours exports of a literal
value, and refuses everything else. It removes variables that the deployment decides, and those that
only Spark's scripts read, from the copy, and `--diff` lists them.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from atoll.engines.explained import Reasons, Why
from atoll.engines.spark.settings import options
from atoll.engines.userconfig.agents import (
    Listener,
    deal_ports,
    for_instance,
    is_agent,
    listeners,
    refuse_shared,
)
from atoll.engines.userconfig.included import refuse_closed
from atoll.engines.userconfig.java import (
    DIRECT_MEMORY,
    MACHINE_WIDE,
    SHARED,
    direct_memory_bytes,
    flag_kind,
    properties,
)
from atoll.engines.userconfig.merge import merge_flags, merge_properties, read_properties
from atoll.engines.userconfig.pieces import lines, numbered
from atoll.engines.userconfig.tree import UserTree
from atoll.errors import UsageError
from atoll.plan.jvm import placement_flags
from atoll.schema.plan import EngineTraits, Plan
from atoll.schema.size import MIB

_DEFAULTS = "spark-defaults.conf"
_ENVIRONMENT = "spark-env.sh"
_KNOWN = (_DEFAULTS, _ENVIRONMENT, "log4j2.properties", "hive-site.xml", "metrics.properties")
_ROLES = ("driver", "executor")
_JVM_OPTIONS = tuple(
    f"spark.{role}.{kind}JavaOptions" for kind in ("default", "extra") for role in _ROLES
)
# Atoll's choices, which a user's configuration replaces.
_USERS = (
    "spark.app.name",
    "spark.sql.adaptive.coalescePartitions.enabled",
    "spark.sql.catalogImplementation",
    "spark.sql.warehouse.dir",
    "spark.sql.session.timeZone",
    "spark.ui.killEnabled",
    "spark.ui.showConsoleProgress",
)
# Every JVM reads these, and they override its command line, or the options before it.
_JVM_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
_OWN_PORTS = Why("the processes of one machine cannot share it; each has its own port")
_PLAN = Why("the plan decides it")
# Settings that would undo the plan: executors of another size or number, ports that N workers on
# one machine cannot share, another place for the driver; and what would join another cluster.
REMOVED: Reasons = {
    **dict.fromkeys(
        (
            "spark.blockManager.port",
            "spark.driver.blockManager.port",
            "spark.driver.port",
            "spark.master.ui.port",
            "spark.worker.ui.port",
        ),
        _OWN_PORTS,
    ),
    **dict.fromkeys(
        (
            "spark.dynamicAllocation.enabled",
            "spark.executor.cores",
            "spark.executor.instances",
            "spark.submit.deployMode",
            *(f"spark.executorEnv.{name}" for name in _JVM_VARIABLES),
        ),
        _PLAN,
    ),
    "spark.deploy.recoveryMode": Why("the master would join your cluster"),
    "spark.local.dir": Why("each deployment has its own folder"),
    "spark.shuffle.service.enabled": Why("the service has one port for all workers of a machine"),
}
# How queries are divided and how much of the cluster they take: the user's, where it fits.
_DIVISION = ("spark.default.parallelism", "spark.sql.shuffle.partitions")
_MOST_CORES = "spark.cores.max"
# Variables that only Spark's scripts read, refused because they are meant for a JVM.
_SCRIPTS_OWN = re.compile(r"SPARK_(\w+_OPTS|DAEMON_CLASSPATH)")
# Variables for folders and sizes, which the deployment decides, and for scripts.
_DECIDED = re.compile(
    r"JAVA_HOME|SPARK_(HOME|CONF_DIR|SCALA_VERSION|ENV_LOADED|PUBLIC_DNS|NICENESS|NO_DAEMONIZE"
    r"|(MASTER|WORKER|DAEMON|EXECUTOR|DRIVER|LOCAL|LOG|PID|IDENT|SSH|HISTORY|SHUFFLE)_\w+)"
)
# An assignment of a literal value: without a variable, command, pattern or home folder.
_EXPORT = re.compile(r"(?:export\s+)?(?P<name>[A-Za-z_]\w*)=(?P<value>'[^']*'|[^'`$*?;&|<>()~]*)")
# org.apache.spark.network.util.JavaUtils.byteStringAs: a whole number and a unit of 1024.
_SIZE = re.compile(r"(\d+)([kmgtp]?b?)", re.IGNORECASE | re.ASCII)


def check(tree: UserTree) -> None:
    """Raises UsageError for a folder that is not Spark's, or cannot be read."""
    refuse_closed(tree, tree.closed)
    if not any(name in tree.texts for name in _KNOWN):
        raise UsageError(
            f"{tree.root}: no {_DEFAULTS} found; give the folder that SPARK_CONF_DIR names"
        )
    defaults = _Defaults(tree)
    for role in _ROLES:
        refuse_shared(defaults.agents(role))
    environment(tree)


class _Defaults:
    """The user's spark-defaults.conf."""

    def __init__(self, tree: UserTree) -> None:
        self.where = f"{tree.root}/{_DEFAULTS}"
        self.text = tree.texts.get(_DEFAULTS, "")
        self._settings = read_properties(self.text, where=self.where)

    def get(self, name: str) -> str:
        return self._settings.get(name, "").strip()

    def size(self, name: str, *, unit_bytes: int = MIB) -> int:
        """0 if it is not set. `unit_bytes`: the unit of a number without one."""
        text = self.get(name)
        if not text:
            return 0
        match = _SIZE.fullmatch(text)
        if match is None:
            raise self._fault(name, text, "a size; use for example 8g")
        unit = match[2].lower()[:1]
        return int(match[1]) * (1024 ** "bkmgtp".index(unit) if unit else unit_bytes)

    def share(self, name: str, unset: float) -> float:
        text = self.get(name)
        try:
            found = float(text) if text else unset
        except ValueError:
            found = -1.0
        if not 0 <= found < 100:  # false for a NaN, too
            raise self._fault(name, text, "a share; use for example 0.2")
        return found

    def _fault(self, name: str, text: str, wanted: str) -> UsageError:
        # A substitution, ${env:SIZE}, is refused too: only the engine's process knows its value.
        return UsageError(f"{self.where}: {name}: {text!r} is not {wanted}")

    def jvm_options(self, option: str) -> list[str]:
        """The words, split as Spark does. Raises UsageError for an open quote."""
        try:
            return shlex.split(self._settings.get(option, ""))
        except ValueError as fault:
            raise UsageError(f"{self.where}: {option}: {fault}") from None

    def direct_bytes(self, role: str) -> int:
        """The direct memory that the options of that role's JVMs allow; 0 if they set no limit."""
        words = [word for option in _options_of(role) for word in self.jvm_options(option)]
        return direct_memory_bytes(words, where=self.where)

    def agents(self, role: str) -> list[Listener]:
        """What listens in each JVM of that role."""
        pieces = numbered(properties(self.text, where=self.where))
        lines = {piece.key: number for number, piece in pieces if piece.key}
        return listeners(
            (f"{self.where}:{lines[option]}", word)
            for option in _options_of(role)
            if option in lines
            for word in self.jvm_options(option)
        )


def _options_of(role: str) -> list[str]:
    return [option for option in _JVM_OPTIONS if f".{role}." in option]


class Agents(NamedTuple):
    """The ports of the driver's agents, and the flags of each executor's."""

    driver: Mapping[int, int]
    executors: Sequence[Sequence[str]]


def agents(tree: UserTree, executors: int, ports: Sequence[int]) -> Agents:
    """Spark has one set of JVM options for all executors, so those that listen go elsewhere."""
    theirs = _Defaults(tree)
    (driver,) = deal_ports(theirs.agents("driver"), 1, {*ports, *tree.taken_ports})
    taken = {*ports, *tree.taken_ports, *driver.values()}
    dealt = deal_ports(theirs.agents("executor"), executors, taken)
    words = [word for name in _options_of("executor") for word in theirs.jvm_options(name)]
    listening = [word for word in words if is_agent(word)]
    return Agents(
        driver,
        [for_instance(listening, own, is_first=not at) for at, own in enumerate(dealt)],
    )


def traits(ours: EngineTraits, tree: UserTree) -> EngineTraits:
    """`ours` with the memory that the user's settings take outside the heaps.

    These are all settings that say how large something may grow, also those that standalone Spark
    does not enforce (spark.executor.memoryOverhead): a reservation on another cluster is the best
    estimate of what an executor takes. Raises UsageError for a size that cannot be read.
    """
    theirs = _Defaults(tree)
    outside: dict[str, int] = {}
    off_heap = 0
    if theirs.get("spark.memory.offHeap.enabled").lower() == "true":
        off_heap = theirs.size("spark.memory.offHeap.size", unit_bytes=1)
        outside["spark.memory.offHeap.size"] = off_heap
    outside["spark.executor.pyspark.memory"] = theirs.size("spark.executor.pyspark.memory")
    # The overhead includes direct memory.
    overhead, direct = theirs.size("spark.executor.memoryOverhead"), theirs.direct_bytes("executor")
    larger = "spark.executor.memoryOverhead" if overhead >= direct else DIRECT_MEMORY
    outside[larger] = max(overhead, direct)
    factor = theirs.share("spark.executor.memoryOverheadFactor", ours.off_heap_ratio)
    named = [name for name, size in outside.items() if size]
    driver = max(theirs.size("spark.driver.memoryOverhead"), theirs.direct_bytes("driver"))
    return ours.model_copy(
        update={
            "coordinator_bytes": theirs.size("spark.driver.memory") or ours.coordinator_bytes,
            "coordinator_overhead_bytes": ours.coordinator_overhead_bytes + driver,
            # As in Spark, a size replaces the factor.
            "off_heap_ratio": 0.0 if overhead else max(ours.off_heap_ratio, factor),
            "asked_bytes": sum(outside.values()),
            "asked_source": f"{theirs.where} ({', '.join(named)})" if named else "",
            "query_ratio": theirs.share("spark.memory.fraction", ours.query_ratio),
            "query_beside_bytes": off_heap,
        }
    )


def files(
    tree: UserTree,
    ours: Mapping[str, str],
    plan: Plan,
    driver_ports: Mapping[int, int],
) -> dict[str, str]:
    """Path below conf -> text. `ours`: Atoll's own spark-defaults.conf."""
    theirs = _Defaults(tree)
    settings: dict[str, str | None] = dict.fromkeys(REMOVED)
    settings |= {key: value for key, value in ours.items() if key not in _USERS}
    for key in _kept(theirs, plan):
        settings.pop(key, None)
    for option in _JVM_OPTIONS:
        given = theirs.jvm_options(option)
        if not given and option not in ours:
            continue
        if ".executor." in option:
            decided = {
                flag_kind(flag) for slot in plan.slots for flag in placement_flags(slot, plan)
            }
            given = [flag for flag in given if not is_agent(flag)]
        else:
            decided = set()
            given = for_instance(given, driver_ports, is_first=True)
        whole = all(slot.cpus is None for slot in plan.slots)
        # The user's flags win: a JVM has one collector, and Atoll's is only a default.
        merged = merge_flags(
            "".join(f"{flag}\n" for flag in shlex.split(ours.get(option, ""))),
            [flag for flag in given if not _undoes_plan(flag, decided, whole=whole)],
            where=theirs.where,
        )
        flags = [flag for flag in merged.splitlines() if not flag.startswith("#")]
        settings[option] = options(flags) or None
    texts = dict(tree.texts)
    if _ENVIRONMENT in texts:
        texts[_ENVIRONMENT] = "".join(
            raw for raw, name, _ in _exports(tree) if not _DECIDED.fullmatch(name)
        )
    return texts | {
        _DEFAULTS: merge_properties(theirs.text, settings, where=theirs.where, separator=" ")
    }


def _kept(theirs: _Defaults, plan: Plan) -> Iterator[str]:
    """Those of the user's settings that fit the plan and so replace Atoll's."""
    yield from (key for key in _DIVISION if theirs.get(key))
    cores = theirs.get(_MOST_CORES)
    # Every worker instance needs a core.
    if cores.isdecimal() and plan.all_instances <= int(cores) <= plan.all_threads:
        yield _MOST_CORES


def _undoes_plan(flag: str, decided: Collection[str], *, whole: bool) -> bool:
    """Whether the flag overrides the plan, or conflicts with the heap that the plan gives.
    `whole`: the one executor has the whole machine, as the user's flags have it."""
    kind = flag_kind(flag)
    wide = SHARED if whole else MACHINE_WIDE
    return kind in ("-Xms", "-Xmx") or kind in decided or wide.match(flag) is not None


def environment(tree: UserTree) -> dict[str, str]:
    """The exports of spark-env.sh, without those that the deployment decides."""
    return {
        name: value for _, name, value in _exports(tree) if name and not _DECIDED.fullmatch(name)
    }


def _exports(tree: UserTree) -> Iterator[tuple[str, str, str]]:
    """(line, name, value) of each line; both are empty for a comment or a blank line."""
    for number, body, end in lines(tree.texts.get(_ENVIRONMENT, "")):
        stripped = body.strip()
        if not stripped or stripped.startswith("#"):
            yield body + end, "", ""
            continue
        where = f"{tree.root}/{_ENVIRONMENT}:{number}"
        match = _EXPORT.fullmatch(stripped)
        if match is None:
            raise UsageError(
                f"{where}: Atoll does not run this script and honours only lines like "
                "'export NAME=value' with a literal value"
            )
        name = match["name"]
        if _SCRIPTS_OWN.fullmatch(name):
            raise UsageError(
                f"{where}: only Spark's scripts read {name}, and Atoll does not run them; "
                f"set it in {_DEFAULTS}"
            )
        if name in _JVM_VARIABLES:
            raise UsageError(
                f"{where}: every JVM reads {name}, which would override the plan; "
                f"set spark.executor.extraJavaOptions in {_DEFAULTS}"
            )
        try:
            words = shlex.split(match["value"], comments=True)
        except ValueError as fault:
            raise UsageError(f"{where}: {fault}") from None
        if len(words) > 1:
            raise UsageError(f"{where}: the value of {name} has a blank; put it in quotes")
        yield body + end, name, words[0] if words else ""
