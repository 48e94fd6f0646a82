"""Runs blocks: up, warm up, one pass, down, for every entrant in turn; records as it goes.

One deployment is up at a time, because two live clusters disturb each other. Before each the
data leave the page cache, and the warm-up brings them back, so that every deployment works on
memory that it placed itself. Answers are checked in every pass, after the clock has stopped.

What it needs comes in through seams (`Deploy`, `Work`, `Host`), so that all of this is tested
without an engine. What goes wrong with an engine is a `BlockFailed` and the bench goes on; after
FAILURES_IN_A_ROW of them, on a wrong answer, when a cluster of the user's has gone, or on Ctrl-C,
it ends with a `RunEnd` that says so.
Whatever happens, what was measured is on disk, and the deployment is down.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import Literal, Protocol

from atoll.bench.idle import settled_idle_share
from atoll.bench.passes import Answered, Pass, run_pass
from atoll.bench.schedule import another_block_fits, schedule, stream_orders
from atoll.engines.api import Client, QueryResult
from atoll.errors import AtollError, CheckFailed, ClusterGone, DownloadFailed, EngineFailed
from atoll.host.api import Host
from atoll.schema.base import Record
from atoll.schema.results import (
    BlockFailed,
    ClusterLook,
    DeploymentUp,
    EngineWork,
    Entrant,
    PassDone,
    ProcessSeen,
    QueryTime,
    QueryWork,
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

    def verify(self) -> tuple[int, int, str] | None:
        """(threads looked at, threads not in their place, what is wrong); None without a plan."""
        ...

    def look(self, *, deep: bool) -> tuple[tuple[ProcessSeen, ...], str] | None:
        """The processes of a cluster that ran already, and what could not be seen; None of a
        deployment. `deep`: their memory too."""
        ...

    def check_alive(self) -> None:
        """Raises EngineFailed if a process died or an instance is missing."""
        ...

    def schedulers(self) -> Sequence[SchedulerState]:
        """What Atoll's scheduler did in each server, by slot; none where the engine's own ran."""
        ...

    def counted(self) -> Mapping[str, EngineWork]:
        """What the engine counted of its queries, by ticket; none where it does not."""
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

    @property
    def differing(self) -> Literal["wrong", "changed"]:
        """What an answer is that differs: no right one may be known."""
        ...

    def digest(self, query: str, result: QueryResult) -> str:
        """By which a later run knows the answer again; empty where the right one is known."""
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
        except DownloadFailed as fault:
            with suppress(DownloadFailed):  # the results file itself may be what is full
                self._end("stopped", str(fault))
            raise
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
                error = self._one(block, position, label)
                failures = failures + 1 if error else 0
                if failures == FAILURES_IN_A_ROW:
                    raise EngineFailed(
                        f"{failures} deployments in a row failed, the last {label} in block "
                        f"{block + 1}: {error}; all errors are in the results file"
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

    def _one(self, block: int, position: int, label: str) -> str:
        """One deployment of one block; why it failed, empty if it did not."""
        entrant = next(one for one in self.header.entrants if one.label == label)

        def tick(doing: str) -> None:
            self.tick(Tick(block, position, label, doing))

        measured = False
        try:
            cached = self.work.drop_from_cache()
            tick("starting")
            began = self.host.monotonic()
            with self.deploy(entrant) as server:
                up_s = self.host.monotonic() - began
                tick("warming up")
                self._judge(self._pass(server, entrant), entrant, block, "warm-up")
                self._verify(server, block, label)
                self._look(server, block, label, "before")
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
                self._count(server, ran, block, label)
                for slot, state in enumerate(states):
                    self.append(SchedulerRan(block=block, label=label, slot=slot, state=state))
                self._look(server, block, label, "after")
                self.append(PassDone(block=block, label=label, seconds=ran.seconds))
                measured = True
                tick("stopping")
        except ClusterGone as fault:  # its block is not marked: --resume measures it anew
            tick(f"failed: {fault}")
            raise
        except EngineFailed as fault:
            if not measured:  # else it was only not taken down, and the next start tells why
                self.append(BlockFailed(block=block, label=label, error=str(fault)))
            tick(f"failed: {fault}")
            return str(fault)
        tick("done")
        return ""

    def _verify(self, server: Server, block: int, label: str) -> None:
        found = server.verify()
        if found is not None:
            threads, drifted, detail = found
            self.append(
                VerifyResult(
                    block=block, label=label, threads=threads, drifted=drifted, detail=detail
                )
            )

    def _count(self, server: Server, ran: Pass, block: int, label: str) -> None:
        counted = server.counted()
        for answer in ran.answers:
            if work := counted.get(answer.result.ticket):
                self.append(
                    QueryWork(
                        block=block,
                        label=label,
                        stream=answer.stream,
                        query=answer.query,
                        work=work,
                    )
                )

    def _look(
        self, server: Server, block: int, label: str, when: Literal["before", "after"]
    ) -> None:
        found = server.look(deep=when == "after")
        if found is not None:
            processes, unknown = found
            self.append(
                ClusterLook(
                    block=block, label=label, when=when, processes=processes, unknown=unknown
                )
            )

    def _pass(self, server: Server, entrant: Entrant) -> Pass:
        return run_pass(
            server.streams,
            stream_orders(self.header.queries, entrant.streams),
            lambda query: self.work.sql(entrant.engine, query),
            limit_s=self.header.query_limit_s,
            host=self.host,
        )

    def _judge(self, ran: Pass, entrant: Entrant, block: int, phase: Phase) -> None:
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

    def _record(self, answer: Answered, entrant: Entrant, block: int, phase: Phase) -> QueryTime:
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
            answer="ok" if differing is None else self.work.differing,
            detail=differing or "",
            digest=self.work.digest(answer.query, answer.result),
        )
        self.append(record)
        return record

    def _end(self, status: Literal["complete", "stopped"], reason: str) -> None:
        self.append(RunEnd(ended_unix_s=time.time(), status=status, reason=reason))
