"""A file in memory, which leaves nothing behind, however this process ends (memfd_create(2))."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def memory_file(text: str) -> Iterator[str]:
    """Its path, for other processes of this user."""
    with open(os.memfd_create("file"), "wb", buffering=0) as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(text.encode())
        yield f"/proc/{os.getpid()}/fd/{file.fileno()}"
