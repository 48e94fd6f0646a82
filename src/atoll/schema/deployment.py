"""A running deployment, as stored on disk. Format `atoll/deployment` 1.

Written by the supervisor with an atomic rename at every change of state. A process is
identified by its pid and its start time, because the kernel reuses pids.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Literal, Self

from pydantic import model_validator

from atoll.schema.base import Record
from atoll.schema.plan import LOOPBACK, Plan

START_TIMEOUT_S = 300.0


class ProcessId(Record):
    pid: int
    start_ticks: int  # field 22 of /proc/PID/stat: clock ticks after boot


class Role(StrEnum):
    COORDINATOR = "coordinator"
    WORKER = "worker"
    DRIVER = "driver"  # runs the SQL that clients send


class ProcessSpec(Record):
    """A process to start, with its place. Made by an engine adapter; pure data."""

    name: str  # unique in the deployment: 'worker-0'
    role: Role
    slot: int | None  # the slot whose CPUs and memory it uses; None: the coordinator's place
    argv: tuple[str, ...]
    env: dict[str, str]  # added to a small clean environment
    cwd: str = ""  # its working folder, below the run folder; empty: the run folder itself
    stage: int  # processes of a stage start in parallel, once the previous stage is ready
    ready_port: int | None = None  # a TCP port that accepts connections once it is up
    ready_address: str = LOOPBACK  # where that port is
    ready_socket: str | None = None  # a UNIX socket that accepts connections once it is up
    seats_threads: bool = False  # it binds its own threads to CPUs inside its place


def check_slots(processes: Iterable[ProcessSpec], plan: Plan) -> None:
    """Raises ValueError if a process has a slot that the plan lacks."""
    count = len(plan.slots)
    for one in processes:
        if one.slot is not None and not 0 <= one.slot < count:
            raise ValueError(f"process {one.name} has slot {one.slot}, but the plan has {count}")


class Access(Record):
    """How a person reaches one logical server. Without secrets."""

    address: str  # a URL without user and options, or the path of a UNIX socket
    command: str  # starts an SQL client; for a POSIX shell
    remark: str = ""  # what the command needs, and where a password lies


class UpOptions(Record):
    """What `atoll up` got in addition to the plan, so that `atoll restart` can repeat it."""

    base: str | None = None  # the folder of the user's own configuration
    port: int | None = None  # the first of the ports at which clients connect
    timeout_s: float = START_TIMEOUT_S


class ProcessRecord(Record):
    spec: ProcessSpec
    id: ProcessId | None = None
    log: str
    exit_status: int | None = None  # negative: the signal that ended it


class State(StrEnum):
    STARTING = "starting"
    READY = "ready"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FAILED = "failed"


class NicCount(Record):
    """The bytes that an interface has received and sent (/sys/class/net/NAME/statistics)."""

    name: str
    rx_bytes: int
    tx_bytes: int


class Deployment(Record):
    format: Literal["atoll/deployment"] = "atoll/deployment"
    version: Literal[1] = 1
    name: str
    id: str  # random; processes carry ATOLL_DEPLOYMENT=NAME:ID in their environment
    boot_id: str
    run_dir: str  # sockets and configuration files; removed when the deployment ends
    scratch_dir: str  # spilled and shuffled data, on a disk; also removed at the end
    cgroup: str = ""  # the folder of its own cgroup v2, if one could be made
    plan: Plan
    state: State
    error: str = ""
    supervisor: ProcessId | None
    keeper: ProcessId | None
    processes: tuple[ProcessRecord, ...] = ()
    endpoints: tuple[str, ...] = ()  # a UNIX socket's path or a URL, one per logical server
    nics: tuple[NicCount, ...] = ()  # of the plan's NICs and of lo, before the start
    access: tuple[Access, ...] = ()  # one per logical server
    options: UpOptions | None = None  # None: `atoll up` did not start it
    created_unix_s: float

    @model_validator(mode="after")
    def _slots_are_there(self) -> Self:
        check_slots((process.spec for process in self.processes), self.plan)
        return self

    def after_failure(self, error: str) -> Deployment:
        """The record of a deployment of which nothing runs any more, with the reason."""
        return self.model_copy(
            update={
                "state": State.FAILED,
                "error": error,
                "supervisor": None,
                "keeper": None,
                "processes": (),
            }
        )
