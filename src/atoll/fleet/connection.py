"""One host over ssh (asyncssh), for as long as a command needs it.

The host's key is always checked against the inventory's known_hosts; no key is ever accepted
because it is the first. ssh's own configuration file is not read, so the inventory says all. The
one text that reaches a shell on the host is the quoted path of `atoll` there.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

import asyncssh
from pydantic import TypeAdapter, ValidationError

from atoll import __version__
from atoll.errors import AtollError, CheckFailed, NotPermitted, UsageError
from atoll.fleet.protocol import (
    BEAT_S,
    LARGEST_ANSWER,
    LARGEST_LINE,
    SILENCE_S,
    Hello,
    Keep,
    Kept,
    Message,
    Reply,
    Request,
    Time,
    line,
)
from atoll.schema.fleet import Reach
from atoll.schema.fleet_answers import Clock
from atoll.schema.text import first_line, printable

CONNECT_S = 10.0
_SSH_PORT = 22
_KEEPALIVES = 3
_CHUNK = 1 << 16
_LAST_UNIX_S = 2**33  # in the year 2242
_LAST_WORDS = 4096
# Exit codes: the shell finds no program or may not run it; an Atoll does not know `fleet`.
_NO_PROGRAM = (127, 126, UsageError.exit_code)

M = TypeVar("M", bound=Message)


class HostLost(CheckFailed):
    """A host that cannot be reached, has stopped answering, or answers what Atoll never does.
    What runs there is unknown."""


class _Client(asyncssh.SSHClient):
    """Remembers the key that a host presented and that known_hosts does not have, and whether it
    has others for that host."""

    known = asyncssh.SSHKnownHosts()
    presented = algorithm = ""
    has_others = False

    def validate_host_public_key(
        self,
        host: str,
        addr: str,
        port: int,
        key: asyncssh.SSHKey,
    ) -> bool:
        self.algorithm = key.get_algorithm()
        self.presented = f"{self.algorithm} {key.get_fingerprint()}"
        self.has_others = bool(self.known.match(host, addr, None if port == _SSH_PORT else port)[0])
        return False


class Link:
    """A host that is connected, and its clock once it was asked something."""

    def __init__(self, reach: Reach, connection: asyncssh.SSHClientConnection) -> None:
        self.reach = reach
        self.clock: Clock | None = None
        self._connection = connection

    async def ask(self, request: Request) -> Reply:
        """Run one command of Atoll there.

        Raises HostLost, and UsageError if the host's Atoll is missing or of another version.
        """
        limit_s = None if request.limit_s is None else request.limit_s + 2 * SILENCE_S
        try:
            async with asyncio.timeout(limit_s) as whole:
                return await self._converse(request)
        except TimeoutError:
            over_s = limit_s if whole.expired() else None
            raise HostLost(_silent(over_s or SILENCE_S)) from None
        except (asyncssh.Error, OSError) as fault:
            raise HostLost(f"the connection broke ({_reason(fault)}); {_AGAIN}") from None

    async def _converse(self, request: Request) -> Reply:
        command = shlex.join([self.reach.atoll, "fleet", "remote"])
        process = await self._connection.create_process(command, encoding=None)
        host = _Lines(process, LARGEST_LINE if request.results else LARGEST_ANSWER)
        words = asyncio.create_task(_last_words(process.stderr))
        beats = asyncio.create_task(_beat(process))
        try:
            hello = await host.hear(Hello)
            if hello.atoll != __version__:
                raise UsageError(
                    f"has Atoll {printable(hello.atoll)[:40]}, and this is Atoll {__version__}; "
                    "install the same version on both"
                )
            sent_s, began_s = time.time(), time.monotonic()
            host.say(request)
            heard = await host.hear(Time)
            took_s = time.monotonic() - began_s
            if not 0 <= heard.unix_s < _LAST_UNIX_S:
                raise HostLost(f"its clock says {heard.unix_s:g} s since 1970; set it")
            self.clock = Clock(
                offset_s=round(heard.unix_s - sent_s - took_s / 2, 6), error_s=round(took_s / 2, 6)
            )
            reply = await host.hear(Reply)
            if request.confirm and not reply.exit_code:
                host.say(Keep())
                await host.hear(Kept)
            return reply
        except EOFError:
            raise await self._ended(process, words) from None
        finally:
            beats.cancel()
            words.cancel()
            process.close()

    async def _ended(
        self, process: asyncssh.SSHClientProcess[bytes], words: asyncio.Task[str]
    ) -> AtollError:
        """Why the program there ended without an answer."""
        said = ""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SILENCE_S):
                said = await words
                await process.wait_closed()
        said = f" ({first_line(said)})" if said.strip() else ""
        if process.exit_status in _NO_PROGRAM:
            return UsageError(
                f"no Atoll {__version__} at {self.reach.atoll!r} there{said}; install it there, or "
                "give the program's path as 'atoll' in the inventory"
            )
        return HostLost(f"'atoll fleet remote' ended there without an answer{said}; {_AGAIN}")


class _Lines:
    """Lines of JSON from and to a process; a line of the host's is at most `most` bytes."""

    def __init__(self, process: asyncssh.SSHClientProcess[bytes], most: int) -> None:
        self._process, self._most = process, most
        self._rest = b""

    def say(self, message: Message) -> None:
        self._process.stdin.write(line(message))

    async def hear(self, kind: type[M]) -> M:
        """The next line that is not empty. Raises EOFError, TimeoutError, HostLost."""
        while not (heard := await self._line()):
            pass
        try:
            return TypeAdapter(kind).validate_json(heard)
        except ValidationError:
            raise HostLost(
                f"it says {first_line(heard[:400].decode(errors='replace'))!r}, which is not an "
                "answer of Atoll; see that the login shell there prints nothing"
            ) from None

    async def _line(self) -> bytes:
        parts, size = [self._rest], len(self._rest)
        while b"\n" not in parts[-1]:
            # Not wait_for, which in Python 3.11 may swallow the end of the command's own limit.
            async with asyncio.timeout(SILENCE_S):
                data = await self._process.stdout.read(_CHUNK)
            if not data:
                raise EOFError
            parts.append(data)
            size += len(data)
            if size > self._most:
                raise HostLost(f"its answer is larger than {self._most >> 20} MiB; not read")
        whole, _, rest = b"".join(parts).partition(b"\n")
        self._rest = rest.lstrip(b"\n")
        return whole


@asynccontextmanager
async def connected(reach: Reach) -> AsyncIterator[Link]:
    """Connect within CONNECT_S; the connection ends with the block.

    Raises HostLost, UsageError for a host key or known_hosts that does not fit, NotPermitted if the
    host refuses the user's key.
    """
    client = _Client()
    try:
        connection = await _connect(reach, client)
    except AtollError:
        raise
    except asyncssh.HostKeyNotVerifiable as fault:
        raise UsageError(_unknown_key(reach, client, str(fault))) from None
    except asyncssh.PermissionDenied:
        raise NotPermitted(
            f"refuses the key of user {reach.user}; append the public key to "
            f"~{reach.user}/.ssh/authorized_keys there"
        ) from None
    except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError) as fault:
        raise UsageError(
            f"a key in ~/.ssh cannot be used ({first_line(str(fault))}); name the key for this "
            "host as key_file"
        ) from None
    except TimeoutError:
        raise HostLost(_silent(CONNECT_S)) from None
    except (asyncssh.Error, OSError) as fault:
        raise HostLost(f"cannot be reached ({_reason(fault)}); {_AGAIN}") from None
    try:
        yield Link(reach, connection)
    finally:
        connection.abort()  # without waiting for a host that may hang


async def _connect(reach: Reach, client: _Client) -> asyncssh.SSHClientConnection:
    try:
        client.known = asyncssh.read_known_hosts(reach.known_hosts)
    except (OSError, ValueError) as fault:
        why = getattr(fault, "strerror", None) or first_line(str(fault))
        advice = "correct or replace the file"
        if isinstance(fault, FileNotFoundError):
            advice = _add_key(reach)
        raise UsageError(
            f"known_hosts file {reach.known_hosts} cannot be read ({why}); {advice}"
        ) from None
    try:
        keys = () if reach.key_file is None else [asyncssh.read_private_key(reach.key_file)]
    except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError, OSError) as fault:
        raise UsageError(
            f"key file {reach.key_file} cannot be used ({first_line(str(fault))}); if it has a "
            "passphrase, add it with ssh-add and leave key_file out"
        ) from None
    async with asyncio.timeout(CONNECT_S):
        return await asyncssh.connect(
            reach.address,
            reach.port,
            config=None,
            username=reach.user,
            client_keys=keys,
            agent_path=() if reach.key_file is None else None,
            known_hosts=client.known,
            client_factory=lambda: client,
            preferred_auth=["publickey"],
            disable_trivial_auth=True,
            keepalive_interval=BEAT_S,
            keepalive_count_max=_KEEPALIVES,
        )


async def _beat(process: asyncssh.SSHClientProcess[bytes]) -> None:
    with contextlib.suppress(asyncssh.Error, OSError):  # who reads notices, too
        while True:
            await asyncio.sleep(BEAT_S)
            process.stdin.write(b"\n")


async def _last_words(stderr: asyncssh.SSHReader[bytes]) -> str:
    """The beginning of what a process says on stderr, of which all is read."""
    kept = b""
    with contextlib.suppress(asyncssh.Error, OSError):
        while data := await stderr.read(_CHUNK):
            kept = (kept + data)[:_LAST_WORDS]
    return kept.decode(errors="replace")


_AGAIN = "see that the machine and its sshd are up, then run the command again"


def _silent(seconds: float) -> str:
    return f"no answer within {seconds:g} s; {_AGAIN}"


def _reason(fault: Exception) -> str:
    if isinstance(fault, socket.gaierror):
        return "no machine has this address"
    if isinstance(fault, OSError) and fault.errno:
        return os.strerror(fault.errno)  # asyncio gives some of these words of its own
    return first_line(str(fault)) if str(fault) else type(fault).__name__


def _unknown_key(reach: Reach, client: _Client, reason: str) -> str:
    if not client.presented:
        return (
            f"its host key is refused ({first_line(reason)}); give the machine a new host key, or "
            f"correct {reach.known_hosts}"
        )
    if not client.has_others:
        return (
            f"presents the key {client.presented}, which {reach.known_hosts} does not have for "
            f"it; {_add_key(reach, client.algorithm)}"
        )
    name = reach.address if reach.port == _SSH_PORT else f"[{reach.address}]:{reach.port}"
    remove = shlex.join(["ssh-keygen", "-f", reach.known_hosts, "-R", name])
    return (
        f"presents the key {client.presented}, but {reach.known_hosts} has another one for it: "
        "the machine was installed again, or another one answers in its place; "
        f"{_add_key(reach, client.algorithm, f'{remove} && ')}"
    )


def _add_key(reach: Reach, algorithm: str = "", first: str = "") -> str:
    kind = next((kind for kind in ("ecdsa", "rsa") if kind in algorithm), "ed25519")
    scan = f"ssh-keyscan -p {reach.port} -t {kind} {reach.address}"
    return (
        f"compare the host's key with 'ssh-keygen -lf /etc/ssh/ssh_host_{kind}_key.pub' on the "
        f"machine's console; if they are the same, run: {first}{scan} >> "
        f"{shlex.quote(reach.known_hosts)}"
    )
