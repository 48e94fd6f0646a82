"""The client of Trino and Presto before a coordinator of a few lines that answers as it is told."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from atoll.engines.trino_address import parse_url
from atoll.engines.trino_client import TrinoClient, connect_all, reach
from atoll.errors import EngineFailed

STATS = {"state": "RUNNING"}


class Coordinator(ThreadingHTTPServer):
    """Gives its answers one by one, and notes what it was asked. None: it says nothing more."""

    daemon_threads = True

    def __init__(self, answers: Sequence[Any]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers = list(answers)
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.over = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Coordinator

    def do_GET(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        self.rfile.read(length)
        self.server.asked.append((self.command, dict(self.headers)))
        answer = self.server.answers.pop(0) if self.server.answers else None
        if answer is None:
            self.server.over.wait()
            return
        body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_DELETE = do_GET  # noqa: N815 - names that http.server wants

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


@pytest.mark.parametrize("header", ["Trino", "Presto"])
def test_requests_carry_the_headers_of_the_engine(header: str) -> None:
    answer = page(columns=[{"name": "n", "type": "decimal(3, 2)"}], data=[["1.50"]])
    with coordinator(answer) as server:
        client = TrinoClient(parse_url(f"{server.url}/cat/sch"), header=header)
        result = client.execute("select 1.50", timeout_s=30)
        client.close()
        ((_, heard),) = server.asked
    assert result.rows == [(Decimal("1.50"),)]
    assert (heard[f"X-{header}-Catalog"], heard[f"X-{header}-Schema"]) == ("cat", "sch")
    other = {"Trino": "Presto", "Presto": "Trino"}[header]
    assert not [name for name in heard if name.startswith(f"X-{other}-")]


def test_a_server_that_hangs_is_left_after_the_limit() -> None:
    with coordinator() as server:
        client = TrinoClient(parse_url(server.url))
        answer = page(server.url)
        server.answers.append(answer)
        with pytest.raises(EngineFailed, match=r"no answer within 0\.5 s; the query was cancelled"):
            client.execute("select 1", timeout_s=0.5)
        assert [command for command, _ in server.asked] == ["POST", "GET", "DELETE"]
        with pytest.raises(EngineFailed, match="was closed"):
            client.execute("select 1", timeout_s=5)


@pytest.mark.parametrize("answer", [b"<html>", b"{}", b"", page(data=[["x"]], columns=[{}])])
def test_what_is_no_trino_is_told_in_one_line(answer: Any) -> None:
    with coordinator(answer) as server:
        with pytest.raises(EngineFailed, match=server.url) as caught:
            reach(server.url, timeout_s=5)
        assert "\n" not in str(caught.value)


def test_a_refused_query_keeps_the_connection() -> None:
    refusal = page(error={"message": "line 1:8: no\nmore", "errorType": "USER_ERROR"})
    answer = page(columns=[{"name": "n", "type": "integer"}], data=[[1]])
    with coordinator(refusal, answer) as server:
        client = TrinoClient(parse_url(server.url))
        with pytest.raises(EngineFailed, match=r"^line 1:8: no$"):
            client.execute("select frob", timeout_s=30)
        assert client.execute("select 1", timeout_s=30).rows == [(1,)]
        client.close()


def test_a_server_that_is_starting_is_not_asked() -> None:
    with coordinator({"starting": True}) as server:
        with pytest.raises(EngineFailed, match="still starting"):
            connect_all([server.url], timeout_s=30)
        assert [command for command, _ in server.asked] == ["GET"]
