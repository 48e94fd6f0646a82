"""Loopback TCP ports that nobody has right now."""

from __future__ import annotations

import random
import socket

from atoll.errors import EngineFailed

LOOPBACK = "127.0.0.1"
# Below the kernel's default range for outgoing connections (32768 and up): there, a client of
# any program could be given the port before the engine binds it, and a probe could connect
# to itself.
_FIRST, _LAST = 20000, 32767


def free_ports(count: int) -> tuple[int, ...]:
    """`count` different ports. Somebody may take one before the engine does: then start anew."""
    found: list[int] = []
    for port in random.SystemRandom().sample(range(_FIRST, _LAST + 1), _LAST - _FIRST + 1):
        if len(found) == count:
            return tuple(found)
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue
        found.append(port)
    raise EngineFailed(f"no {count} free ports between {_FIRST} and {_LAST} on {LOOPBACK}")
