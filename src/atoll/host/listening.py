"""A TCP socket that many clients connect to."""

from __future__ import annotations

import resource
import socket

_BACKLOG = 1024
_SEND_BYTES = 64 << 10  # the kernel takes this for each client that does not read, and not 4 MiB


def listen(address: str, port: int) -> socket.socket:
    """Does not block. Raises OSError; `address` is IPv4 or IPv6."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BYTES)
        listener.bind((address, port))
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener


def allow_files(count: int) -> int:
    """Let this process open that many files, as far as it may; how many it may open now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        return wanted
    return max(soft, wanted)
