"""What a user's spark-defaults.conf has Spark take beside the heaps, for the plan to count. Pure.

Sizes are as Spark reads them (network.util.JavaUtils.byteStringAs: a whole number and a unit of
1024). Counted are the settings that say how large something may grow, also those that standalone
Spark does not hold itself to (spark.executor.memoryOverhead): what was reserved on another cluster
is the best word there is for what an executor takes.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from atoll.engines.userconfig.java import DIRECT_MEMORY, direct_memory_bytes
from atoll.errors import UsageError
from atoll.schema.plan import EngineTraits
from atoll.schema.size import MIB

DEFAULT_OPTIONS = ("spark.driver.defaultJavaOptions", "spark.executor.defaultJavaOptions")
EXTRA_OPTIONS = ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions")

_SIZE = re.compile(r"(\d+)([kmgtp]?b?)", re.IGNORECASE | re.ASCII)


def counted(ours: EngineTraits, theirs: Mapping[str, str], *, where: str) -> EngineTraits:
    """`ours` with what the user's settings ask for. Raises UsageError for what is no number."""
    asked = _Asked(theirs, where)
    beside: dict[str, int] = {}
    off_heap = 0
    if theirs.get("spark.memory.offHeap.enabled", "").strip().lower() == "true":
        off_heap = beside["spark.memory.offHeap.size"] = asked.size(
            "spark.memory.offHeap.size", unit_bytes=1
        )
    beside["spark.executor.pyspark.memory"] = asked.size("spark.executor.pyspark.memory")
    # Direct memory is a part of what the overhead is meant for.
    overhead = asked.size("spark.executor.memoryOverhead")
    direct = asked.direct("executor")
    larger = "spark.executor.memoryOverhead" if overhead >= direct else DIRECT_MEMORY
    beside[larger] = max(overhead, direct)
    factor = asked.share("spark.executor.memoryOverheadFactor", ours.off_heap_ratio)
    named = [name for name, size in beside.items() if size]
    driver = max(asked.size("spark.driver.memoryOverhead"), asked.direct("driver"))
    return ours.model_copy(
        update={
            "coordinator_bytes": asked.size("spark.driver.memory") or ours.coordinator_bytes,
            "coordinator_overhead_bytes": ours.coordinator_overhead_bytes + driver,
            # As in Spark, a size replaces the factor.
            "off_heap_ratio": 0.0 if overhead else max(ours.off_heap_ratio, factor),
            "asked_bytes": sum(beside.values()),
            "asked_source": f"{where} ({', '.join(named)})" if named else "",
            "query_ratio": asked.share("spark.memory.fraction", ours.query_ratio),
            "query_beside_bytes": off_heap,
        }
    )


class _Asked:
    """Numbers of a spark-defaults.conf."""

    def __init__(self, theirs: Mapping[str, str], where: str) -> None:
        self._theirs = theirs
        self._where = where

    def size(self, name: str, *, unit_bytes: int = MIB) -> int:
        """0 where it is not set. `unit_bytes`: what a number without a unit counts."""
        text = self._theirs.get(name, "").strip()
        if not text:
            return 0
        match = _SIZE.fullmatch(text)
        if match is None:
            raise self._fault(name, text, "a whole number with a unit, as 8g")
        unit = match[2].lower()[:1]
        return int(match[1]) * (1024 ** "bkmgtp".index(unit) if unit else unit_bytes)

    def direct(self, role: str) -> int:
        """What the direct memory of that role's JVMs may grow to, where it is said."""
        names = (f"spark.{role}.defaultJavaOptions", f"spark.{role}.extraJavaOptions")
        words = [word for name in names for word in options_of(self._theirs, name, self._where)]
        return direct_memory_bytes(words, where=self._where)

    def share(self, name: str, unset: float) -> float:
        text = self._theirs.get(name, "").strip()
        try:
            found = float(text) if text else unset
        except ValueError:
            found = -1.0
        if not 0 <= found < 100:  # a NaN is neither
            raise self._fault(name, text, "a share, as 0.2")
        return found

    def _fault(self, name: str, text: str, wanted: str) -> UsageError:
        # A substitution, ${env:SIZE}, is one of these: only the engine's process knows it.
        return UsageError(
            f"{self._where}: {name} is {text!r}, which cannot be counted; write {wanted}"
        )


def options_of(theirs: Mapping[str, str], option: str, where: str) -> list[str]:
    """JVM options, taken apart as Spark does. Raises UsageError for a quote that is not closed."""
    try:
        return shlex.split(theirs.get(option, ""))
    except ValueError as fault:
        raise UsageError(f"{where}: {option}: {fault}") from None
