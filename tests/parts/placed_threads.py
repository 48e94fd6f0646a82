"""A made-up deployment with thread placement: a supervisor, one worker, and threads with masks."""

from __future__ import annotations

from atoll.inspect.processes import attribute, process_table
from atoll.schema.deployment import Deployment, ProcessId, ProcessRecord, ProcessSpec, Role, State
from atoll.schema.plan import Placement
from tests.parts.fake_host import FakeHost
from tests.parts.proc import stat
from tests.parts.toy import toy_plan

SUPERVISOR, WORKER = 50, 60


class PlacedHost(FakeHost):
    """A supervisor with one worker; counts what it asks JVMs."""

    def __init__(self) -> None:
        super().__init__(affinity=frozenset(range(4)))
        self.asked = 0
        self.add(SUPERVISOR, 1)
        self.add(WORKER, SUPERVISOR)

    def add(self, pid: int, parent: int, title: str = "") -> None:
        self.files |= {
            f"/proc/{pid}/stat": stat(pid, parent),
            f"/proc/{pid}/environ": "",
            f"/proc/{pid}/cmdline": title,
            f"/proc/{pid}/maps": "7f00-7f01 r-xp 0 08:01 7 /jdk/lib/server/libjvm.so\n",
        }

    def origins(self) -> dict[int, ProcessRecord]:
        return attribute(self, deployment(0, 1, 2, 3), process_table(self))

    def thread(self, tid: int, comm: str, *cpus: int, pid: int = WORKER) -> None:
        self.files[f"/proc/{pid}/task/{tid}/comm"] = f"{comm}\n"
        if cpus:
            self.masks[tid] = frozenset(cpus)

    def end(self, tid: int, status: int = 0) -> None:
        del self.files[f"/proc/{WORKER}/task/{tid}/comm"]

    def ask_jvm(self, pid: int, command: str, *, timeout_s: float) -> str:
        self.asked += 1
        return super().ask_jvm(pid, command, timeout_s=timeout_s)


def deployment(*cpus: int) -> Deployment:
    """Its slot has these CPUs, in this order."""
    plan = toy_plan(1, placement=Placement.DENSE)
    slot = plan.slots[0].model_copy(update={"cpus": tuple(sorted(cpus)), "thread_cpus": cpus})
    plan = plan.model_copy(update={"slots": (slot,)})
    spec = ProcessSpec(name="worker-0", role=Role.WORKER, slot=0, argv=("x",), env={}, stage=0)
    return Deployment(
        name="d",
        id="1",
        boot_id="b",
        run_dir="/r",
        scratch_dir="/s",
        plan=plan,
        state=State.READY,
        supervisor=ProcessId(pid=SUPERVISOR, start_ticks=500),
        keeper=None,
        processes=(ProcessRecord(spec=spec, id=ProcessId(pid=WORKER, start_ticks=600), log="/l"),),
        created_unix_s=0,
    )
