"""Finds TCP ports that are free now, and who holds one that is not."""

from __future__ import annotations

import random
import socket
from collections.abc import Collection, Sequence

from atoll.errors import EngineFailed, NotPermitted, PortTaken
from atoll.host.api import Host
from atoll.schema.plan import LOOPBACK
from atoll.schema.text import printable

LAST_PORT = 65535
_LOWEST = "/proc/sys/net/ipv4/ip_unprivileged_port_start"

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


def refuse_taken(port: int, addresses: Sequence[str], host: Host) -> None:
    """Raises PortTaken naming the process that holds the port at one of the addresses (without any,
    on loopback), and NotPermitted if this user may not open it."""
    for address in addresses or (LOOPBACK,):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            # Connections of a server that has ended do not hold its port.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((address, port))
            except PermissionError:
                lowest = host.read_text(_LOWEST).strip()
                raise NotPermitted(
                    f"port {port}: this user may not open ports below {lowest}; give a higher one "
                    "with --port"
                ) from None
            except OSError:
                raise PortTaken(
                    f"port {port} is in use{_by_whom(address, port, host)}; stop that process, or "
                    "give another one with --port"
                ) from None


def _by_whom(address: str, port: int, host: Host) -> str:
    """' by java (pid 7)'; empty if this user may not see it."""
    from atoll.inspect.listeners import holders, tcp_listeners  # only a fault needs them

    for pid in holders(host, tcp_listeners(host, address, port)):
        try:
            return f" by {printable(host.read_text(f'/proc/{pid}/comm').strip())} (pid {pid})"
        except OSError:
            continue  # it has just ended
    return ""
