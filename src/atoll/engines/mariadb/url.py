"""The URL of a MariaDB or MySQL server as what PyMySQL connects by. Pure but for MYSQL_PWD."""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from atoll.errors import UsageError

_PORT = 3306
_FORM = "write mysql://USER@HOST:PORT/DATABASE"
_OPTIONS = ("ssl-ca", "unix_socket")


def read_url(url: str) -> tuple[str, dict[str, Any]]:
    """What may be told of where it is, and how one connects.

    What it leaves out is taken from MYSQL_PWD and from the section [client] of ~/.my.cnf. TLS where
    the server has it; `?ssl-ca=FILE` demands it and has the server's certificate verified.
    `?unix_socket=PATH` is a server of this machine. Raises UsageError, which has no password in it.
    """
    try:
        given = urlsplit(url)
        port = given.port or _PORT
        options = parse_qs(given.query, keep_blank_values=True, strict_parsing=bool(given.query))
        (given.hostname or "").encode("idna")  # a UnicodeError is a ValueError
    except ValueError:
        raise UsageError(f"--url: not a URL of MariaDB; {_FORM}") from None
    path = options.get("unix_socket", [""])[0]
    if given.scheme not in ("mysql", "mariadb") or not (given.hostname or path):
        raise UsageError(f"--url: not a URL of MariaDB; {_FORM}")
    if unknown := options.keys() - set(_OPTIONS):
        raise UsageError(f"--url: {min(unknown)!r} is not known; there is {', '.join(_OPTIONS)}")
    # Of an empty variable: without the file nothing would be verified.
    if empty := [name for name, values in options.items() if not all(values)]:
        raise UsageError(f"--url: {empty[0]!r} has no value; give it one, or leave it out")
    how: dict[str, Any] = {
        "user": unquote(given.username or ""),
        # As bytes: of text PyMySQL takes what is Latin-1.
        "password": os.fsencode(unquote(given.password or "") or os.environ.get("MYSQL_PWD", "")),
        "database": unquote(given.path.lstrip("/")) or None,
        "charset": "utf8mb4",
        "read_default_file": "~/.my.cnf",
        "program_name": "atoll",
    }
    if path:
        return path, how | {"unix_socket": path, "ssl_disabled": True}
    how |= {"host": given.hostname, "port": port}
    if ca := options.get("ssl-ca"):
        how |= {"ssl_ca": ca[0], "ssl_verify_cert": True, "ssl_verify_identity": True}
    return f"{given.hostname}:{port}", how
