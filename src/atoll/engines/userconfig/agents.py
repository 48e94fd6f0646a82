"""The agents and exporters in a user's JVM flags: each instance gets them, at a port of its own.

A flag may name the port at which it listens in four forms:

    -javaagent:JAR=9404:metrics.yaml, -javaagent:JAR=HOST:9404:metrics.yaml
    -javaagent:JAR=...,port=9404,...  and the same for -agentpath
    -Dcom.sun.management.jmxremote.port=9404

A flag whose `host` is another machine sends to it and stays as it is. A flag that listens at a port
that it does not name stays with the first instance only. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from atoll.engines.explained import Why
from atoll.engines.userconfig.pieces import Piece
from atoll.errors import UsageError

_LAST_PORT = 65535
_JMX = "com.sun.management.jmxremote"
_NAMES_PORT = re.compile(
    rf"(?P<head>-D(?:{re.escape(_JMX)}\.(?:rmi\.)?port|otel\.exporter\.prometheus\.port)=|"
    r"-javaagent:[^=]+=(?:(?:\[[^\]]*\]|[^:,=\[]*):)?|"
    r"-(?:javaagent|agentpath):[^=]+=(?:.*\b)?port=)"
    r"(?P<port>\d{2,5})(?P<tail>(?:[:,;].*)?)"
)
_HERE = r"0\.|127\.|localhost|\*|\[?::"
_SENDS = re.compile(rf"-(?:javaagent|agentpath):[^=]+=(?:.*[,;])?host=(?!{_HERE})")
_LISTENS = re.compile(
    rf"-javaagent:[^=]+=(?:.*[,;])?host=(?:{_HERE})"
    r"|-(?:javaagent|agentpath):[^=]+=(?:.*[,;])?(?:port|listen|address)="
)


AGENT = Why("each instance has its own port")


class Listener(NamedTuple):
    port: int
    where: str  # FILE:LINE
    is_jmx: bool = False  # JMX may use one port for its registry and its server


def port_of(flag: str) -> int | None:
    """The port at which the flag has the JVM listen, if it names one."""
    match = None if _SENDS.match(flag) else _NAMES_PORT.fullmatch(flag)
    return int(match["port"]) if match else None


def with_port(flag: str, port: int) -> str:
    """The flag, which names a port, with another port."""
    match = _NAMES_PORT.fullmatch(flag)
    assert match is not None
    return f"{match['head']}{port}{match['tail']}"


def hides_port(flag: str) -> bool:
    """Whether the flag has the JVM listen at a port that it does not name."""
    if port_of(flag) is not None or _SENDS.match(flag):
        return False
    return _LISTENS.match(flag) is not None


def is_agent(flag: str) -> bool:
    return port_of(flag) is not None or hides_port(flag)


def why_changed(flag: str) -> str:
    """Why not every instance has this agent as it is; empty for other flags."""
    if port_of(flag) is not None:
        return AGENT.text
    return "it names no port, so only one instance can have it" if hides_port(flag) else ""


def listeners(flags: Iterable[tuple[str, str]]) -> list[Listener]:
    """`flags`: (FILE:LINE, flag) of one JVM."""
    return [
        Listener(port, where, is_jmx=flag.startswith(f"-D{_JMX}"))
        for where, flag in flags
        if (port := port_of(flag)) is not None
    ]


def refuse_shared(found: Iterable[Listener]) -> None:
    """Raises UsageError if two agents of one JVM listen at the same port."""
    seen: dict[int, Listener] = {}
    for one in found:
        other = seen.setdefault(one.port, one)
        if other is not one and not (one.is_jmx and other.is_jmx):
            raise UsageError(
                f"{one.where}: port {one.port} is already the port of an agent in {other.where}; "
                "give each its own"
            )


def deal_ports(
    found: Sequence[Listener], instances: int, taken: Collection[int]
) -> list[dict[int, int]]:
    """For each instance, the user's ports with those that it gets: the user's own for the first,
    the next ones up for the others. Leaves out `taken`. Raises UsageError if no port is left."""
    used = set(taken)
    wanted = {one.port: one.where for one in found}
    last = {port: port - 1 for port in wanted}
    dealt: list[dict[int, int]] = []
    for _ in range(instances):
        own = {}
        for port, where in wanted.items():
            free = last[port] + 1
            while free in used:
                free += 1
            if free > _LAST_PORT:
                raise UsageError(
                    f"{where}: {instances} instances need a port each from {port} on, and there "
                    f"are not enough below {_LAST_PORT}; give a lower one"
                )
            used.add(free)
            last[port] = own[port] = free
        dealt.append(own)
    return dealt


def for_instance(flags: Iterable[str], ports: Mapping[int, int], *, is_first: bool) -> list[str]:
    """The flags of one instance: with its ports, and without those that only the first gets."""
    return [
        flag if (port := port_of(flag)) is None else with_port(flag, ports[port])
        for flag in flags
        if is_first or not hides_port(flag)
    ]


def text_for_instance(pieces: Iterable[Piece], ports: Mapping[int, int], *, is_first: bool) -> str:
    """As `for_instance`, for a file with one flag per line."""
    texts = []
    for piece in pieces:
        kept = for_instance([piece.value], ports, is_first=is_first)
        if kept == [piece.value]:
            texts.append(piece.raw)
        elif kept:
            texts.append(f"{piece.head}{kept[0]}{piece.tail}")
    return "".join(texts)
