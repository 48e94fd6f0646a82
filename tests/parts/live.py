"""A made-up deployment that is up, for the tests of live views: two slots on a machine of eight
CPUs and two nodes, a process each, threads as a test adds them."""

from __future__ import annotations

import os

from atoll.host.api import FileId
from atoll.schema.deployment import Deployment, ProcessId, ProcessRecord, ProcessSpec, Role, State
from atoll.schema.inspection import Finding, Severity
from atoll.schema.live import DeploymentView, LiveView, SlotView
from atoll.schema.plan import MemoryPolicy
from atoll.supervise import records
from tests.parts.fake_host import FakeProcess
from tests.parts.proc import Proc
from tests.parts.toy import toy_plan

SUPERVISOR = 10
WORKERS = (11, 12)
SLOTS = ((0, 1, 2, 3), (4, 5, 6, 7))
_TICKS_PER_S = 100


class LiveHost(Proc):
    """Remembers what it was asked to read."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[str] = []
        self.parents: dict[int, int] = {}
        self.files |= {
            records.BOOT_ID: "this-boot\n",
            "/proc/self/mountinfo": "",
            "/proc/stat": "cpu  0 0 0 0 0 0 0 0\n",
            "/sys/devices/system/node/has_memory": "0-1\n",
            "/sys/devices/system/node/node0/cpulist": "0-3\n",
            "/sys/devices/system/node/node1/cpulist": "4-7\n",
            "/sys/devices/system/cpu/online": "0-7\n",
        }
        del self.files["/proc/self"]
        self.add(SUPERVISOR, comm="supervisor")
        for pid, cpus in zip(WORKERS, SLOTS, strict=True):
            self.add_worker(pid, cpus)

    def add_worker(self, pid: int, cpus: tuple[int, ...], parent: int = SUPERVISOR) -> None:
        self.add(pid, comm="server")
        self.parents[pid] = parent
        self.masks[pid] = frozenset(cpus)
        self.run_thread(pid, pid, cpu=cpus[0])
        node = cpus[0] // 4
        self.files[f"/proc/{pid}/numa_maps"] = (
            f"5500 bind:{node} file=/bin/server mapped=2 N{node}=2 kernelpagesize_kB=4\n"
        )

    def run_thread(
        self, pid: int, tid: int, *, cpu: int, cpu_s: float = 0.0, migrations: int = 0
    ) -> None:
        """What the thread has done since it began; it ran on `cpu` last."""
        ticks = round(cpu_s * _TICKS_PER_S)
        fields = ["S", str(self.parents[pid]), *["0"] * 9, str(ticks), *["0"] * 5, "1", "0"]
        fields += [str(pid * 10), *["0"] * 16, str(cpu), "0", "0"]
        text = f"{tid} (server) {' '.join(fields)}\n"
        folder = f"/proc/{pid}/task/{tid}"
        self.files |= {
            f"{folder}/stat": text,
            f"{folder}/comm": "server\n",
            f"{folder}/sched": f"se.nr_migrations  : {migrations}\n",
        }
        if tid == pid:
            self.files |= {f"/proc/{pid}/stat": text, f"/proc/{pid}/sched": ""}

    def adopt(self, pid: int, parent: int) -> None:
        """Its parent has ended; `parent` is the new one."""
        self.parents[pid] = parent
        self.run_thread(pid, pid, cpu=0)

    def reuse_pid(self, pid: int, start_ticks: int) -> None:
        """It ended, and the kernel gave its pid to a process outside of the deployment."""
        self.end_process(pid)
        self.add_worker(pid, SLOTS[0], parent=0)
        path = f"/proc/{pid}/stat"
        self.files[path] = self.files[path].replace(f" {pid * 10} ", f" {start_ticks} ")
        self.processes[pid] = FakeProcess(ProcessId(pid=pid, start_ticks=start_ticks), (), {})

    def end_process(self, pid: int) -> None:
        self.end(pid, 0)
        for path in [path for path in self.files if path.startswith(f"/proc/{pid}/")]:
            del self.files[path]

    def read_text(self, path: str) -> str:
        self.reads.append(path)
        return super().read_text(path)

    def file_id(self, path: str) -> FileId:
        found = os.stat(path)
        return FileId(found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size)


def live_record(host: LiveHost, name: str = "sea") -> Deployment:
    """The record of that deployment, also written to disk."""
    plan = toy_plan(2)
    slots = tuple(
        slot.model_copy(
            update={
                "cpus": cpus,
                "nodes": (slot.index,),
                "memory_policy": MemoryPolicy.BIND,
                "memory_nodes": (slot.index,),
            }
        )
        for slot, cpus in zip(plan.slots, SLOTS, strict=True)
    )
    record = Deployment(
        name=name,
        id="d1",
        boot_id="this-boot",
        run_dir="/run/sea",
        scratch_dir="/scratch/sea",
        plan=plan.model_copy(update={"slots": slots}),
        state=State.READY,
        supervisor=host.processes[SUPERVISOR].id,
        keeper=None,
        processes=tuple(
            ProcessRecord(
                spec=ProcessSpec(
                    name=f"worker-{slot}", role=Role.WORKER, slot=slot, argv=("x",), env={}, stage=0
                ),
                id=host.processes[pid].id,
                log="/log",
            )
            for slot, pid in enumerate(WORKERS)
        ),
        created_unix_s=0.0,
    )
    records.write(record)
    return record


def live_view(slots: int, *, drift: int = 0) -> LiveView:
    """A deployment of chiplets of eight CPUs, each slot half busy; `drift`: findings of slot 0."""
    finding = Finding(
        code="thread-outside",
        severity=Severity.DRIFT,
        process="worker-0",
        pid=7,
        tid=8,
        comm="evil",
        expected="CPUs 0-7",
        found="CPUs 9",
        cause="somebody moved it",
        remedy="move it back",
    )
    return LiveView(
        at_unix_s=1.0,
        interval_s=2.0,
        cost=0.002,
        cpu_busy=dict.fromkeys(range(8 * slots), 0.6),
        deployments=(
            DeploymentView(
                name="sea",
                engine="toy",
                policy="wicp",
                state=State.READY,
                up_s=61.0,
                slots=tuple(
                    SlotView(
                        slot=slot,
                        cpus=f"{8 * slot}-{8 * slot + 7}",
                        masked=True,
                        processes=1,
                        threads=10,
                        cpu=1.5,
                        cpu_seconds=100.0,
                        outside=0 if slot else drift,
                        home_share=0.97,
                        migrations_per_s=3.0,
                        migrations=300,
                        bytes_by_node={0: 1 << 31},
                        local_share=0.9,
                        bytes_per_s=2e9,
                        local_bytes_per_s=1e9,
                        drift=0 if slot else drift,
                        masks_age_s=2.0,
                        runs_age_s=4.0,
                        memory_age_s=40.0,
                    )
                    for slot in range(slots)
                ),
                findings=(finding,) * min(drift, 1),
                drift_by_code={"thread-outside": drift} if drift else {},
            ),
        ),
    )
