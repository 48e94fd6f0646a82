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
_COUNT = _LAST - _FIRST + 1
# Prime to _COUNT: such steps, from anywhere, come to every port once. (A shuffle takes 20 ms.)
_STEP = 7919


def free_ports(count: int) -> tuple[int, ...]:
    """`count` different ports. Somebody may take one before the engine does: then start anew."""
    found: list[int] = []
    first = random.SystemRandom().randrange(_COUNT)
    for number in range(_COUNT):
        if len(found) == count:
            return tuple(found)
        port = _FIRST + (first + number * _STEP) % _COUNT
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue
        found.append(port)
    raise EngineFailed(f"no {count} free ports between {_FIRST} and {_LAST} on {LOOPBACK}")
