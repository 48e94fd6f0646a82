"""Runs blocks: start, warm up, measure and stop every entrant in turn, and record each step.

Only one deployment is up at a time, because two live clusters disturb each other. Before each
deployment the data leave the page cache and the warm-up reads them back, so that every deployment
works on memory that it placed itself. Answers are checked in every pass, after the clock stopped.

The callers pass in a `Deploy`, a `Work` and a `Host`, so tests need no engine. An engine's fault
becomes a `BlockFailed` record and the bench goes on. A query that fails while its engine lives on
becomes a `QueryFailed` record, and no entrant runs it again, so that all entrants run the same
queries. So does a query that goes with an engine's fault MOST_LOSSES times.

The bench ends with a `RunEnd` record that gives the reason after FAILURES_IN_A_ROW faults, when
every query has failed, on a wrong answer, when a running cluster has gone, or on Ctrl-C. In every
case the measurements are on disk and the deployment is down.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Literal

from atoll.bench.api import Deploy, Server, Work
from atoll.bench.idle import wait_until_idle
from atoll.bench.passes import Answered, Pass, Unanswered, run_pass
from atoll.bench.schedule import in_block, stream_orders
from atoll.errors import AtollError, CheckFailed, ClusterGone, DownloadFailed, EngineFailed
from atoll.host.api import Host
from atoll.inspect.fills import fill_count
from atoll.schema.base import Record
from atoll.schema.results import (
    BlockFailed,
    ClusterLook,
    DeploymentUp,
    Entrant,
    PassDone,
    PassPlaces,
    QueryFailed,
    QueryProfiled,
    QueryTime,
    QueryWork,
    RunEnd,
    RunHeader,
    SchedulerRan,
    VerifyResult,
)

FAILURES_IN_A_ROW = 3
MOST_LOSSES = 2  # one may be chance

Phase = Literal["warm-up", "measured"]


class WrongAnswer(CheckFailed):
    """An engine gave a wrong answer; `detail` contains the rows that differ."""

    def __init__(self, message: str, detail: str) -> None:
        super().__init__(message)
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Tick:
    """What the bench is doing now, for a progress display."""

    block: int
    blocks: int | None  # in all; None: as many as fit into a time
    position: int
    label: str
    # 'starting', 'warming up', 'measuring', 'stopping', 'done', 'failed: ...', 'left out: ...'
    doing: str


@dataclass(slots=True)
class Bench:
    """A run over the entrants of `header`; `append` receives each record at once."""

    header: RunHeader
    host: Host
    deploy: Deploy
    work: Work
    append: Callable[[Record], None]
    tick: Callable[[Tick], None]
    longest_wait_s: float = 5.0  # for an idle machine, before each measured pass
    time_s: float | None = None  # for all blocks, if their number is open
    # Hears the seconds of each deployment that succeeds in the first block, with its label.
    check_time: Callable[[str, float], None] = lambda label, elapsed_s: None
    turn: Callable[[Mapping[str, str]], None] = lambda knobs: None  # sets an entrant's knobs
    left_out: list[QueryFailed] = field(default_factory=list)  # in the resumed part of the run
    # (label, query) of those that have a profile, and how long profiles took: blocks to come take
    # less.
    profiled: set[tuple[str, str]] = field(default_factory=set)
    profiling_s: float = 0.0
    losses: Counter[str] = field(default_factory=Counter)  # query -> how often the engine was lost

    @property
    def queries(self) -> list[str]:
        """Those that are still run."""
        failed = {one.query for one in self.left_out}
        return [query for query in self.header.queries if query not in failed]

    def run(self, *, first_block: int = 0) -> None:
        """Measure the requested blocks from `first_block` on.

        Raises WrongAnswer, or EngineFailed after several failures in a row or if every query
        failed. Writes a RunEnd first, also on KeyboardInterrupt.
        """
        try:
            self._blocks(first_block)
        except KeyboardInterrupt:
            self._end("stopped", "interrupted")
            raise
        except DownloadFailed as fault:
            with suppress(DownloadFailed):  # the disk of the results file may be the full one
                self._end("stopped", str(fault))
            raise
        except AtollError as fault:
            self._end("stopped", str(fault))
            raise
        self._end("complete", "")

    def _blocks(self, first: int) -> None:
        failures = 0
        for block in self._numbers(first):
            for position, label in in_block([one.label for one in self.header.entrants], block):
                began, profiling_s = self.host.monotonic(), self.profiling_s
                known = len(self.left_out)
                error = self._one(block, position, label)
                if not self.queries:
                    one = self.left_out[0]
                    raise EngineFailed(
                        f"every query failed, first {one.query} on {one.label}: {one.error}"
                    )
                # If a query was left out, the next deployment may fare better.
                failures = failures + 1 if error and len(self.left_out) == known else 0
                if failures == FAILURES_IN_A_ROW:
                    raise EngineFailed(
                        f"{failures} attempts in a row failed, the last {label} in block "
                        f"{block + 1}: {error}; all errors are in the results file"
                    )
                if block == first and not error:
                    elapsed_s = self.host.monotonic() - began
                    self.check_time(label, elapsed_s - (self.profiling_s - profiling_s))

    def _numbers(self, first: int) -> Iterator[int]:
        """The numbers of the blocks. If their number is open, at least one, and each further one
        if it ends in time, should it take as long as the one before."""
        if self.header.blocks_asked is not None:
            yield from range(first, self.header.blocks_asked)
            return
        assert self.time_s is not None
        end = self.host.monotonic() + self.time_s
        for block in count(first):
            began, profiling_s = self.host.monotonic(), self.profiling_s
            yield block
            now = self.host.monotonic()
            if now + (now - began) - (self.profiling_s - profiling_s) > end:
                return

    def _one(self, block: int, position: int, label: str) -> str:
        """Measure one deployment of one block; returns why it failed, '' if it did not."""
        entrant = next(one for one in self.header.entrants if one.label == label)

        def tick(doing: str) -> None:
            self.tick(Tick(block, self.header.blocks_asked, position, label, doing))

        measured = False
        try:
            self.turn(entrant.knobs)
            cached = self.work.drop_from_cache()
            tick("starting")
            began = self.host.monotonic()
            with self.deploy(entrant) as server, fill_count(self.host) as fills:
                up_s = self.host.monotonic() - began
                for left in reversed(range(self.header.warmups)):
                    tick("warming up")
                    if not left:
                        fills.begin()  # the measured pass finds its caches warm
                    warm = self._pass(server, entrant, "warm-up", tick)
                    self._judge(warm, server, entrant, block, "warm-up")
                    self._leave_out(warm, server, block, label, "warm-up")
                self._verify(server, block, label)
                self._look(server, block, label, "before")
                tick("waiting for a quiet machine")
                idle = wait_until_idle(self.host, self.longest_wait_s)
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
                watched = server.watch()
                fills.measure()
                ran = self._pass(server, entrant, "measured", tick)
                fills.measured()
                try:
                    # Before the answers are checked: see atoll.bench.spreads.
                    states = server.schedulers() if ran.fault is None else ()
                    places = watched() if watched and ran.fault is None else None
                finally:
                    self._judge(ran, server, entrant, block, "measured")
                server.check_alive()
                self._leave_out(ran, server, block, label, "measured")
                if places is not None:
                    self.append(PassPlaces(block=block, label=label, places=places))
                if (filled := fills.of_pass(block, label)) is not None:
                    self.append(filled)
                self._count(server, ran, block, label)
                for slot, state in enumerate(states):
                    self.append(SchedulerRan(block=block, label=label, slot=slot, state=state))
                self._look(server, block, label, "after")
                self.append(PassDone(block=block, label=label, seconds=ran.seconds))
                measured = True
                self._profile(server, entrant, block, tick)
                tick("stopping")
        except ClusterGone as fault:  # its block is not marked as failed: --resume repeats it
            tick(f"failed: {fault}")
            raise
        except EngineFailed as fault:
            if not measured:  # else only its end failed, and the next start reports why
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

    def _profile(
        self, server: Server, entrant: Entrant, block: int, tick: Callable[[str], None]
    ) -> None:
        """Record how the queries are executed, once for each entrant. The block is over already, so
        a fault ends only this."""
        began = self.host.monotonic()
        for query in self.queries:
            if (entrant.label, query) in self.profiled:
                continue
            tick(f"profiling {query}")
            profile, unknown = None, ""
            try:
                profile = server.profile(
                    self.work.sql(entrant.engine, query), timeout_s=self.header.query_limit_s
                )
            except EngineFailed as fault:
                unknown = server.shown(fault)
            if profile is None and not unknown:
                break  # the engine tells nothing
            self.profiled.add((entrant.label, query))
            self.append(
                QueryProfiled(
                    block=block, label=entrant.label, query=query, profile=profile, unknown=unknown
                )
            )
            if unknown:
                try:
                    server.reconnect(0)  # the fault may have closed the connection
                except EngineFailed:
                    break  # the server is lost; the next block goes on
        self.profiling_s += self.host.monotonic() - began

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

    def _pass(
        self, server: Server, entrant: Entrant, phase: Phase, tick: Callable[[str], None]
    ) -> Pass:
        def failed(one: Unanswered) -> None:
            tick(f"left out: {one.query} failed ({phase}): {server.shown(one.fault)}")

        return run_pass(
            server.streams,
            stream_orders(self.queries, entrant.streams),
            lambda query: self.work.sql(entrant.engine, query),
            limit_s=self.header.query_limit_s,
            host=self.host,
            reconnect=server.reconnect,
            failed=failed,
        )

    def _leave_out(self, ran: Pass, server: Server, block: int, label: str, phase: Phase) -> None:
        """Record the queries that failed in a pass. Raises EngineFailed if no query is left, or if
        the deployment has failed since: then the queries may be innocent, as they are if
        UsageError is raised because the user's files have changed."""
        if ran.unanswered:
            server.check_alive()
            self.work.require_unchanged()
        known = {one.query for one in self.left_out}
        for one in ran.unanswered:
            if one.query in known:  # in two streams at once
                continue
            known.add(one.query)
            record = QueryFailed(
                block=block,
                label=label,
                phase=phase,
                stream=one.stream,
                query=one.query,
                error=server.shown(one.fault),
            )
            self._keep_out(record)
        if not self.queries:
            raise EngineFailed("no query is left")

    def _keep_out(self, record: QueryFailed) -> None:
        self.append(record)
        self.left_out.append(record)

    def _suspect(self, ran: Pass, server: Server, label: str, block: int, phase: Phase) -> None:
        """Leave out queries that failed in, or ended, MOST_LOSSES passes that did not finish."""
        errors = {one.query: server.shown(one.fault) for one in ran.unanswered}
        if ran.suspect:
            errors[ran.suspect] = f"the engine was lost during it {MOST_LOSSES} times"
        for query, error in errors.items():
            self.losses[query] += 1
            if self.losses[query] == MOST_LOSSES:
                self._keep_out(
                    QueryFailed(block=block, label=label, phase=phase, query=query, error=error)
                )

    def _judge(self, ran: Pass, server: Server, entrant: Entrant, block: int, phase: Phase) -> None:
        """Record all answers. Raises WrongAnswer, or the fault that ended the pass."""
        wrong = [
            record
            for answer in ran.answers
            if (record := self._record(answer, entrant, block, phase)).answer == "wrong"
        ]
        if wrong:
            raise WrongAnswer(
                f"{entrant.label} gave a wrong answer to {wrong[0].query} in block {block + 1} "
                f"({phase} pass); the results so far are kept",
                wrong[0].detail,
            )
        if ran.fault is not None:
            self._suspect(ran, server, entrant.label, block, phase)
            raise ran.fault

    def _record(self, answer: Answered, entrant: Entrant, block: int, phase: Phase) -> QueryTime:
        differing = self.work.check(answer.query, answer.result)
        if differing:
            self.work.require_unchanged()
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
