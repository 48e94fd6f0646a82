"""The server of the live view: who gets what, and what clients cannot do."""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from atoll.host.listening import allow_files
from tests.parts.live import live_view
from tests.parts.live_server import TOKEN, Served, served

PATIENCE_S = 60


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served() as made:
        made.publish(live_view(2))
        yield made


def ask(
    server: Served, path: str, *, method: str = "GET", **headers: str
) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
    given = {"Authorization": f"Bearer {TOKEN}"} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    connection.request(method, path, headers=given)
    return connection.getresponse()


def stream_request() -> bytes:
    lines = ("GET /events HTTP/1.1", "Host: localhost", f"Authorization: Bearer {TOKEN}")
    return "\r\n".join([*lines, "", ""]).encode()


def stream(server: Served) -> http.client.HTTPResponse:
    return ask(server, "/events")


def test_a_stream_sends_the_newest_view_at_once_and_then_each(server: Served) -> None:
    answer = stream(server)
    assert answer.status == 200
    assert answer.getheader("Content-Type") == "text/event-stream"
    first = json.loads(answer.readline().removeprefix(b"data: "))
    assert first["format"] == "atoll/live" and len(first["deployments"][0]["slots"]) == 2
    assert answer.readline() == b"\n"
    server.publish(live_view(3))
    second = json.loads(answer.readline().removeprefix(b"data: "))
    assert len(second["deployments"][0]["slots"]) == 3
    answer.close()


@pytest.mark.parametrize("path", ["/events", "/metrics", "/pictures"])
@pytest.mark.parametrize(
    "given", ["", "Bearer", "Bearer wrong", TOKEN, f"Basic {TOKEN}", "Bearer \xe9"]
)
def test_nothing_without_the_token(server: Served, path: str, given: str) -> None:
    answer = ask(server, path, Authorization=given)
    assert (answer.status, answer.getheader("WWW-Authenticate")) == (401, "Bearer")
    assert b"atoll/live" not in answer.read()


def test_the_name_of_the_scheme_has_no_case(server: Served) -> None:
    assert ask(server, "/metrics", Authorization=f"bearer {TOKEN}").status == 200


def test_the_token_is_not_taken_from_the_address(server: Served) -> None:
    assert ask(server, f"/metrics?token={TOKEN}", Authorization="").status == 401


@pytest.mark.parametrize("path", ["/", "/live.js", "/live.css"])
def test_the_page_has_no_secret_and_strict_headers(server: Served, path: str) -> None:
    answer = ask(server, path, Authorization="")
    body = answer.read()
    assert answer.status == 200 and TOKEN.encode() not in body and b"sea" not in body
    policy = answer.getheader("Content-Security-Policy", "")
    assert policy.startswith("default-src 'none'; ") and "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert answer.getheader("Access-Control-Allow-Origin") is None
    assert answer.getheader("Set-Cookie") is None
    assert answer.getheader("X-Content-Type-Options") == "nosniff"
    assert answer.getheader("Cache-Control") == "no-store"


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:1", 200),
        ("LOCALHOST", 200),
        ("evil.example", 421),
        ("127.0.0.1.evil.example:80", 421),
        ("", 421),
    ],
)
def test_a_foreign_name_of_this_machine_is_refused(server: Served, host: str, status: int) -> None:
    assert ask(server, "/", Host=host).status == status
    assert ask(server, "/metrics", Host=host).status == status


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE"])
def test_only_get_is_served(server: Served, method: str) -> None:
    answer = ask(server, "/events", method=method)
    assert (answer.status, answer.getheader("Allow")) == (405, "GET, HEAD")


def test_head_and_a_connection_that_is_used_again(server: Served) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
    for method in ("HEAD", "GET", "HEAD"):
        connection.request(method, "/")
        answer = connection.getresponse()
        assert answer.status == 200
        assert bool(answer.read()) == (method == "GET")
    connection.close()


@pytest.mark.parametrize(
    "request_",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01",  # TLS
        b"GET / HTTP/1.1\r\n\r\n",  # no Host
        b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * (16 << 10),
        b"GET /\r\n\r\n",
        b"\0" * 1000 + b"\r\n\r\n",
    ],
)
def test_what_is_no_request_gets_400_and_the_end(server: Served, request_: bytes) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S) as link:
        link.sendall(request_)
        link.shutdown(socket.SHUT_WR)
        said = b"".join(iter(lambda: link.recv(4096), b""))
    assert said.startswith((b"HTTP/1.1 400", b"HTTP/1.1 431")), said
    assert ask(server, "/metrics").status == 200


def test_one_stream_more_than_allowed_gets_503_until_one_ends() -> None:
    with served(streams=5) as server:
        server.publish(live_view(1))
        streams = [stream(server) for _ in range(5)]
        assert [one.status for one in streams] == [200] * 5
        refused = stream(server)
        assert (refused.status, refused.getheader("Retry-After")) == (503, "10")
        assert b"5 views are open" in refused.read()
        assert ask(server, "/metrics").status == 200, "Prometheus still gets its metrics"
        for one in streams:
            one.close()
        deadline = time.monotonic() + PATIENCE_S
        while stream(server).status != 200:
            assert time.monotonic() < deadline
            server.publish(live_view(1))  # a closed one is noticed when it is sent something


def test_1000_clients_all_get_each_view_and_the_next_is_refused() -> None:
    assert allow_files(2300) >= 2300
    with served() as server, ExitStack() as links:
        server.publish(live_view(1))
        streams = []
        for _ in range(1000):
            link = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S)
            links.enter_context(link)
            link.sendall(stream_request())
            streams.append(links.enter_context(link.makefile("rb")))
        for one in streams:
            while not one.readline().startswith(b"data: "):
                pass
        refused = stream(server)
        assert refused.status == 503 and b"1000 views are open" in refused.read()
        server.publish(live_view(2))
        for one in streams:
            while not (line := one.readline()).startswith(b"data: "):
                pass
            assert line.count(b'"slot":') == 2


def test_a_client_that_stalls_stops_nobody_and_is_dropped() -> None:
    large = live_view(2000)  # more than the kernel holds for a client
    with served(stall_s=5.0) as server:
        server.publish(large)
        with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S) as stalled:
            stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            stalled.sendall(stream_request())
            reads = stream(server)
            for _ in range(20):
                server.publish(large)  # returns, whatever the client does
                assert reads.readline().startswith(b"data: ")
                assert reads.readline() == b"\n"
            deadline = time.monotonic() + PATIENCE_S
            while server.open_streams() > 1:
                assert time.monotonic() < deadline, "it was not dropped"
                time.sleep(0.05)


def test_metrics_before_the_first_look_are_not_there_yet() -> None:
    with served() as server:
        assert ask(server, "/metrics").status == 503
