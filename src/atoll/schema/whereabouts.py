"""Where a deployment's threads and pages were during a measured pass, summed over its processes.

The shares of local memory are figures of different kinds and must not be compared: one estimates
from where the pages lie, one is counted by the hardware.
"""

from __future__ import annotations

from pydantic import Field

from atoll.schema.base import Record


class Whereabouts(Record):
    """Of processes and threads that were there at the end of the pass. None: unknown, see
    `unknown`."""

    processes: int = Field(ge=0)
    threads: int = Field(ge=0)  # that ran
    elsewhere: int = Field(ge=0)  # of these, those whose last CPU lies outside their slot
    migrations: int | None = Field(ge=0)  # of threads, from CPU to CPU
    cpu_s_by_node: dict[int, float]  # CPU time, on the node where each thread ran last
    bytes_by_node: dict[int, int]  # resident memory after the pass
    # Estimated from pages: the share of pages on the node of the thread that uses them, if every
    # thread used all pages of its process equally; processes weigh by their CPU time.
    local_pages: float | None = Field(ge=0, le=1)
    # Counted by resctrl: the part of memory traffic that went to the local node, with everything
    # else that runs in the same groups.
    local_resctrl: float | None = Field(ge=0, le=1)
    read_bytes: int | None = Field(ge=0)  # from storage (/proc/PID/io), so not from the page cache
    written_bytes: int | None = Field(ge=0)
    unknown: tuple[str, ...] = ()
