"""Spark inside the SQL host: the driver of a standalone application, one session for all clients.

The session is configured by spark-defaults.conf (SPARK_CONF_DIR), which the master and the workers
read too. `config` has `executors`, the number of executors, and `events`, the folder of the event
log.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from atoll.engines.api import Column
from atoll.engines.spark.events import EventLog
from atoll.engines.spark.plans import operators_of
from atoll.errors import EngineFailed
from atoll.schema.operators import QueryProfile
from atoll.schema.results import EngineWork
from atoll.schema.text import first_line

_EVENTS_LIMIT_MS = 10_000
_WHY_S = 5.0
# SparkExitCode.OOM, and SIGKILL as the shell reports it.
_MEANINGS = {
    "52": "its heap was full; fewer instances have larger heaps",
    "137": "killed, perhaps by the OOM killer",
}


class SparkBackend:
    """See `CountingBackend` and `ProfilingBackend` of atoll.engines.sql.host."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._executors: int = config["executors"]
        self._events = Path(config["events"])
        self._events.mkdir(mode=0o700, exist_ok=True)  # Spark does not create it
        self._log = EventLog()
        self._read_bytes = 0
        self._session = SparkSession.builder.getOrCreate()
        self._context = self._session.sparkContext
        self._complete: frozenset[str] = frozenset()

    def run(self, sql: str, ticket: str) -> tuple[list[Column], list[tuple[Any, ...]]]:
        self._context.setJobGroup(ticket, ticket, interruptOnCancel=True)
        try:
            frame = self._session.sql(sql)
            rows = [tuple(row) for row in frame.collect()]
        except PySparkException as fault:
            # Only the message: str() also has the plan and the JVM's stack.
            raise EngineFailed(str(fault).partition("\n")[0]) from None
        return [
            Column(field.name, field.dataType.simpleString()) for field in frame.schema.fields
        ], rows

    def cancel(self, ticket: str) -> None:
        self._context.cancelJobGroup(ticket)

    def instances(self) -> int:
        # An executor that the master started in place of a lost one does not count: see `check`.
        present = self._present()
        if len(present) > self._executors and not self._complete:
            self._complete = present
        return len(present & (self._complete or present)) - 1

    def check(self) -> None:
        # The master restarts a lost executor, so a count alone would not show the loss, and a
        # time with a loss in it is not a measurement.
        lost = self._complete - self._present()
        if not lost:
            return
        # Spark removes an executor shortly before it records why.
        deadline = time.monotonic() + _WHY_S
        while len(why := self._why_lost()) < len(lost) and time.monotonic() < deadline:
            time.sleep(0.1)
        raise EngineFailed(
            f"{len(lost)} of {self._executors} executors were lost since the start: "
            f"{'; '.join(why) or ', '.join(sorted(lost))}"
        )

    def work(self) -> dict[str, EngineWork]:
        """Ticket -> what the queries since the last call took. Raises EngineFailed if the log
        cannot be read."""
        try:
            self._log.add(self._new_lines())
        except (OSError, ValueError, Py4JError) as fault:
            self._log = EventLog()
            raise self._unreadable(fault) from None
        return self._log.take()

    def profile(self, sql: str, ticket: str) -> QueryProfile:
        try:
            for _ in self._new_lines():
                pass  # of the queries before
            self.run(sql, ticket)
            return QueryProfile(operators=operators_of(self._new_lines()))
        except (OSError, ValueError, Py4JError) as fault:
            raise self._unreadable(fault) from None

    def _new_lines(self) -> Iterator[bytes]:
        """The whole lines that the log has got since they were last read."""
        # Another thread writes the events, and a job's end flushes the file.
        self._context._jsc.sc().listenerBus().waitUntilEmpty(_EVENTS_LIMIT_MS)
        (path,) = self._events.iterdir()
        with path.open("rb") as log:
            log.seek(self._read_bytes)
            for line in log:
                if not line.endswith(b"\n"):
                    break  # still being written
                self._read_bytes += len(line)
                yield line

    def _unreadable(self, fault: Exception) -> EngineFailed:
        return EngineFailed(
            f"Spark's event log in {self._events} cannot be read ({first_line(str(fault))})"
        )

    def _why_lost(self) -> list[str]:
        """What Spark reports about each lost executor, with the meaning of its exit code."""
        spark = self._context._jsc.sc()
        found = []
        try:
            spark.listenerBus().waitUntilEmpty(_EVENTS_LIMIT_MS)
            listed = spark.statusStore().executorList(False)  # False: not only the active ones
            for place in range(listed.size()):
                executor = listed.apply(place)
                if not executor.isActive() and executor.removeReason().isDefined():
                    reason = " ".join(executor.removeReason().get().split())
                    found.append(f"{executor.hostPort()}: {reason}{_meaning(reason)}")
        except Py4JError:
            return []  # the driver's JVM has failed too; the loss is reported in any case
        return found

    def close(self) -> None:
        self._session.stop()

    def _present(self) -> frozenset[str]:
        """The executors that have reported to the driver, and the driver itself, by address."""
        listed = self._context._jsc.sc().getExecutorMemoryStatus().keySet().mkString(" ")
        return frozenset(listed.split())


def _meaning(reason: str) -> str:
    code = re.search(r"exited with code (\d+)", reason)
    return f" ({meaning})" if code and (meaning := _MEANINGS.get(code[1])) else ""
