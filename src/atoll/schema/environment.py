"""The environment that figures hold for. Part of other formats: results, profiles."""

from __future__ import annotations

from atoll.schema.base import Record


class Environment(Record):
    """Unknown is the empty string."""

    hostname_hash: str  # tells two machines apart without naming them
    cpu_model: str
    kernel: str
    kernel_cmdline: str
    microcode: str
    virtualization: str
    thp_enabled: str
    thp_defrag: str
    numa_balancing: str
    governor: str
    affinity: str  # cpulist
    cgroup: str
    memory_bytes: int
    atoll_version: str
