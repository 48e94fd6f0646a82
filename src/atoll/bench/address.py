"""The URL of a cluster that runs already: what may be told of it, and where it listens. Pure.

What may be told is the scheme, the user, the host, the port and the path. A password and all other
options stay out of results, reports and messages, whatever they are called.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from atoll.errors import UsageError

_SECRET = re.compile(r"pass|pwd|secret|token|key|cred", re.IGNORECASE)  # names of options
_TOLD = ("host", "port", "unix_socket")  # options that say where it is, and nothing else


@dataclass(frozen=True, slots=True)
class Address:
    told: str  # the URL without what may be secret
    place: str  # 'db1:5432', for a label
    host: str  # empty: a UNIX socket of this machine, or the client library's own choice
    port: int | None
    socket: str  # the UNIX socket, or its folder; empty: TCP
    secrets: tuple[str, ...]


def parse_address(url: str, ports: Mapping[str, int]) -> Address:
    """`ports`: URL scheme -> the port of a URL that names none. Raises UsageError, which does not
    repeat the URL."""
    form = "write it as SCHEME://[USER@]HOST[:PORT][/...]"
    try:
        if not url.isprintable():  # urlsplit drops line ends, and a secret would not be found again
            raise ValueError
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise UsageError(f"--url: cannot be read; {form}") from None
    if not parts.scheme or not url.startswith(f"{parts.scheme}://"):
        raise UsageError(f"--url: is no URL; {form}")
    options = parse_qsl(parts.query, keep_blank_values=True)
    told = [(key, value) for key, value in options if key in _TOLD]
    named = dict(told)
    # The host as libpq takes it: a folder of sockets is percent-encoded, or an option.
    host = unquote(parts.hostname or "") or named.get("host", "")
    socket = named.get("unix_socket", "")
    if host.startswith("/"):
        host, socket = "", host
    if port is None and named.get("port", "").isdecimal():
        port = int(named["port"])
    user = f"{quote(unquote(parts.username), safe='')}@" if parts.username else ""
    netloc = parts.netloc.rpartition("@")[2]
    if host or socket:  # else it is the client library's own choice
        port = port or ports.get(parts.scheme)
    where = socket or host or "local"
    password = parts.password or ""
    secret = [value for key, value in options if _SECRET.search(key)]
    return Address(
        told=f"{parts.scheme}://{user}{netloc}{parts.path}{'?' if told else ''}{urlencode(told)}",
        place=f"{where}:{port}" if port else where,
        host=host,
        port=port,
        socket=socket,
        secrets=tuple(
            sorted(
                {each for one in (password, *secret) for each in (one, unquote(one), quote(one))}
                - {""},
                key=len,
                reverse=True,
            )
        ),
    )


def without(secrets: Iterable[str], text: str) -> str:
    """The text with every secret in it hidden."""
    for secret in secrets:
        text = text.replace(secret, "***")
    return text
