"""The environment in which figures were measured. Part of other formats: results, profiles."""

from __future__ import annotations

from atoll.schema.base import Record

# What reports call the fields.
LABELS = {
    "hostname_hash": "Host (hashed)",
    "cpu_model": "CPU model",
    "kernel": "Kernel",
    "kernel_cmdline": "Kernel command line",
    "microcode": "Microcode",
    "virtualization": "Virtualization",
    "thp_enabled": "Transparent huge pages",
    "thp_defrag": "Defrag for huge pages",
    "numa_balancing": "AutoNUMA (numa_balancing)",
    "governor": "CPU governor",
    "affinity": "Affinity mask",
    "cgroup": "Cgroup",
    "memory_bytes": "Memory",
    "atoll_version": "Atoll",
}


class Environment(Record):
    """The empty string stands for unknown."""

    hostname_hash: str  # distinguishes two machines without naming them
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
