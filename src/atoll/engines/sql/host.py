"""The SQL host: a small process that holds an engine's session and answers SQL on a UNIX socket.

    python -m atoll.engines.sql.host --backend MODULE:CLASS --socket PATH --config FILE

The class makes a `Backend` from the configuration file (JSON). Python imports MODULE, so that an
engine of another package can bring its own backend.

An embedded engine, or one whose session lives in a driver, needs a process of its own. Atoll can
place, watch and end that process, while the bench stays outside the slots that it measures. The
protocol is in `atoll.engines.sql.protocol`.

The socket appears once the engine answers, and only its owner may use it. Each connection runs one
query at a time. When a client hangs up, its query is cancelled. SIGTERM ends the session and the
process within STOP_LIMIT_S.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from atoll.engines.api import Column
from atoll.engines.sql.protocol import (
    MAX_LINE_BYTES,
    encode,
    encode_error,
    encode_result,
)
from atoll.errors import EngineFailed
from atoll.schema.operators import QueryProfile
from atoll.schema.results import EngineWork, SchedulerState

STOP_LIMIT_S = 10.0
# A cancellation is lost if the engine has not begun the query, so the host repeats it.
CANCEL_AGAIN_S = 0.1


Result = tuple[list[Column], list[tuple[Any, ...]]]


class Backend(Protocol):
    """An engine's session inside this process. A `ticket` identifies each running query."""

    def run(self, sql: str, ticket: str) -> Result: ...

    def cancel(self, ticket: str) -> None:
        """End that query soon. Does nothing if the query is not running, or not yet."""
        ...

    def instances(self) -> int: ...

    def check(self) -> None:
        """Raise EngineFailed if an instance was lost since all were present."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class ScheduledBackend(Backend, Protocol):
    """A session in which Atoll's scheduler runs the tasks."""

    def scheduler(self) -> SchedulerState: ...


@runtime_checkable
class CountingBackend(Backend, Protocol):
    """A session whose engine counts the work of its queries."""

    def work(self) -> Mapping[str, EngineWork]: ...


@runtime_checkable
class PreparingBackend(Backend, Protocol):
    """A session that does work for a query outside of its clock."""

    def around(self, ticket: str) -> AbstractContextManager[None]:
        """Prepares that query, and finishes it, also if it fails."""
        ...


@runtime_checkable
class ProfilingBackend(Backend, Protocol):
    """A session whose engine tells how long the operators of a query took."""

    def profile(self, sql: str, ticket: str) -> QueryProfile: ...


class Server:
    """Accepts connections. Each has two threads: one answers, and runs the query itself; one waits
    for the client to hang up."""

    def __init__(self, backend: Backend, path: str) -> None:
        self._backend = backend
        self._path = path
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        mask = os.umask(0o177)  # from the first moment nobody else can use the socket
        try:
            self._listener.bind(path)
        finally:
            os.umask(mask)
        self._listener.listen(64)

    def start(self) -> None:
        threading.Thread(target=self._accept, name="accept", daemon=True).start()

    def stop(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path)
        self._listener.close()

    def _accept(self) -> None:
        for number in range(sys.maxsize):
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return  # closed by stop()
            threading.Thread(
                target=self._serve, args=(connection, f"atoll-{number}"), daemon=True
            ).start()

    def _serve(self, connection: socket.socket, name: str) -> None:
        running: list[str] = []  # the ticket of the request that is being answered
        with (
            connection,
            connection.makefile("rb") as lines,
            self._cancelling(connection, running),
            contextlib.suppress(ConnectionError),  # the client is gone
        ):
            number = 0
            while line := lines.readline(MAX_LINE_BYTES):
                number += 1
                running.append(f"{name}-{number}")
                try:
                    answer = self._answer(line, running[0])
                finally:
                    running.clear()
                connection.sendall(answer)

    @contextlib.contextmanager
    def _cancelling(self, connection: socket.socket, running: list[str]) -> Iterator[None]:
        """Cancels what runs inside once the client has hung up."""
        ended, end = socket.socketpair()

        def watch() -> None:
            poller = select.poll()
            poller.register(ended, select.POLLHUP)
            poller.register(connection, select.POLLRDHUP | select.POLLHUP | select.POLLERR)
            poller.poll()
            poller.unregister(connection)
            while True:
                for ticket in running[:]:
                    self._backend.cancel(ticket)
                if poller.poll(CANCEL_AGAIN_S * 1e3):
                    return

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            end.close()
            watcher.join()
            ended.close()

    def _answer(self, line: bytes, ticket: str) -> bytes:
        try:
            request = json.loads(line)
            sql = str(request["sql"]) if request["do"] in ("execute", "profile") else ""
            tasks: dict[str, Callable[[], bytes]] = {
                "instances": self._instances,
                "execute": lambda: self._execute(sql, ticket),
                "work": self._work,
                "profile": lambda: self._profile(sql, ticket),
                "scheduler": self._scheduler,
            }
            task = tasks[request["do"]]
        except (ValueError, TypeError, KeyError) as fault:
            return encode_error(f"not a request: {fault!r}")
        try:
            return task()
        except Exception as fault:  # the client receives any fault of the engine
            return encode_error(fault)

    def _execute(self, sql: str, ticket: str) -> bytes:
        backend = self._backend
        around = backend.around if isinstance(backend, PreparingBackend) else contextlib.nullcontext
        with around(ticket):
            began_s = time.monotonic()
            columns, rows = backend.run(sql, ticket)
            seconds = time.monotonic() - began_s
        backend.check()
        return encode_result(columns, rows, began_s=began_s, seconds=seconds, ticket=ticket)

    def _instances(self) -> bytes:
        return encode({"ok": True, "instances": self._backend.instances()})

    def _work(self) -> bytes:
        backend = self._backend
        work = backend.work() if isinstance(backend, CountingBackend) else {}
        dumped = {ticket: one.model_dump(mode="json") for ticket, one in work.items()}
        return encode({"ok": True, "work": dumped})

    def _profile(self, sql: str, ticket: str) -> bytes:
        backend = self._backend
        found = backend.profile(sql, ticket) if isinstance(backend, ProfilingBackend) else None
        return encode({"ok": True, "profile": found and found.model_dump(mode="json")})

    def _scheduler(self) -> bytes:
        if not isinstance(self._backend, ScheduledBackend):
            raise EngineFailed("the engine schedules its tasks itself")
        state = self._backend.scheduler()
        return encode({"ok": True, "scheduler": state.model_dump(mode="json")})


def sql_host_argv(backend: str, socket_path: str, config: str) -> tuple[str, ...]:
    """The command of a SQL host with that backend ('package.module:Class'). -P keeps the working
    folder off Python's path."""
    return (
        sys.executable,
        "-P",
        "-m",
        "atoll.engines.sql.host",
        f"--backend={backend}",
        f"--socket={socket_path}",
        f"--config={config}",
    )


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="atoll.engines.sql.host")
    parser.add_argument("--backend", required=True)
    parser.add_argument("--socket", required=True)
    parser.add_argument("--config", required=True)
    arguments = parser.parse_args(argv)
    module, _, kind = arguments.backend.partition(":")
    config = json.loads(Path(arguments.config).read_text(encoding="utf-8"))
    backend: Backend = getattr(importlib.import_module(module), kind)(config)
    stop = threading.Event()
    # Only from here on: before this, the default action must end a start that hangs.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    server = Server(backend, arguments.socket)
    server.start()
    stop.wait()
    server.stop()
    closing = threading.Thread(target=backend.close, daemon=True)
    closing.start()
    closing.join(STOP_LIMIT_S)
    sys.stderr.flush()
    os._exit(0)  # a query that cannot be cancelled must not keep the process alive


if __name__ == "__main__":
    main()
