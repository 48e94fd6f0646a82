"""The IPv4 addresses of this machine's network interfaces (netdevice(7), SIOCGIFCONF)."""

from __future__ import annotations

import array
import fcntl
import socket
import struct

_SIOCGIFCONF = 0x8912
_NAME_BYTES = 16
_ENTRY_BYTES = 40  # struct ifreq: the name, and a union of 24 bytes, here a struct sockaddr_in
_ADDRESS = slice(_NAME_BYTES + 4, _NAME_BYTES + 8)


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
