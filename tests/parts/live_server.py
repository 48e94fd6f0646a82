"""A live server on loopback, in a thread of this process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from atoll.host.listening import listen
from atoll.live.server import File, LiveServer
from atoll.report.live_page import live_files
from atoll.schema.live import LiveView

TOKEN = "a-token-of-the-tests"


@dataclass(frozen=True)
class Served:
    port: int
    publish: Callable[[LiveView], None]
    open_streams: Callable[[], int]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/#token={TOKEN}"


@contextmanager
def served(
    pictures: bytes = b"{}", *, streams: int = 1000, stall_s: float = 30.0
) -> Iterator[Served]:
    listener = listen("127.0.0.1", 0)
    ready = threading.Event()
    loops: list[asyncio.AbstractEventLoop] = []
    made: list[LiveServer] = []
    ended = asyncio.Event()

    async def run() -> None:
        server = LiveServer(
            TOKEN,
            frozenset({"127.0.0.1", "localhost"}),
            {path: File(*file) for path, file in live_files().items()},
            lambda: pictures,
            streams=streams,
            stall_s=stall_s,
        )
        made.append(server)
        loops.append(asyncio.get_running_loop())
        serving = asyncio.create_task(server.serve(listener))
        ready.set()
        await ended.wait()
        serving.cancel()
        await asyncio.wait({serving})

    def publish(view: LiveView) -> None:
        async def publish_there() -> None:
            made[0].publish(view)

        asyncio.run_coroutine_threadsafe(publish_there(), loops[0]).result(60)

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    assert ready.wait(60)
    try:
        yield Served(
            listener.getsockname()[1],
            publish,
            lambda: made[0].open_streams,
        )
    finally:
        loops[0].call_soon_threadsafe(ended.set)
        thread.join()
