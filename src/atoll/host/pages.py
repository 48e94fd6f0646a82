"""Pages of processes and files, through the native library (native/src/inspect).

The library and numpy are loaded on first use, because most commands do not need them.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

from atoll.host.api import FileId, FilePages

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


def page_nodes(pid: int, addresses: npt.NDArray[np.uint64]) -> npt.NDArray[np.int32]:
    from atoll import _native

    return _native.page_nodes(pid, addresses)


def move_pages(pid: int, addresses: npt.NDArray[np.uint64], node: int) -> npt.NDArray[np.int32]:
    from atoll import _native

    return _native.move_pages(pid, addresses, node)


def huge_pages(pid: int, addresses: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    from atoll import _native

    return _native.huge_pages(pid, addresses).astype(bool)


def file_size(path: str) -> int:
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", path)
    return status.st_size


def file_id(path: str) -> FileId:
    status = os.stat(path)
    return FileId(status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size)


def cached_nodes(path: str, *, most_pages: int) -> FilePages:
    from atoll import _native

    size_bytes, cached_pages, nodes = _native.cached_nodes(path, most_pages)
    return FilePages(size_bytes, cached_pages, nodes)
