"""A coordinator in a few lines, which answers the client of Trino and Presto as a test says."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

STATS = {"state": "RUNNING"}


class Coordinator(ThreadingHTTPServer):
    """Gives its answers one by one and records the requests. After None it stays silent; a function
    is called for its answer."""

    daemon_threads = True

    def __init__(self, answers: Sequence[Any]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers = list(answers)
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.statements: list[str] = []
        self.over = threading.Event()
        self.silent: tuple[str, ...] = ()  # it does not answer these commands

    def heard(self, count: int) -> list[str]:
        """The requests, sorted, once there are `count`: several threads record them."""
        deadline = time.monotonic() + 30
        while len(self.asked) < count and time.monotonic() < deadline:
            time.sleep(0.01)
        return sorted(command for command, _ in self.asked)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Coordinator

    def do_GET(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        if sent := self.rfile.read(length).decode():
            self.server.statements.append(sent)
        self.server.asked.append((self.command, dict(self.headers)))
        is_silent = self.command in self.server.silent or not self.server.answers
        answer = None if is_silent else self.server.answers.pop(0)
        if answer is None:
            self.server.over.wait()
            return
        answer = answer() if callable(answer) else answer
        status, answer = answer if isinstance(answer, tuple) else (200, answer)
        body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_DELETE = do_GET  # noqa: N815 - http.server calls these names

    def log_message(self, *_: Any) -> None:
        return


@contextmanager
def coordinator(*answers: Any) -> Iterator[Coordinator]:
    server = Coordinator(answers)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.over.set()
        server.shutdown()
        server.server_close()


def page(server_url: str = "", **more: Any) -> dict[str, Any]:
    following = {"nextUri": f"{server_url}/v1/statement/x/1"} if server_url else {}
    return {"id": "q", "infoUri": "http://x", "stats": STATS, **following, **more}
