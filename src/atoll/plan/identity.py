"""Which machine a plan was made for."""

from __future__ import annotations

from atoll.schema.machine import Machine


def machine_id(machine: Machine) -> str:
    """16 hex digits from the machine's CPUs, nodes, dies and L3 domains.

    What the mask and the cgroup allow is left out: it changes from process to process, and
    `up` checks it at the start.
    """
    return machine.machine_id
