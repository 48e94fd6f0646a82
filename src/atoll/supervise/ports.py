"""Refuses a TCP port that is not free, and says who holds it."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from atoll.errors import NotPermitted, PortTaken
from atoll.host.api import Host
from atoll.schema.plan import LOOPBACK
from atoll.schema.text import printable

LAST_PORT = 65535
_LOWEST = "/proc/sys/net/ipv4/ip_unprivileged_port_start"


def refuse_taken(
    port: int, addresses: Sequence[str], host: Host, *, option: str = "--port"
) -> None:
    """Raises PortTaken naming the process that holds the port at one of the addresses (without any,
    on loopback), and NotPermitted if this user may not open it. `option`: with which the user
    chooses another one."""
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
                    f"with {option}"
                ) from None
            except OSError:
                raise PortTaken(
                    f"port {port} is in use{_by_whom(address, port, host)}; stop that process, or "
                    f"give another one with {option}"
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
