"""Memory policies as /proc/PID/numa_maps writes them (numa(7), mm/mempolicy.c: mpol_to_str).

'bind:0-1', 'bind=static:0-1', 'prefer (many):0,2', 'weighted interleave:0-3', 'local', 'default'.
Each line of numa_maps shows the policy of a mapping: its own (mbind), or otherwise that of the
process's main thread.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from atoll.host.api import Host
from atoll.inspect.numa_maps import NumaLine, parse_numa_maps
from atoll.schema.cpulist import parse_cpulist

_PREFIX_BYTES = (128, 512, 4096)


class Policy(NamedTuple):
    mode: str  # 'default', 'local', 'bind', 'prefer', 'prefer (many)', 'interleave', ...
    nodes: frozenset[int]

    @property
    def interleaves(self) -> bool:
        return self.mode.endswith("interleave")


def parse_policy(text: str) -> Policy:
    """Parses 'bind=static:0-1' as ('bind', {0, 1}); a policy that is not understood has no
    nodes."""
    mode, _, nodes = text.partition(":")
    try:
        return Policy(mode.partition("=")[0], frozenset(parse_cpulist(nodes)))
    except ValueError:
        return Policy(mode.partition("=")[0], frozenset())


def plain(text: str) -> str:
    """The policy without its flags: 'bind=static:0' becomes 'bind:0'."""
    return re.sub(r"=[^:]*", "", text)


def process_policy(host: Host, pid: int) -> str:
    """The process's own policy; empty if the kernel has no NUMA support or the process no memory.

    It is read from a mapping that programs never give a policy: the program's file, which comes
    early, or otherwise the stack. If possible only the start of numa_maps is read, because the
    kernel counts the pages of every line that it returns, and a heap may be the sixth. Raises
    OSError.
    """
    path = f"/proc/{pid}/numa_maps"
    try:
        for size in _PREFIX_BYTES:
            start = host.read_bytes(path, size=size).decode(errors="replace")
            policy = main_policy(parse_numa_maps(start.rpartition("\n")[0]), sure=True)
            if policy:
                return policy
        return main_policy(parse_numa_maps(host.read_text(path)), sure=False)
    except FileNotFoundError:
        if host.exists(f"/proc/{pid}/stat"):
            return ""
        raise


def main_policy(lines: Sequence[NumaLine], *, sure: bool) -> str:
    """The policy of the first mapped file, or of the stack; unless `sure`, of any mapping."""
    best = next((line for line in lines if line.file and not line.hugetlb), None) or next(
        (line for line in lines if line.stack), None
    )
    if best is not None:
        return best.policy
    return lines[0].policy if lines and not sure else ""
