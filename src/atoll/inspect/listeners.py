"""Which processes listen at a port or a UNIX socket of this machine (proc(5): net/tcp, net/unix).

Only sockets of our own network namespace are seen: of a server in a container it is the proxy, if
anybody.
"""

from __future__ import annotations

from collections.abc import Iterable

from atoll.host.api import Host
from atoll.inspect.processes import GONE, process_table

_LISTENS = "0A"  # TCP_LISTEN
_ACCEPTS = 0x10000  # __SO_ACCEPTCON


def tcp_listeners(host: Host, port: int) -> frozenset[str]:
    """The inodes of sockets that listen at `port`, on any address."""
    found = set()
    for name in ("tcp", "tcp6"):
        for fields in _rows(host, name):
            if fields[3] == _LISTENS and int(fields[1].rpartition(":")[2], 16) == port:
                found.add(fields[9])
    return frozenset(found)


def unix_listeners(host: Host, path: str, port: int | None) -> frozenset[str]:
    """The inodes of listening UNIX sockets at `path`; if it is a folder, of those in it whose names
    end in the port, as PostgreSQL's do: servers share a folder."""
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


def _rows(host: Host, name: str, columns: int = 0) -> list[list[str]]:
    """`columns`: the last one is a path, which may have blanks."""
    try:
        text = host.read_text(f"/proc/net/{name}")
    except OSError:
        return []  # no IPv6, say
    return [line.split(maxsplit=columns - 1) for line in text.splitlines()[1:]]
