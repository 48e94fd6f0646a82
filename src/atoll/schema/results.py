"""What a bench measured: one JSON object a line, appended as it comes. Format `atoll/results` 1.

The first line is a `RunHeader`; then, block by block, a `DeploymentUp` or `BlockFailed` and the
`QueryTime`s of each deployment; a `RunEnd` closes a finished run. A line that is cut off (the
bench was killed while it wrote) is ignored when the file is read, so `--resume` can go on.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from atoll.schema.base import Record
from atoll.schema.machine import Machine
from atoll.schema.plan import Plan


class Fingerprint(Record):
    """The environment that the figures hold for. Unknown is the empty string."""

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
    engine_versions: dict[str, str]
    java_version: str
    data_checksum: str


class Entrant(Record):
    """One line-up of the bench: an engine under a policy."""

    label: str  # 'spark/wic'
    engine: str
    plan: Plan


class RunHeader(Record):
    FORMAT: ClassVar[str] = "atoll/results"
    VERSION: ClassVar[int] = 1

    record: Literal["header"] = "header"
    format: Literal["atoll/results"] = "atoll/results"
    version: Literal[1] = 1
    run_id: str
    started_unix_s: float
    suite: str
    scale_factor: float
    queries: tuple[str, ...]
    blocks_asked: int
    machine: Machine
    entrants: tuple[Entrant, ...]
    fingerprint: Fingerprint
    command: str


class DeploymentUp(Record):
    record: Literal["up"] = "up"
    block: int
    label: str
    position: int  # its turn in the block, 0-based; the order is reversed from block to block
    up_s: float
    idle_share: float  # share of the machine's CPU time that was idle just before the pass


class QueryTime(Record):
    record: Literal["query"] = "query"
    block: int
    label: str
    query: str  # 'q1'
    seconds: float  # at the client, from sending the SQL to holding all rows
    engine_seconds: float  # inside the SQL host, around execution and fetch
    rows: int
    answer: Literal["ok", "wrong", "unchecked"]
    detail: str = ""  # the differing rows of a wrong answer


class BlockFailed(Record):
    """A deployment of a block that did not come to its end; its times are not used."""

    record: Literal["failed"] = "failed"
    block: int
    label: str
    error: str


class VerifyResult(Record):
    record: Literal["verify"] = "verify"
    block: int
    label: str
    threads: int
    drifted: int
    detail: str = ""


class RunEnd(Record):
    record: Literal["end"] = "end"
    ended_unix_s: float
    status: Literal["complete", "stopped"]
    reason: str = ""
