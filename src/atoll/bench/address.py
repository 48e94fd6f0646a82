"""The URL of a running cluster: the part that may be shown, and where the cluster listens. Pure.

The scheme, the user, the host, the port and the path may be shown. A password and all other
options stay out of results, reports and messages, whatever their names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from atoll.errors import UsageError

_SECRET = re.compile(r"pass|pwd|secret|token|key|cred", re.IGNORECASE)  # names of options
_SHOWN = ("host", "port", "unix_socket")  # options that only locate the server


@dataclass(frozen=True, slots=True)
class ClusterAddress:
    shown: str  # the URL without anything that may be secret
    place: str  # 'db1:5432', for a label
    host: str  # empty: a UNIX socket of this machine, or the client library chooses
    port: int | None
    socket: str  # the UNIX socket, or its folder; empty: TCP
    secrets: tuple[str, ...]


def parse_address(url: str, ports: Mapping[str, int]) -> ClusterAddress:
    """`ports`: URL scheme -> default port.

    Raises UsageError, whose message does not repeat the URL.
    """
    form = "write it as SCHEME://[USER@]HOST[:PORT][/...]"
    try:
        if (
            not url.isprintable()
        ):  # urlsplit drops line ends, which would hide a secret from `without`
            raise ValueError
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise UsageError(f"URL: cannot be read; {form}") from None
    if not parts.scheme or not url.startswith(f"{parts.scheme}://"):
        raise UsageError(f"URL: has no scheme; {form}")
    options = parse_qsl(parts.query, keep_blank_values=True)
    shown = [(key, value) for key, value in options if key in _SHOWN]
    named = dict(shown)
    # As in libpq, a folder of sockets is a percent-encoded host, or an option.
    host = unquote(parts.hostname or "") or named.get("host", "")
    socket = named.get("unix_socket", "")
    if host.startswith("/"):
        host, socket = "", host
    if port is None and named.get("port", "").isdecimal():
        port = int(named["port"])
    user = f"{quote(unquote(parts.username), safe='')}@" if parts.username else ""
    netloc = parts.netloc.rpartition("@")[2]
    if host or socket:  # else the client library chooses
        port = port or ports.get(parts.scheme)
    where = socket or host or "local"
    password = parts.password or ""
    secret = [value for key, value in options if _SECRET.search(key)]
    return ClusterAddress(
        shown=f"{parts.scheme}://{user}{netloc}{parts.path}"
        f"{'?' if shown else ''}{urlencode(shown)}",
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
    """The text with every secret replaced by ***."""
    for secret in secrets:
        text = text.replace(secret, "***")
    return text
