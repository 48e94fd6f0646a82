"""One pass: every stream asks all its queries once, side by side, as far as they come.

The clock of a query stops when the engine's client holds all rows. Where that client is a call in
another process (`HostedClient`), they come here only then.

A query's limit is the client's to keep. Where the client itself hangs, the pass gives it up SLACK_S
later; its thread is left behind, until the deployment is taken down and its wait ends.
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

_POLL_S = 0.5  # how often the wait for answers looks whether one is overdue


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


def asking(client: Client) -> Callable[[str, float], Callable[[], QueryResult]]:
    """(SQL, limit in seconds) -> when that returns, the rows are held; called in turn, are here."""
    if isinstance(client, HostedClient):
        hosted = client
        return lambda sql, limit_s: hosted.ask(sql, timeout_s=limit_s)

    def ask(sql: str, limit_s: float) -> Callable[[], QueryResult]:
        result: object = client.execute(sql, timeout_s=limit_s)
        if not isinstance(result, QueryResult):
            raise EngineFailed(f"a client's execute gives {type(result).__name__}, no QueryResult")
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
    """`orders` has the queries of each stream; `sql` gives the text of one."""
    asking = _Asking(sql, limit_s, host)
    threads = [
        # Daemons: when the bench is interrupted, taking the servers down ends their wait.
        threading.Thread(target=asking.stream, args=(number, client, order), daemon=True)
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
            item = asking.done.get(timeout=_POLL_S)
        except queue.Empty:
            fault = _overdue(asking.out, limit_s, host.monotonic())
            continue
        if item is None:
            running -= 1
        elif isinstance(item, Exception):
            fault = item
        else:
            answers.append(item)
            fault = _overdue(asking.out, limit_s, host.monotonic())
    return Pass(answers, host.monotonic() - began, fault)


@dataclass(frozen=True, slots=True)
class _Asking:
    sql: Callable[[str], str]
    limit_s: float
    host: Host
    # Answers as they come; what ended a stream early, or None at its end.
    done: queue.SimpleQueue[Answered | Exception | None] = field(default_factory=queue.SimpleQueue)
    # By stream the query that is out, and since when.
    out: dict[int, tuple[str, float]] = field(default_factory=dict)

    def stream(self, number: int, client: Client, order: Sequence[str]) -> None:
        try:
            ask = asking(client)
            for query in order:
                sql = self.sql(query)
                began = self.host.monotonic()
                self.out[number] = query, began
                fetch = ask(sql, self.limit_s)
                held = self.host.monotonic()
                seconds = held - began
                self.out[number] = query, held  # to bring the rows has a limit of its own
                result = fetch()
                del self.out[number]
                self.done.put(Answered(number, query, seconds, result))
        except Exception as fault:  # carried to the thread that waits, and raised there
            self.done.put(blamed(fault) or fault)
        else:
            self.done.put(None)


def _overdue(
    out: Mapping[int, tuple[str, float]], limit_s: float, now_s: float
) -> EngineFailed | None:
    for query, since in list(out.values()):
        if now_s - since > limit_s + SLACK_S:
            return EngineFailed(
                f"{query} hangs: no word {SLACK_S:g} s after its limit of {limit_s:g} s, not even "
                "from the client"
            )
    return None
