"""The native library (native/python/native.cpp)."""

import numpy as np
import numpy.typing as npt

class TopologyFault(Exception):
    """One line: what is wrong with the topology, where, and what to do."""

class OwnFault(Exception):
    """One line: the library failed on a topology that it had accepted."""

def discover(kind: str, where: str, content: bytes | None = None) -> str:
    """The machine as JSON (format `atoll/machine`).

    `kind` is live, xml, synthetic or sysfs; `where` the path or the synthetic string, empty
    for live. `content` is the XML file's bytes where the caller has them already; `where` then
    only names it. Raises TopologyFault or OwnFault.
    """

def page_nodes(pid: int, addresses: npt.NDArray[np.uint64]) -> npt.NDArray[np.int32]:
    """The memory node of the page at each address of the process; negative: an errno.

    Nothing moves. Raises OSError: ESRCH, EPERM, EINVAL (no memory of its own), ENOSYS.
    """

def move_pages(pid: int, addresses: npt.NDArray[np.uint64], node: int) -> npt.NDArray[np.int32]:
    """Move the pages that no other process maps; where each is now, as `page_nodes`.

    Raises OSError: as `page_nodes`, and ENODEV.
    """

def huge_pages(pid: int, addresses: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint8]:
    """1 for each address that a huge page maps. Raises OSError; ENOTTY before Linux 6.7."""

def cached_nodes(path: str, most_pages: int) -> tuple[int, int, npt.NDArray[np.int32]]:
    """(size in bytes, pages in the page cache, nodes of at most `most_pages` of them).

    Raises OSError: the file's own, EISDIR, EINVAL (no regular file, hugetlbfs), ENODEV, EPERM
    (mincore tells only who owns the file or may write it).
    """
