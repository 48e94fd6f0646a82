"""Where a Trino or Presto coordinator is, and as whom one asks it: URLs, and layouts' endpoints."""

from __future__ import annotations

import getpass
import os
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from atoll.errors import EngineFailed, UsageError

_PORTS = {"http": 8080, "https": 443}


@dataclass(frozen=True, slots=True)
class Address:
    """A coordinator, and as whom and where in it one asks."""

    scheme: str
    host: str
    port: int
    user: str
    password: str = ""
    catalog: str | None = None
    schema: str | None = None

    @property
    def place(self) -> str:
        """What may be told of it."""
        return f"{self.scheme}://{self.host}:{self.port}"


def parse_url(url: str) -> Address:
    """http(s)://[user[:password]@]host[:port][/catalog[/schema]]. Raises UsageError, which does not
    repeat the URL: it may hold a password."""
    form = "give http(s)://[user[:password]@]host[:port][/catalog[/schema]]"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        # Its words would repeat a password with a '#' or a '/' in it, as the port.
        raise UsageError(f"the URL cannot be read; {form}") from None
    if parts.query:
        raise UsageError(f"the URL has a '?', and nothing that follows it is known; {form}")
    names = [unquote(name) for name in parts.path.split("/") if name]
    if parts.scheme not in _PORTS or not parts.hostname or len(names) > 2:
        raise UsageError(f"the URL is none of a Trino or Presto; {form}")
    if parts.password and parts.scheme == "http":
        raise UsageError("a password is sent over https only; give an https URL")
    return Address(
        scheme=parts.scheme,
        host=f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname,
        port=port or _PORTS[parts.scheme],
        user=unquote(parts.username or "") or _own_name(),
        password=unquote(parts.password or ""),
        catalog=names[0] if names else None,
        schema=names[1] if len(names) > 1 else None,
    )


def _own_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())  # a container's user may have no name


def parse_endpoint(endpoint: str) -> Address:
    """One of a layout's: the same, with `?user-file=PATH` for a user that is a secret."""
    url, _, query = endpoint.partition("?")
    address = parse_url(url)
    for path in parse_qs(query).get("user-file", ()):
        try:
            user = Path(path).read_text()
        except OSError as fault:
            raise EngineFailed(f"{path} cannot be read ({fault.strerror})") from None
        return replace(address, user=user)
    return address
