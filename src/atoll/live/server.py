"""Serves the live view over HTTP/1.1: a page, its stream of events, metrics.

h11 speaks the protocol; this module has the sockets and the rules:

- All but the page itself, which has no secrets, needs the token, as `Authorization: Bearer`. A page
  of another origin cannot send that header without a preflight, which is refused. There are no
  cookies: a browser would send them to every port of this machine.
- The Host header must name an address that is served, whatever the port (ssh -L changes it). So a
  foreign name that resolves to this machine (DNS rebinding) is refused.
- A client gets the newest event once it has taken the one before. A slow one misses events, one
  that takes nothing is dropped, and nobody waits for either.
- The numbers of streams and of connections are bounded. Beyond, a stream gets 503, and the oldest
  connection that has not given the token ends in favour of a new one. So nobody without the token
  can keep others out, or use up this process's files.
"""

from __future__ import annotations

import asyncio
import hmac
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import NamedTuple

import h11

from atoll.live.metrics import CONTENT_TYPE, open_metrics
from atoll.schema.live import LiveView

STREAMS = 1000
_MORE_CONNECTIONS = 64  # for pages and metrics
REQUEST_S = 10.0  # a client has this long for a request
_ACCEPT_AGAIN_S = 1.0
STALL_S = 30.0  # and this long to take an event
_MOST_HEADER_BYTES = 16 << 10
_READ_BYTES = 16 << 10
_HEADERS = (
    (
        "Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("Cache-Control", "no-store"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
)


class File(NamedTuple):
    content_type: str
    body: bytes


class _Refused(Exception):
    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status, self.why = status, why


class LiveServer:
    """`files`: the page, by path, without a token. `pictures`: JSON of the plans' pictures, asked
    in a thread. `hosts`: names and addresses that clients may use, without a port."""

    def __init__(
        self,
        token: str,
        hosts: frozenset[str],
        files: Mapping[str, File],
        pictures: Callable[[], bytes],
        *,
        streams: int = STREAMS,
        stall_s: float = STALL_S,
    ) -> None:
        self._token, self._hosts, self._files, self._pictures = token, hosts, files, pictures
        self._most_streams, self._stall_s = streams, stall_s
        self.open_streams = 0
        self._tasks: set[asyncio.Task[None]] = set()  # one for each connection
        self._strangers: dict[asyncio.Task[None], None] = {}  # those without the token, in order
        self._view: LiveView | None = None
        self._event, self._published_s = b"", 0.0
        self._news = asyncio.Event()

    def publish(self, view: LiveView) -> None:
        """Make this the newest view. Never waits for a client."""
        self._view, self._event = view, f"data: {view.model_dump_json()}\n\n".encode()
        self._published_s = asyncio.get_running_loop().time()
        self._news.set()
        self._news = asyncio.Event()

    async def serve(self, listener: socket.socket) -> None:
        """Serve all clients until this is cancelled."""
        loop = asyncio.get_running_loop()
        try:
            with listener:
                while True:
                    await self._make_room()
                    try:
                        link, _ = await loop.sock_accept(listener)
                    except OSError:  # the machine has no more files or memory
                        await asyncio.sleep(_ACCEPT_AGAIN_S)
                        continue
                    task = loop.create_task(self._connected(link))
                    self._tasks.add(task)
                    self._strangers[task] = None
                    task.add_done_callback(self._ended)
                    await asyncio.sleep(0)  # it begins; else it could be ended with its link open
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _make_room(self) -> None:
        while len(self._tasks) >= self._most_streams + _MORE_CONNECTIONS:
            awaited = self._tasks
            if self._strangers:
                oldest = next(iter(self._strangers))
                oldest.cancel()
                awaited = {oldest}
            await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._strangers.pop(task, None)

    async def _connected(self, link: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=link)
        # An event is sent only when the one before has left.
        writer.transport.set_write_buffer_limits(high=0)
        client = _Client(reader, writer, self._stall_s)
        try:
            while await self._serve(client):
                pass
        except (OSError, TimeoutError, h11.ProtocolError):
            return  # the client is gone, too slow, or speaks no HTTP
        finally:
            writer.transport.abort()

    async def _serve(self, client: _Client) -> bool:
        """Answer one request; whether another may follow."""
        try:
            request = await client.request()
            if request is None:
                return False
            await self._answer(client, request)
        except _Refused as refused:
            await client.refuse(refused)
        except h11.RemoteProtocolError as fault:
            await client.refuse(_Refused(fault.error_status_hint, "not a request that this reads"))
            return False
        return client.next_request()

    async def _answer(self, client: _Client, request: h11.Request) -> None:
        headers = {name.decode(): value.decode("latin-1") for name, value in request.headers}
        if _without_port(headers.get("host", "")) not in self._hosts:
            raise _Refused(421, "this server has another name; use the address that it printed")
        if request.method not in (b"GET", b"HEAD"):
            raise _Refused(405, "only GET is served")
        path = request.target.decode("latin-1").partition("?")[0]
        if path in self._files:
            await client.respond(*self._files[path])
            return
        routes: dict[str, Callable[[_Client], Awaitable[None]]] = {
            "/events": self._stream,
            "/metrics": self._metrics,
            "/pictures": self._send_pictures,
        }
        if path not in routes:
            raise _Refused(404, "there is no such page")
        scheme, _, given = headers.get("authorization", "").partition(" ")
        same = hmac.compare_digest(given.strip().encode(), self._token.encode())
        if not same or scheme.lower() != "bearer":
            raise _Refused(401, "the token is missing or wrong; open the URL that was printed")
        task = asyncio.current_task()
        assert task is not None
        self._strangers.pop(task, None)
        await routes[path](client)

    async def _metrics(self, client: _Client) -> None:
        if self._view is None:
            raise _Refused(503, "the first look is not over; try again later")
        age_s = asyncio.get_running_loop().time() - self._published_s
        await client.respond(CONTENT_TYPE, open_metrics(self._view, age_s).encode())

    async def _send_pictures(self, client: _Client) -> None:
        await client.respond("application/json", await asyncio.to_thread(self._pictures))

    async def _stream(self, client: _Client) -> None:
        if self.open_streams >= self._most_streams:
            raise _Refused(503, f"{self._most_streams} views are open; close one, or try later")
        self.open_streams += 1
        try:
            await client.begin(200, "text/event-stream")
            while True:
                news = self._news
                if self._event:
                    await client.send(self._event)
                await news.wait()
        finally:
            self.open_streams -= 1


class _Client:
    """One connection: h11's state, and what goes over it. Each wait has an end."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, stall_s: float
    ) -> None:
        self._reader, self._writer, self._stall_s = reader, writer, stall_s
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=_MOST_HEADER_BYTES)
        self._head = False

    async def request(self, timeout_s: float = REQUEST_S) -> h11.Request | None:
        """The next request, its body (a GET has none) left alone; None if the client is gone."""
        async with asyncio.timeout(timeout_s):
            while True:
                event = self._http.next_event()
                if isinstance(event, h11.Request):
                    self._head = event.method == b"HEAD"
                    return event
                if event is not h11.NEED_DATA:
                    return None
                self._http.receive_data(await self._reader.read(_READ_BYTES))

    def next_request(self) -> bool:
        """Whether the connection goes on after an answer."""
        if self._http.our_state is not h11.DONE:
            return False
        with suppress(h11.RemoteProtocolError):
            if isinstance(self._http.next_event(), h11.EndOfMessage):
                self._http.start_next_cycle()
                return True
        return False

    async def respond(
        self, content_type: str, body: bytes, *, status: int = 200, more: tuple[str, ...] = ()
    ) -> None:
        await self.begin(status, content_type, len(body), more)
        await self.send(b"" if self._head else body)
        await self._write(self._http.send(h11.EndOfMessage()))

    async def refuse(self, refused: _Refused) -> None:
        if self._http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return
        body = f"atoll: {refused.why}\n".encode()
        more = {401: ("WWW-Authenticate: Bearer",), 405: ("Allow: GET, HEAD",)}
        retry = ("Retry-After: 10",) if refused.status == 503 else ()
        await self.respond(
            "text/plain; charset=utf-8",
            body,
            status=refused.status,
            more=more.get(refused.status, retry),
        )

    async def begin(
        self, status: int, content_type: str, size: int | None = None, more: tuple[str, ...] = ()
    ) -> None:
        headers = [("Content-Type", content_type), *_HEADERS]
        headers += [] if size is None else [("Content-Length", str(size))]
        for line in more:
            name, _, value = line.partition(": ")
            headers.append((name, value))
        await self._write(self._http.send(h11.Response(status_code=status, headers=headers)))

    async def send(self, data: bytes) -> None:
        await self._write(self._http.send(h11.Data(data=data)))

    async def _write(self, data: bytes | None) -> None:
        self._writer.write(data or b"")
        async with asyncio.timeout(self._stall_s):
            await self._writer.drain()


def _without_port(host: str) -> str:
    """'[::1]:80' is '[::1]'."""
    name, _, port = host.rpartition(":")
    return name.lower() if name and port.isdigit() else host.lower()
