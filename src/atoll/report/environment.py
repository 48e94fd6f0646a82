"""The environment that figures hold for, as rows of a table. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from atoll.report.table import Row
from atoll.schema.environment import LABELS, Environment

_SHOWN = ("virtualization", "kernel", "kernel_cmdline", "microcode", "thp_enabled",
          "numa_balancing", "governor", "affinity", "cgroup", "hostname_hash")  # fmt: skip


def environment_rows(
    environment: Environment, before: Sequence[Row], after: Sequence[Row] = ()
) -> list[Row]:
    """The rows between `before` and `after`; an empty value is 'unknown'."""
    thp = (environment.thp_enabled, environment.thp_defrag)
    shown = {name: getattr(environment, name) for name in _SHOWN}
    shown["thp_enabled"] = " / defrag ".join(filter(None, thp))
    rows = (
        *before,
        *((LABELS[name], value) for name, value in shown.items()),
        *after,
        (LABELS["atoll_version"], environment.atoll_version),
    )
    return [(name, value or "unknown") for name, value in rows]
