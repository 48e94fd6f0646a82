"""An ssh server in a thread, whose `atoll fleet remote` says what a test wants."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncssh
from pydantic import TypeAdapter

from atoll import __version__
from atoll.fleet.protocol import Hello, Keep, Kept, Message, Reply, Request, Time, line
from atoll.schema.fleet import Reach

Process = asyncssh.SSHServerProcess[bytes]
Program = Callable[[Process], Awaitable[None]]


class Said:
    """What a controller asked for, and whether it confirmed."""

    def __init__(self) -> None:
        self.commands: list[str | None] = []
        self.requests: list[Request] = []
        self.kept = 0


def say(process: Process, message: Message) -> None:
    process.stdout.write(line(message))


async def heard(process: Process) -> bytes:
    while not (line := (await process.stdin.readline()).strip()):
        assert not process.stdin.at_eof()
    return line


def answering(
    said: Said,
    *replies: Reply,
    version: str = __version__,
    ahead_s: float = 0,
    answer: Callable[[Request], Reply] = lambda _: ends(),
) -> Program:
    """An Atoll as it should be; its answers are `replies` in turn, then `answer`'s."""
    left = list(replies)

    async def program(process: Process) -> None:
        said.commands.append(process.command)
        say(process, Hello(atoll=version))
        request = TypeAdapter(Request).validate_json(await heard(process))
        said.requests.append(request)
        say(process, Time(unix_s=time.time() + ahead_s))
        reply = left.pop(0) if left else answer(request)
        say(process, reply)
        if request.confirm and not reply.exit_code:
            TypeAdapter(Keep).validate_json(await heard(process))
            said.kept += 1
            say(process, Kept())
        process.exit(0)

    return program


def ends(exit_code: int = 0, stdout: str = "", stderr: str = "") -> Reply:
    return Reply(exit_code=exit_code, stdout=stdout, stderr=stderr)


@contextmanager
def served(folder: Path, program: Program, *, name: str = "here") -> Iterator[Reach]:
    """How to reach the host; its keys lie in `folder`."""
    host_key = asyncssh.generate_private_key("ssh-ed25519")
    user_key = asyncssh.generate_private_key("ssh-ed25519")
    user_key.write_private_key(folder / "key")
    user_key.write_public_key(folder / "authorized_keys")
    (folder / "key").chmod(0o600)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def listen() -> asyncssh.SSHAcceptor:
        return await asyncssh.listen(
            "127.0.0.1",
            0,
            server_host_keys=[host_key],
            authorized_client_keys=str(folder / "authorized_keys"),
            process_factory=program,
            encoding=None,
        )

    acceptor = asyncio.run_coroutine_threadsafe(listen(), loop).result(30)
    try:
        port = acceptor.get_port()
        public = host_key.export_public_key().decode().split()[:2]
        (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {' '.join(public)}\n")
        yield Reach(
            name=name,
            address="127.0.0.1",
            port=port,
            user="somebody",
            key_file=str(folder / "key"),
            known_hosts=str(folder / "known_hosts"),
            atoll="/opt/my atoll/bin/atoll",
        )
    finally:
        asyncio.run_coroutine_threadsafe(_stop(acceptor), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()


async def _stop(acceptor: asyncssh.SSHAcceptor) -> None:
    acceptor.close()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
