"""The environment that figures hold for, as rows of a table. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from atoll.report.table import Row
from atoll.schema.environment import Environment


def environment_rows(
    environment: Environment, before: Sequence[Row], after: Sequence[Row] = ()
) -> list[Row]:
    """The rows between `before` and `after`; an empty value is 'unknown'."""
    thp = (environment.thp_enabled, environment.thp_defrag)
    rows = (
        *before,
        ("Virtualization", environment.virtualization),
        ("Kernel", environment.kernel),
        ("Kernel command line", environment.kernel_cmdline),
        ("Microcode", environment.microcode),
        ("Transparent huge pages", " / defrag ".join(filter(None, thp))),
        ("AutoNUMA (numa_balancing)", environment.numa_balancing),
        ("CPU governor", environment.governor),
        ("Affinity mask", environment.affinity),
        ("Cgroup", environment.cgroup),
        ("Host (hashed)", environment.hostname_hash),
        *after,
        ("Atoll", environment.atoll_version),
    )
    return [(name, value or "unknown") for name, value in rows]
