"""Finds TCP ports that are free now."""

from __future__ import annotations

import random
import socket
from collections.abc import Collection, Sequence

from atoll.errors import EngineFailed
from atoll.schema.plan import LOOPBACK

# Below the kernel's default range for outgoing connections (32768 and up). In that range, a client
# of any program could get the port before the engine binds it, and a probe could connect to itself.
_FIRST, _LAST = 20000, 32767
_COUNT = _LAST - _FIRST + 1
# Coprime to _COUNT, so that steps of this size reach every port once. (A shuffle takes 20 ms.)
_STEP = 7919


def free_ports(
    count: int, addresses: Sequence[str] = (), *, without: Collection[int] = ()
) -> tuple[int, ...]:
    """`count` different ports, free at each of the addresses; without any, on loopback. None of
    them is in `without`.

    If another program takes one before the engine does, the caller must start again. Raises
    EngineFailed.
    """
    where = addresses or (LOOPBACK,)
    found: list[int] = []
    first = random.SystemRandom().randrange(_COUNT)
    for number in range(_COUNT):
        if len(found) == count:
            return tuple(found)
        port = _FIRST + (first + number * _STEP) % _COUNT
        if port not in without and all(_is_free(address, port) for address in where):
            found.append(port)
    raise EngineFailed(
        f"fewer than {count} free ports between {_FIRST} and {_LAST} on {', '.join(where)}"
    )


def _is_free(address: str, port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((address, port))
        except OSError:
            return False
    return True
