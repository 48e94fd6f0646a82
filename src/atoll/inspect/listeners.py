"""Which processes listen at a port or a UNIX socket of this machine (proc(5): net/tcp, net/unix).

Only sockets of our own network namespace are seen: of a server in a container it is the proxy, if
anybody.
"""

from __future__ import annotations

import ipaddress
import sys
from collections.abc import Iterable

from atoll.host.api import Host
from atoll.inspect.processes import GONE, process_table

_LISTENS = "0A"  # TCP_LISTEN
_ACCEPTS = 0x10000  # __SO_ACCEPTCON


def tcp_listeners(host: Host, address: str, port: int) -> frozenset[str]:
    """The inodes of sockets that listen at `port` of that numeric address: at the very address, as
    the kernel prefers it, else at all of the machine's."""
    wanted = ipaddress.ip_address(address)
    exact, all_of_them = set(), set()
    for name in ("tcp", "tcp6"):
        for fields in _rows(host, name):
            where, _, number = fields[1].rpartition(":")
            if fields[3] != _LISTENS or int(number, 16) != port:
                continue
            bound = _address(where)
            if bound == wanted:
                exact.add(fields[9])
            elif bound.is_unspecified and bound.version in (wanted.version, 6):
                all_of_them.add(fields[9])  # [::] takes IPv4 too, unless it was told not to
    return frozenset(exact or all_of_them)


def unix_listeners(host: Host, path: str, port: int | None) -> frozenset[str]:
    """The inodes of listening UNIX sockets at `path`; if it is a folder, of those in it whose names
    end in the port: servers share a folder."""
    folder = path.rstrip("/")
    return frozenset(
        fields[6]
        for fields in _rows(host, "unix", columns=8)
        if len(fields) > 7
        and int(fields[3], 16) & _ACCEPTS
        and (
            fields[7] == path
            or (fields[7].rpartition("/")[0] == folder and fields[7].endswith(f".{port}"))
        )
    )


def holders(host: Host, inodes: Iterable[str]) -> list[int]:
    """The processes that hold one of the sockets, without those that have it from their parent.

    Only those that this user may look into.
    """
    wanted = {f"socket:[{inode}]" for inode in inodes}
    table = process_table(host)
    found = {pid for pid in table if wanted and _holds(host, pid, wanted)}
    return sorted(pid for pid in found if table[pid].parent not in found)


def _holds(host: Host, pid: int, wanted: set[str]) -> bool:
    folder = f"/proc/{pid}/fd"
    try:
        names = host.list_dir(folder)
    except GONE:
        return False
    for name in names:
        try:
            if host.read_link(f"{folder}/{name}") in wanted:
                return True
        except GONE:
            continue  # closed since
    return False


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Of proc(5): words of 32 bits, each with its bytes in the machine's order."""
    words = [bytes.fromhex(text[place : place + 8]) for place in range(0, len(text), 8)]
    packed = b"".join(word[::-1] if sys.byteorder == "little" else word for word in words)
    found = ipaddress.ip_address(packed)
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return mapped or found  # Java listens at 127.0.0.1 as ::ffff:127.0.0.1


def _rows(host: Host, name: str, columns: int = 0) -> list[list[str]]:
    """`columns`: the last one is a path, which may have blanks."""
    try:
        text = host.read_text(f"/proc/net/{name}")
    except OSError:
        return []  # no IPv6, say
    return [line.split(maxsplit=columns - 1) for line in text.splitlines()[1:]]
