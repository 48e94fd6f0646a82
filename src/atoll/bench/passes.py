"""One pass: all streams run their queries concurrently, each query once.

The clock of a query runs from its call of the engine's client until that client has all rows. If
the client is a call in another process, which holds the session, the clock is there
(`QueryResult.began_s`): the way there and back is the bench's own. A pass takes as long as at least
one of its queries ran: what the bench does between two queries of a lone stream is its own time.

A query that the server refuses, or that takes longer than its limit, does not end the pass. Its
stream gets a new connection and goes on with the next query, and no stream starts it again. A
server that is lost ends the pass.

The client enforces a query's limit. If the client itself hangs, the pass gives up SLACK_S later
and leaves its thread behind; stopping the deployment ends the thread's wait.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from atoll.engines.api import Client, QueryResult
from atoll.engines.calls import blamed
from atoll.errors import EngineFailed, ServerGone
from atoll.host.api import Host
from atoll.supervise.client_calls import SLACK_S, close_all

_POLL_S = 0.5  # how often to check for overdue answers

Span = tuple[float, float]  # of a clock: from and to


@dataclass(frozen=True, slots=True)
class Answered:
    stream: int
    query: str
    seconds: float  # at the engine's client
    result: QueryResult


@dataclass(frozen=True, slots=True)
class Unanswered:
    stream: int
    query: str
    fault: EngineFailed


@dataclass(frozen=True, slots=True)
class Pass:
    answers: list[Answered]
    unanswered: list[Unanswered]
    seconds: float  # in which at least one query ran; without those that a fault interrupted
    fault: Exception | None  # what ended it early
    suspect: str = ""  # the query during which the server was lost


def ask(client: Client, sql: str, *, limit_s: float, host: Host) -> tuple[QueryResult, Span]:
    """The result, and when the query ran. Raises as `Client.execute`."""
    began_s = host.monotonic()
    result: object = client.execute(sql, timeout_s=limit_s)
    ended_s = host.monotonic()
    if not isinstance(result, QueryResult):
        raise EngineFailed(f"a client's execute returned {type(result).__name__}, not QueryResult")
    if result.began_s is not None:
        began_s, ended_s = result.began_s, result.began_s + result.engine_seconds
    return result, (began_s, ended_s)


def covered_s(spans: Iterable[Span]) -> float:
    """The seconds in which at least one of the spans was."""
    seconds, end = 0.0, float("-inf")
    for start, stop in sorted(spans):
        seconds += max(stop - max(start, end), 0.0)
        end = max(end, stop)
    return seconds


def run_pass(
    streams: Sequence[Client],
    orders: Sequence[Sequence[str]],
    sql: Callable[[str], str],
    *,
    limit_s: float,
    host: Host,
    reconnect: Callable[[int], Client],
    failed: Callable[[Unanswered], None] = lambda one: None,
) -> Pass:
    """`orders` has the queries of each stream; `sql` maps a query to its text.

    `reconnect` gives a stream a new connection after a query has failed. It raises EngineFailed if
    the server did not survive the query. `failed` is called at each failure.
    """
    running_streams = _Streams(sql, limit_s, host, reconnect)
    threads = [
        # Daemons: after an interrupt, stopping the servers ends their wait.
        threading.Thread(target=running_streams.stream, args=(number, client, order), daemon=True)
        for number, (client, order) in enumerate(zip(streams, orders, strict=True))
    ]
    for thread in threads:
        thread.start()
    answers: list[Answered] = []
    unanswered: list[Unanswered] = []
    fault: Exception | None = None
    running = len(threads)
    try:
        while running and fault is None:
            try:
                item = running_streams.done.get(timeout=_POLL_S)
            except queue.Empty:
                fault = _overdue(running_streams.out, limit_s, host.monotonic())
                continue
            if item is None:
                running -= 1
            elif isinstance(item, Exception):
                fault = item
            else:
                if isinstance(item, Answered):
                    answers.append(item)
                else:
                    unanswered.append(item)
                    failed(item)
                fault = _overdue(running_streams.out, limit_s, host.monotonic())
    finally:
        running_streams.is_over.set()
    suspect = next(iter(running_streams.suspects), "")
    return Pass(answers, unanswered, covered_s(running_streams.spans), fault, suspect)


@dataclass(frozen=True, slots=True)
class _Streams:
    sql: Callable[[str], str]
    limit_s: float
    host: Host
    reconnect: Callable[[int], Client]
    # Answers and failures, and for each stream the fault that ended it, or None.
    done: queue.SimpleQueue[Answered | Unanswered | Exception | None] = field(
        default_factory=queue.SimpleQueue
    )
    spans: list[Span] = field(default_factory=list)  # of queries, also of those that failed
    # Stream -> the query that is running, and since when.
    out: dict[int, tuple[str, float]] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)
    suspects: list[str] = field(default_factory=list)
    failing: threading.Lock = field(default_factory=threading.Lock)
    is_over: threading.Event = field(default_factory=threading.Event)  # nobody waits any more

    def stream(self, number: int, client: Client, order: Sequence[str]) -> None:
        try:
            for query in order:
                if query in self.failed:
                    continue
                try:
                    self.done.put(self._ask(number, client, query))
                except ServerGone as fault:
                    self.suspects.append(query)
                    raise type(fault)(f"{query}: {fault}") from fault
                except EngineFailed as fault:
                    client = self._go_on(number, query, fault)
        except Exception as fault:  # passed to the waiting thread, which raises it
            self.done.put(blamed(fault) or fault)
        else:
            self.done.put(None)

    def _ask(self, number: int, client: Client, query: str) -> Answered:
        sql, began_s = self.sql(query), self.host.monotonic()
        self.out[number] = query, began_s
        try:
            result, span = ask(client, sql, limit_s=self.limit_s, host=self.host)
        except EngineFailed:
            self.spans.append((began_s, self.host.monotonic()))
            raise
        finally:
            del self.out[number]
        self.spans.append(span)
        return Answered(number, query, span[1] - span[0], result)

    def _go_on(self, number: int, query: str, fault: EngineFailed) -> Client:
        """A new connection after a failed query. Raises EngineFailed if the server is lost too."""
        with self.failing:  # one at a time: `reconnect` asks the server's processes
            if self.is_over.is_set():
                raise fault
            self.failed.add(query)
            try:
                client = self.reconnect(number)
            except EngineFailed as loss:
                self.suspects.append(query)
                raise type(loss)(f"{query}: {fault}; then {loss}") from loss
            if self.is_over.is_set():  # nobody else would close it
                close_all([client])
                raise fault
        self.done.put(Unanswered(number, query, fault))
        return client


def _overdue(
    out: Mapping[int, tuple[str, float]], limit_s: float, now_s: float
) -> EngineFailed | None:
    for query, since in list(out.values()):
        if now_s - since > limit_s + SLACK_S:
            return EngineFailed(
                f"{query} hangs: its client has not answered {SLACK_S:g} s after the limit of "
                f"{limit_s:g} s"
            )
    return None
