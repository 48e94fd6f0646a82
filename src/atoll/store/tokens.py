"""A secret in a file of its own, which only this user may read."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from atoll.errors import NotPermitted, UsageError
from atoll.store.files import write_new

_LEAST = 16  # characters


def token_in(path: Path) -> str:
    """The token in the file, which is made with mode 0600 unless it exists. Raises as
    `read_token`."""
    if not path.exists():
        write_new(path, secrets.token_urlsafe(32) + "\n", mode=0o600)
    return read_token(path)


def read_token(path: Path) -> str:
    """Raises NotPermitted if it cannot be read or others may read it, UsageError if it has none."""
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            mode, token = os.fstat(file.fileno()).st_mode, file.read(4096).strip()
    except FileNotFoundError:
        raise UsageError(f"{path}: there is no such file") from None
    except OSError as fault:
        raise NotPermitted(f"{path}: cannot be read ({fault.strerror})") from None
    if mode & 0o077:
        raise NotPermitted(f"{path}: others may read this secret; chmod 600 it")
    if len(token) < _LEAST or not token.isprintable() or " " in token:
        raise UsageError(f"{path}: has no secret of {_LEAST} characters without blanks; write one")
    return token
