"""Runs blocks: up, warm up, one pass, down, for every entrant in turn; records as it goes.

One deployment is up at a time, because two live clusters disturb each other. Before each the
data leave the page cache, and the warm-up brings them back, so that every deployment works on
memory that it placed itself. Answers are checked in every pass, after the clock has stopped.

What it needs comes in through seams (`Deploy`, `Work`, `Host`), so that all of this is tested
without an engine. What goes wrong with an engine is a `BlockFailed` and the bench goes on; after
FAILURES_IN_A_ROW of them, on a wrong answer, or on Ctrl-C, it ends with a `RunEnd` that says so.
Whatever happens, what was measured is on disk, and the deployment is down.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal, Protocol

from atoll.bench.idle import settled_idle_share
from atoll.bench.schedule import another_block_fits, schedule, stream_orders
from atoll.engines.base import Client, QueryResult
from atoll.errors import AtollError, CheckFailed, DownloadFailed, EngineFailed
from atoll.host.api import Host
from atoll.schema.base import Record
from atoll.schema.results import (
    BlockFailed,
    DeploymentUp,
    Entrant,
    PassDone,
    QueryTime,
    RunEnd,
    RunHeader,
    SchedulerRan,
    SchedulerState,
    VerifyResult,
)

FAILURES_IN_A_ROW = 3

Phase = Literal["warm-up", "measured"]


class Server(Protocol):
    """A deployment that is up, with the tables in place."""

    @property
    def streams(self) -> Sequence[Client]:
        """A connection per query stream, dealt round-robin over the servers."""
        ...

    def verify(self) -> tuple[int, int, str]:
        """(threads looked at, threads not in their place, what is wrong)."""
        ...

    def check_alive(self) -> None:
        """Raises EngineFailed if a process died or an instance is missing."""
        ...

    def schedulers(self) -> Sequence[SchedulerState]:
        """What Atoll's scheduler did in each server, by slot; none where the engine's own ran."""
        ...


class Deploy(Protocol):
    def __call__(self, entrant: Entrant) -> AbstractContextManager[Server]:
        """Bring the entrant up; leaving the context takes all of it down."""
        ...


class Work(Protocol):
    """The suite's part: what to ask, and whether the answer is right."""

    def sql(self, engine: str, query: str) -> str: ...

    def check(self, query: str, result: QueryResult) -> str | None:
        """None if the answer is right, else the rows that differ."""
        ...

    def drop_from_cache(self) -> float | None:
        """Drop the data from the page cache; the share that stayed, None if unknown."""
        ...


class WrongAnswer(CheckFailed):
    """An engine answered a query wrongly; `detail` holds the differing rows."""

    def __init__(self, message: str, detail: str) -> None:
        super().__init__(message)
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Tick:
    """What the bench is doing now, for whoever shows progress."""

    block: int
    position: int
    label: str
    doing: str  # 'starting', 'warming up', 'measuring', 'stopping', 'done', 'failed: ...'


@dataclass(slots=True)
class Bench:
    """A run over the entrants of `header`; `append` takes each record as it comes."""

    header: RunHeader
    host: Host
    deploy: Deploy
    work: Work
    append: Callable[[Record], None]
    tick: Callable[[Tick], None]

    def run(self, *, first_block: int = 0, time_box_s: float | None = None) -> None:
        """Measure the blocks that are asked for, or as many as fit into the time box.

        Raises WrongAnswer, or EngineFailed after several failures in a row; a RunEnd is
        written first, also on KeyboardInterrupt.
        """
        try:
            self._blocks(first_block, time_box_s)
        except KeyboardInterrupt:
            self._end("stopped", "interrupted")
            raise
        except DownloadFailed:
            raise  # the results file itself cannot be written
        except AtollError as fault:
            self._end("stopped", str(fault))
            raise
        self._end("complete", "")

    def _blocks(self, first: int, time_box_s: float | None) -> None:
        began = self.host.monotonic()
        spent: list[float] = []
        failures = 0
        block = first
        while self._wants(block, spent, began, time_box_s):
            block_began = self.host.monotonic()
            for _, position, label in schedule(self._labels, 1, block):
                failures = 0 if self._one(block, position, label) else failures + 1
                if failures == FAILURES_IN_A_ROW:
                    raise EngineFailed(
                        f"{failures} deployments in a row failed, the last {label} in block "
                        f"{block + 1}; the errors are in the results file"
                    )
            spent.append(self.host.monotonic() - block_began)
            block += 1

    def _wants(
        self, block: int, spent: list[float], began: float, time_box_s: float | None
    ) -> bool:
        if self.header.blocks_asked is not None and block >= self.header.blocks_asked:
            return False
        if time_box_s is None:
            return self.header.blocks_asked is not None
        return another_block_fits(spent, time_box_s - (self.host.monotonic() - began))

    @property
    def _labels(self) -> list[str]:
        return [entrant.label for entrant in self.header.entrants]

    def _one(self, block: int, position: int, label: str) -> bool:
        """One deployment of one block; False if it failed."""
        entrant = next(one for one in self.header.entrants if one.label == label)

        def tick(doing: str) -> None:
            self.tick(Tick(block, position, label, doing))

        try:
            cached = self.work.drop_from_cache()
            tick("starting")
            began = self.host.monotonic()
            with self.deploy(entrant) as server:
                up_s = self.host.monotonic() - began
                tick("warming up")
                self._judge(self._pass(server, entrant), entrant, block, "warm-up")
                threads, drifted, detail = server.verify()
                self.append(
                    VerifyResult(
                        block=block, label=label, threads=threads, drifted=drifted, detail=detail
                    )
                )
                tick("waiting for a quiet machine")
                idle = settled_idle_share(self.host)
                self.append(
                    DeploymentUp(
                        block=block,
                        label=label,
                        position=position,
                        up_s=up_s,
                        cached_share=cached,
                        idle_share=idle,
                    )
                )
                tick("measuring")
                ran = self._pass(server, entrant)
                try:
                    # At once, not after the answers were checked: see atoll.bench.spreads.
                    states = server.schedulers() if ran.fault is None else ()
                finally:
                    self._judge(ran, entrant, block, "measured")
                server.check_alive()
                for slot, state in enumerate(states):
                    self.append(SchedulerRan(block=block, label=label, slot=slot, state=state))
                self.append(PassDone(block=block, label=label, seconds=ran.seconds))
                tick("stopping")
        except EngineFailed as fault:
            self.append(BlockFailed(block=block, label=label, error=str(fault)))
            tick(f"failed: {fault}")
            return False
        tick("done")
        return True

    def _pass(self, server: Server, entrant: Entrant) -> _Pass:
        """All queries once in every stream, as far as they went."""
        done: queue.SimpleQueue[_Answer | Exception | None] = queue.SimpleQueue()
        orders = stream_orders(self.header.queries, entrant.streams)
        threads = [
            # Daemons: when the bench is interrupted, taking the servers down ends their wait.
            threading.Thread(
                target=self._stream, args=(client, entrant.engine, number, order, done), daemon=True
            )
            for number, (client, order) in enumerate(zip(server.streams, orders, strict=True))
        ]
        began = self.host.monotonic()
        for thread in threads:
            thread.start()
        answers: list[_Answer] = []
        fault: Exception | None = None
        running = len(threads)
        while running:
            item = done.get()
            if item is None:
                running -= 1
            elif isinstance(item, Exception):
                fault = item
                break
            else:
                answers.append(item)
        return _Pass(answers, self.host.monotonic() - began, fault)

    def _judge(self, ran: _Pass, entrant: Entrant, block: int, phase: Phase) -> None:
        """Records whatever ended. Raises WrongAnswer, or what ended the pass."""
        wrong = [
            record
            for answer in ran.answers
            if (record := self._record(answer, entrant, block, phase)).answer == "wrong"
        ]
        if wrong:
            raise WrongAnswer(
                f"{entrant.label} answered {wrong[0].query} wrongly in block {block + 1} "
                f"({phase} pass); the results so far are kept",
                wrong[0].detail,
            )
        if ran.fault is not None:
            raise ran.fault

    def _stream(
        self,
        client: Client,
        engine: str,
        number: int,
        order: Sequence[str],
        done: queue.SimpleQueue[_Answer | Exception | None],
    ) -> None:
        try:
            for query in order:
                sql = self.work.sql(engine, query)
                began = self.host.monotonic()
                result = client.execute(sql, timeout_s=self.header.query_limit_s)
                done.put(_Answer(number, query, self.host.monotonic() - began, result))
        except Exception as fault:  # carried to the thread that waits, and raised there
            done.put(fault)
        else:
            done.put(None)

    def _record(self, answer: _Answer, entrant: Entrant, block: int, phase: Phase) -> QueryTime:
        differing = self.work.check(answer.query, answer.result)
        record = QueryTime(
            block=block,
            label=entrant.label,
            phase=phase,
            stream=answer.stream,
            query=answer.query,
            seconds=answer.seconds,
            engine_seconds=answer.result.engine_seconds,
            rows=len(answer.result.rows),
            answer="ok" if differing is None else "wrong",
            detail=differing or "",
        )
        self.append(record)
        return record

    def _end(self, status: Literal["complete", "stopped"], reason: str) -> None:
        self.append(RunEnd(ended_unix_s=time.time(), status=status, reason=reason))


@dataclass(frozen=True, slots=True)
class _Answer:
    stream: int
    query: str
    seconds: float
    result: QueryResult


@dataclass(frozen=True, slots=True)
class _Pass:
    answers: list[_Answer]
    seconds: float
    fault: Exception | None  # what ended it early
