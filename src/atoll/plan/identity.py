"""Identifies the machine that a plan was made for."""

from __future__ import annotations

from atoll.schema.machine import Machine


def machine_id(machine: Machine) -> str:
    """16 hex digits from the machine's CPUs, nodes, dies and L3 domains.

    The id ignores the CPU mask and the cgroup's limits: they differ between processes, and
    `up` checks them at start.
    """
    return machine.machine_id
