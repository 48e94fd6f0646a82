"""Which machine a plan was made for: a hash of what the plan's numbers mean."""

from __future__ import annotations

import hashlib
import json

from atoll.schema.machine import Machine


def machine_id(machine: Machine) -> str:
    """16 hex digits from the machine's CPUs, nodes and chiplets.

    What the mask and the cgroup allow is left out: it changes from process to process, and
    `up` checks it at the start.
    """
    layout = [
        [core.pus for core in machine.cores],
        [(node.os_index, node.pus) for node in machine.nodes],
        [chiplet.pus for chiplet in machine.chiplets],
    ]
    return hashlib.sha256(json.dumps(layout).encode()).hexdigest()[:16]
