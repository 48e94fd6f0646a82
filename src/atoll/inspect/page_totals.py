"""The pages of a small process by node, without its mappings: a quick look that is often enough."""

from __future__ import annotations

import re
from typing import NamedTuple

from atoll.host.api import Host
from atoll.host.procfs import status_field
from atoll.inspect.drift_memory import DEPLOYMENTS_OWN
from atoll.inspect.memory import COUNT_BYTES

_PAGES = re.compile(r" N(\d+)=(\d+)")
_PAGE_KIB = re.compile(r" kernelpagesize_kB=(\d+)")
_OWN_FILES = tuple(f" file={name}" for name in DEPLOYMENTS_OWN)


class PageTotals(NamedTuple):
    bytes_by_node: dict[int, int]
    own_outside: int  # bytes of memory that a policy governs, on other nodes than the wanted


def short_totals(host: Host, pid: int, wanted: frozenset[int]) -> PageTotals | None:
    """None if the process is so large that counting its pages would hold it up, or the kernel has
    no NUMA support. `wanted`: empty for any node. Raises OSError."""
    resident = status_field(host.read_text(f"/proc/{pid}/status"), "VmRSS").removesuffix(" kB")
    if not resident.isdecimal() or int(resident) << 10 > COUNT_BYTES:
        return None
    try:
        text = host.read_text(f"/proc/{pid}/numa_maps")
    except FileNotFoundError:
        return None
    return page_totals(text, wanted)


def page_totals(numa_maps: str, wanted: frozenset[int]) -> PageTotals:
    """Pure. Names of files cannot contain a blank, so they cannot look like a field."""
    sizes: dict[int, int] = {}
    outside = 0
    for line in numa_maps.split("\n"):
        pages = _PAGES.findall(line)
        size = _PAGE_KIB.search(line)
        if not pages or size is None:
            continue
        own = " file=" not in line or any(name in line for name in _OWN_FILES)
        for node, count in pages:
            found = int(count) * int(size[1]) << 10
            sizes[int(node)] = sizes.get(int(node), 0) + found
            if own and wanted and int(node) not in wanted:
                outside += found
    return PageTotals(dict(sorted(sizes.items())), outside)
