"""Finds the processes that listen at a port or a UNIX socket (proc(5): net/tcp, net/unix).

Covers only the caller's network namespace. For a server in a container it finds at most the
container's port proxy.
"""

from __future__ import annotations

import ipaddress
import sys
from collections.abc import Iterable, Iterator

from atoll.host.api import Host
from atoll.inspect.processes import GONE, process_table

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_CONNECTED = "01"  # TCP_ESTABLISHED
_LISTENS = "0A"  # TCP_LISTEN
_ACCEPTS = 0x10000  # __SO_ACCEPTCON


def tcp_listeners(host: Host, address: str, port: int) -> frozenset[str]:
    """The inodes of the sockets that listen at `port` of that numeric address. Sockets bound to the
    very address win, as in the kernel; otherwise those bound to all addresses count."""
    wanted = ipaddress.ip_address(address)
    exact, all_of_them = set(), set()
    for bound, inode in _listening(host, port):
        if bound == wanted:
            exact.add(inode)
        elif bound.is_unspecified and bound.version in (wanted.version, 6):
            all_of_them.add(inode)  # [::] accepts IPv4 too, unless configured otherwise
    return frozenset(exact or all_of_them)


def bound_addresses(host: Host, pids: Iterable[int], port: int) -> frozenset[str]:
    """The addresses at which one of these processes listens at that port."""
    found = [(bound, f"socket:[{inode}]") for bound, inode in _listening(host, port)]
    return frozenset(
        str(bound) for bound, socket in found if any(_holds(host, pid, {socket}) for pid in pids)
    )


def _listening(host: Host, port: int) -> Iterator[tuple[_Address, str]]:
    """(address, inode) of each socket that listens at that port of any address."""
    for name in ("tcp", "tcp6"):
        for fields in _rows(host, name):
            where, _, number = fields[1].rpartition(":")
            if fields[3] == _LISTENS and int(number, 16) == port:
                yield _address(where), fields[9]


def peers(host: Host, address: str, most: int = 64) -> list[str]:
    """The IPv4 addresses that connections from this one lead to, sorted."""
    found = {
        str(_address(fields[2].rpartition(":")[0]))
        for name in ("tcp", "tcp6")
        for fields in _rows(host, name)
        if fields[3] == _CONNECTED and str(_address(fields[1].rpartition(":")[0])) == address
    }
    return sorted(one for one in found if ":" not in one)[:most]


def listening_ports(host: Host) -> frozenset[int]:
    """The TCP ports at which something listens, at any address."""
    return frozenset(
        int(fields[1].rpartition(":")[2], 16)
        for name in ("tcp", "tcp6")
        for fields in _rows(host, name)
        if fields[3] == _LISTENS
    )


def unix_listeners(host: Host, path: str, port: int | None) -> frozenset[str]:
    """The inodes of listening UNIX sockets at `path`. If `path` is a folder, of the sockets in it
    whose names end in the port: servers share a folder."""
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
    """The processes that hold one of the sockets, without those that inherited it from a parent.

    Covers only processes that this user may inspect.
    """
    wanted = {f"socket:[{inode}]" for inode in inodes}
    table = process_table(host)
    pids = {pid for pid in table if wanted and _holds(host, pid, wanted)}
    return sorted(pid for pid in pids if table[pid].parent not in pids)


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
            continue  # closed meanwhile
    return False


def _address(text: str) -> _Address:
    """Decodes proc(5)'s form: words of 32 bits, each in the machine's byte order."""
    words = [bytes.fromhex(text[place : place + 8]) for place in range(0, len(text), 8)]
    packed = b"".join(word[::-1] if sys.byteorder == "little" else word for word in words)
    address = ipaddress.ip_address(packed)
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address  # Java listens at 127.0.0.1 as ::ffff:127.0.0.1


def _rows(host: Host, name: str, columns: int = 0) -> list[list[str]]:
    """`columns`: the last column is a path, which may contain spaces."""
    try:
        text = host.read_text(f"/proc/net/{name}")
    except OSError:
        return []  # for example no IPv6
    return [line.split(maxsplit=columns - 1) for line in text.splitlines()[1:]]
