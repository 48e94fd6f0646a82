"""One pass: all streams run their queries concurrently, each query once.

The clock of a query stops when the engine's client has all rows. If that client is a call in
another process (`HostedClient`), the rows come here only afterwards.

The client enforces a query's limit. If the client itself hangs, the pass gives up SLACK_S later
and leaves its thread behind; stopping the deployment ends the thread's wait.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from atoll.engines.api import Client, HostedClient, QueryResult
from atoll.engines.calls import blamed
from atoll.errors import EngineFailed
from atoll.host.api import Host
from atoll.supervise.client_calls import SLACK_S

_POLL_S = 0.5  # how often to check for overdue answers


@dataclass(frozen=True, slots=True)
class Answered:
    stream: int
    query: str
    seconds: float  # at the client
    result: QueryResult


@dataclass(frozen=True, slots=True)
class Pass:
    answers: list[Answered]
    seconds: float  # of all streams together
    fault: Exception | None  # what ended it early


def asker(client: Client) -> Callable[[str, float], Callable[[], QueryResult]]:
    """(SQL, limit in seconds) -> a function; the client has the rows when the call returns, and the
    function fetches them."""
    if isinstance(client, HostedClient):
        hosted = client
        return lambda sql, limit_s: hosted.ask(sql, timeout_s=limit_s)

    def ask(sql: str, limit_s: float) -> Callable[[], QueryResult]:
        result: object = client.execute(sql, timeout_s=limit_s)
        if not isinstance(result, QueryResult):
            raise EngineFailed(
                f"a client's execute returned {type(result).__name__}, not QueryResult"
            )
        return lambda: result

    return ask


def run_pass(
    streams: Sequence[Client],
    orders: Sequence[Sequence[str]],
    sql: Callable[[str], str],
    *,
    limit_s: float,
    host: Host,
) -> Pass:
    """`orders` has the queries of each stream; `sql` maps a query to its text."""
    running_streams = _Streams(sql, limit_s, host)
    threads = [
        # Daemons: after an interrupt, stopping the servers ends their wait.
        threading.Thread(target=running_streams.stream, args=(number, client, order), daemon=True)
        for number, (client, order) in enumerate(zip(streams, orders, strict=True))
    ]
    began = host.monotonic()
    for thread in threads:
        thread.start()
    answers: list[Answered] = []
    fault: Exception | None = None
    running = len(threads)
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
            answers.append(item)
            fault = _overdue(running_streams.out, limit_s, host.monotonic())
    return Pass(answers, host.monotonic() - began, fault)


@dataclass(frozen=True, slots=True)
class _Streams:
    sql: Callable[[str], str]
    limit_s: float
    host: Host
    # Answers, and for each stream the fault that ended it, or None.
    done: queue.SimpleQueue[Answered | Exception | None] = field(default_factory=queue.SimpleQueue)
    # Stream -> the query that is running, and since when.
    out: dict[int, tuple[str, float]] = field(default_factory=dict)

    def stream(self, number: int, client: Client, order: Sequence[str]) -> None:
        try:
            ask = asker(client)
            for query in order:
                sql = self.sql(query)
                began = self.host.monotonic()
                self.out[number] = query, began
                fetch = ask(sql, self.limit_s)
                held = self.host.monotonic()
                seconds = held - began
                self.out[number] = query, held  # fetching the rows has its own limit
                result = fetch()
                del self.out[number]
                self.done.put(Answered(number, query, seconds, result))
        except Exception as fault:  # passed to the waiting thread, which raises it
            self.done.put(blamed(fault) or fault)
        else:
            self.done.put(None)


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
