"""The placement policies, which the command line lists without importing a file format."""

from __future__ import annotations

from enum import StrEnum


class Policy(StrEnum):
    """How many worker instances there are, and the cores of each."""

    WIM = "wim"  # one for the machine, no mask, no memory policy: the engine's default deployment
    WIN = "win"  # one per NUMA node
    WICP = "wicp"  # one per chiplet (WICP-local)
    WICP_MIXED = "wicp-mixed"  # as many as WICP, cores of each spread over its node's chiplets
    WIC = "wic"  # one per core
    SPMWIN = "spmwin"  # as many as WIN, cores of each spread over all nodes: the control
