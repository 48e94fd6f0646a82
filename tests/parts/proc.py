"""A made-up /proc with processes of one thread, for the tests of inspect."""

from __future__ import annotations

from atoll.schema.deployment import ProcessId
from tests.parts.fake_host import FakeHost, FakeProcess


def stat(pid: int, parent: int, comm: str = "x", state: str = "S", cpu: int = 1) -> str:
    middle = " ".join(["0"] * 17)
    tail = " ".join(["0"] * 16)
    return f"{pid} ({comm}) {state} {parent} {middle} {pid * 10} {tail} {cpu} 0 0\n"


NUMA_MAPS = "5500 bind:0 file=/bin/server mapped=2 N0=2 kernelpagesize_kB=4\n"


class Proc(FakeHost):
    """A /proc with processes of one thread; paths in `faults` raise their errno."""

    def __init__(self) -> None:
        super().__init__(affinity=frozenset(range(8)))
        self.faults: dict[str, int] = {}
        self.files["/proc/self"] = "1"

    def add(self, pid: int, *, comm: str = "server", uid: int = 0, argv: str = "") -> None:
        status = (
            f"Tgid:\t{pid}\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\nCpus_allowed_list:\t0-3\n"
            "Mems_allowed_list:\t0-1\nVmRSS:\t      8 kB\n"
        )
        for folder in (f"/proc/{pid}", f"/proc/{pid}/task/{pid}"):
            self.files[f"{folder}/stat"] = stat(pid, 1, comm=comm)
            self.files[f"{folder}/status"] = status
        self.files |= {
            f"/proc/{pid}/numa_maps": NUMA_MAPS,
            f"/proc/{pid}/maps": "5500-7500 r-xp 0 08:01 7 /bin/server\n",
            f"/proc/{pid}/mountinfo": "",
            f"/proc/{pid}/smaps_rollup": "",
            f"/proc/{pid}/cmdline": argv,
            f"/proc/{pid}/environ": "",
            f"/proc/{pid}/exe": "/bin/server",
            f"/proc/{pid}/fd/0": "/dev/null",
        }
        self.processes[pid] = FakeProcess(ProcessId(pid=pid, start_ticks=pid * 10), (), {})

    def add_thread(self, pid: int, tid: int, cpus: str) -> None:
        """Bound to these."""
        folder = f"/proc/{pid}/task/{tid}"
        self.files[f"{folder}/stat"] = stat(tid, 1, comm=f"worker-{tid}")
        self.files[f"{folder}/status"] = f"Cpus_allowed_list:\t{cpus}\nMems_allowed_list:\t0-1\n"

    def _check(self, path: str) -> None:
        if path in self.faults:
            raise OSError(self.faults[path], "refused", path)

    def read_text(self, path: str) -> str:
        self._check(path)
        return super().read_text(path)

    def read_bytes(self, path: str, *, offset: int = 0, size: int | None = None) -> bytes:
        self._check(path)
        return super().read_bytes(path, offset=offset, size=size)
