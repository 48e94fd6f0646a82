"""The IPv4 addresses of this machine's network interfaces (netdevice(7), SIOCGIFCONF), and the way
out from each (rtnetlink(7), RTM_GETROUTE, which needs no privilege)."""

from __future__ import annotations

import array
import fcntl
import socket
import struct
from collections.abc import Iterator
from typing import NamedTuple

_SIOCGIFCONF = 0x8912
_NAME_BYTES = 16
_ENTRY_BYTES = 40  # struct ifreq: the name, and a union of 24 bytes, here a struct sockaddr_in
_ADDRESS = slice(_NAME_BYTES + 4, _NAME_BYTES + 8)

_GET_ROUTE, _NEW_ROUTE, _IS_REQUEST = 26, 24, 1
_HEADER = struct.Struct("=IHHII")  # struct nlmsghdr: length, type, flags, number, port
_ROUTE = struct.Struct("=8BI")  # struct rtmsg: family, bits of the destination, ..., flags
_MATCHED = 0x2000  # RTM_F_FIB_MATCH (Linux 4.13): the answer is the route in the table
_TO, _FROM, _OUT, _GATEWAY = 1, 2, 4, 5  # RTA_DST, RTA_SRC, RTA_OIF, RTA_GATEWAY


class Route(NamedTuple):
    """The way of a packet out of this machine."""

    interface: str
    subnet: str  # the destinations of this route: '10.0.0.0/24', '0.0.0.0/0'
    gateway: str  # empty: the destination is on the interface's own network


def addresses() -> dict[str, tuple[str, ...]]:
    """The addresses of each interface that has any, in the kernel's order."""
    found: dict[str, tuple[str, ...]] = {}
    for entry in _entries():
        name = entry[:_NAME_BYTES].split(b"\0")[0].decode(errors="replace").partition(":")[0]
        found[name] = (*found.get(name, ()), socket.inet_ntoa(entry[_ADDRESS]))
    return found


def _entries() -> list[bytes]:
    room = 64 * _ENTRY_BYTES
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        while True:
            block = array.array("B", bytes(room))
            request = struct.pack("iP", room, block.buffer_info()[0])
            (used, _) = struct.unpack("iP", fcntl.ioctl(asked, _SIOCGIFCONF, request))
            if used < room:
                break
            room *= 2  # a full block may be a part of the list
    data = block.tobytes()[:used]
    return [data[at : at + _ENTRY_BYTES] for at in range(0, used, _ENTRY_BYTES)]


def route(source: str, destination: str) -> Route | None:
    """How the kernel sends a packet from an address of this machine. None: not at all, or over
    several interfaces."""
    ends = ((_TO, destination), (_FROM, source))
    body = _ROUTE.pack(socket.AF_INET, 32, 32, 0, 0, 0, 0, 0, _MATCHED)
    body += b"".join(struct.pack("=HH4s", 8, kind, socket.inet_aton(ip)) for kind, ip in ends)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as asked:
        asked.send(_HEADER.pack(_HEADER.size + len(body), _GET_ROUTE, _IS_REQUEST, 1, 0) + body)
        answer = asked.recv(1 << 16)
    length, kind, *_ = _HEADER.unpack_from(answer)
    if kind != _NEW_ROUTE:
        return None
    (_, bits, *_) = _ROUTE.unpack_from(answer, _HEADER.size)
    found = dict(_attributes(answer[_HEADER.size + _ROUTE.size : length]))
    if _OUT not in found:
        return None
    try:
        name = socket.if_indextoname(struct.unpack("=I", found[_OUT])[0])
    except OSError:
        return None  # the interface has just gone
    to, gateway = found.get(_TO, bytes(4)), found.get(_GATEWAY)
    return Route(
        name, f"{socket.inet_ntoa(to)}/{bits}", socket.inet_ntoa(gateway) if gateway else ""
    )


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        yield kind, data[4:length]
        data = data[max(4, -(-length // 4) * 4) :]
