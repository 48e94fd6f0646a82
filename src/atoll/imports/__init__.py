"""Machines that other tools describe: lscpu's output, Kubernetes' NodeResourceTopology. Pure.

A reader turns a file into a `Description`: which CPUs share what. `sysfs_of` writes it as the
kernel would, so that native/src/topology reads it like any captured machine, and topology logic
exists once.
"""

from __future__ import annotations

import re

from atoll.errors import TopologyError
from atoll.imports.description import Description, checked

_NODE_RESOURCES = re.compile(rb"""["']?kind["']?\s*:\s*["']?NodeResourceTopology""")
# A table (-p, -e), a summary, or one of these as JSON.
_LSCPU = re.compile(
    rb"""^\#[ ]*CPU,|^[ ]*CPU\b.*\bCORE\b|^[ ]*CORE\b.*\bCPU\b|^(Architecture|CPU\(s\)):"""
    rb"""|\A\s*\{\s*"(lscpu|cpus|caches)"\s*:""",
    re.MULTILINE,
)

_MOST_BYTES = 2 << 20  # an object of Kubernetes has at most 1.5 MiB; lscpu, 200 bytes for a CPU


def description_of(content: bytes, where: str) -> Description | None:
    """What the file describes; None if it is not of these kinds. `where` names it in errors.

    Raises TopologyError.
    """
    if content.lstrip()[:1] == b"<":
        return None
    beginning = content[:_MOST_BYTES]
    try:
        if len(content) > _MOST_BYTES and (
            _NODE_RESOURCES.search(beginning) or _LSCPU.search(beginning)
        ):
            raise TopologyError("is over 2 MiB; write one machine only, with 'lscpu -p'")
        if _NODE_RESOURCES.search(content):
            from atoll.imports.node_resources import read_node_resources

            return checked(read_node_resources(content))
        if _LSCPU.search(content):
            from atoll.imports.lscpu import read_lscpu

            return checked(read_lscpu(content))
    except TopologyError as fault:
        raise TopologyError(f"{where}: {fault}") from None
    except RecursionError:
        raise TopologyError(f"{where}: is nested too deeply") from None
    return None
