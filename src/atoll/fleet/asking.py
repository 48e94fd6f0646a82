"""Asks all hosts at once, and turns what each answers into a HostAnswer.

A fault of one host never keeps the others from being asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from signal import SIGKILL

from atoll.errors import EXIT_INTERNAL, AtollError
from atoll.fleet.connection import Link, connected
from atoll.fleet.protocol import Reply, Request
from atoll.schema.fleet import Reach
from atoll.schema.fleet_answers import Clock, HostAnswer
from atoll.schema.text import first_line, first_of, one_line, plural, printable

Tell = Callable[[str], None]
Facts = dict[str, str | int | float | None]

CLOCK_BOUND_S = 1.0  # times of files and results are compared in seconds
LIMIT_S = 120.0  # of a command that only looks
_AT_ONCE = 64
_MOST_NAMED = 5
_MOST_WARNINGS = 20
_LONGEST_FACT = 100
_COMPLAINT, _WARNING = "atoll: ", "atoll: warning: "


class Refused(AtollError):
    """The command failed on the host, with this exit code and these words."""

    def __init__(self, exit_code: int, words: str) -> None:
        super().__init__(words)
        self.exit_code = exit_code


@dataclass
class Task:
    """What one host is asked. Its answers fill `facts` and `warnings`."""

    link: Link
    facts: Facts = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    async def run(
        self,
        *argv: str,
        results: str | None = None,
        limit_s: float | None = LIMIT_S,
        also: Collection[int] = (),
    ) -> Reply:
        """Run `atoll ARGV` there; the rest is as in `Request`. Raises Refused unless it ends with 0
        or a code of `also`."""
        request = Request(argv=argv, results=results, limit_s=limit_s)
        return self.take(await self._ask(request), also)

    async def start(
        self, deployment: str, *argv: str, document: str | None, secret: str | None
    ) -> None:
        """Run the `atoll up` of `argv`, which takes as long as it allows itself. Raises Refused."""
        request = Request(argv=argv, document=document, secret=secret, confirm=deployment)
        self.take(await self._ask(request))

    async def _ask(self, request: Request) -> Reply:
        reply = await self.link.ask(request)
        for line in reply.stderr.splitlines():
            if line.startswith(_WARNING):
                self.warnings.append(first_line(line.removeprefix(_WARNING)))
        return reply

    def take(self, reply: Reply, also: Collection[int] = ()) -> Reply:
        """Raises Refused unless it ended with 0 or a code of `also`."""
        if not reply.exit_code or reply.exit_code in also:
            return reply
        if reply.exit_code < 0:
            words = f"signal {-reply.exit_code} ended it there"
            words += "; see in dmesg whether memory ran out" if reply.exit_code == -SIGKILL else ""
        else:
            lines = [line for line in reply.stderr.splitlines() if line.strip()]
            words = first_line("".join(lines[-1:])).removeprefix(_COMPLAINT)
        raise Refused(_exit_code(reply.exit_code), words)


def ask_all(
    hosts: Sequence[Reach],
    doing: str,
    work: Callable[[Task], Awaitable[None]],
    tell: Tell,
    on_fault: Callable[[], None] = lambda: None,
) -> tuple[HostAnswer, ...]:
    """`work` for every host at once, in the order of `hosts`. `on_fault` is called for each that
    failed or could not be connected, while others may still work."""
    waiting = [host.name for host in hosts]

    def report() -> None:
        if waiting:
            done = len(hosts) - len(waiting)
            tell(
                f"{doing}: {done} of {plural(len(hosts), 'host')} done; waiting for "
                f"{first_of(waiting, _MOST_NAMED)}"
            )

    async def one(host: Reach, room: asyncio.Semaphore) -> HostAnswer:
        async with room:
            answer = await _asked(host, work)
        if answer.exit_code:
            on_fault()
        waiting.remove(host.name)
        report()
        return answer

    async def everyone() -> list[HostAnswer]:
        # Names are looked up in threads; one that hangs must not keep the others waiting.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_AT_ONCE))
        room = asyncio.Semaphore(_AT_ONCE)
        return await asyncio.gather(*(one(host, room) for host in hosts))

    report()
    return tuple(asyncio.run(everyone()))


async def _asked(host: Reach, work: Callable[[Task], Awaitable[None]]) -> HostAnswer:
    answer = HostAnswer(host=host.name, address=host.address, exit_code=0, facts={})
    task = None
    try:
        async with connected(host) as link:
            task = Task(link)
            await work(task)
    except AtollError as fault:
        wrong = {"exit_code": fault.exit_code, "error": one_line(str(fault))}
        answer = answer.model_copy(update=wrong)
    if task is None:
        return answer
    clock = task.link.clock
    warnings = (*task.warnings[:_MOST_WARNINGS], *_clock_warning(clock))
    facts = {name: _presentable(value) for name, value in task.facts.items()}
    return answer.model_copy(update={"clock": clock, "warnings": warnings, "facts": facts})


def _presentable(value: str | int | float | None) -> str | int | float | None:
    """Hosts may send characters that control a terminal, infinite numbers, and long texts."""
    if isinstance(value, str):
        return printable(value[:_LONGEST_FACT])
    return value if value is None or abs(value) < 2**63 else None


def _clock_warning(clock: Clock | None) -> tuple[str, ...]:
    if clock is None or abs(clock.offset_s) - clock.error_s <= CLOCK_BOUND_S:
        return ()
    way = "ahead of" if clock.offset_s > 0 else "behind"
    return (
        f"its clock is {abs(clock.offset_s):.1f} s {way} this machine's; run an NTP client there, "
        "or times in files cannot be compared",
    )


def _exit_code(code: int) -> int:
    """A signal ended the command (negative), or a host made a number up."""
    return code if 0 < code < 256 else EXIT_INTERNAL
