"""A bench of a real engine that meets a fault in the middle of its first measured pass.

`python -m tests.parts.bench_fault_jobs ENGINE RESULTS FAULT [CGROUP]`: a process of its own, as
PostgreSQL refuses root. Queries are the engine's own words for what the fault needs; the second
query and the second block meet none.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

from atoll.bench import deploy, passes
from atoll.bench.axes import Axis, Grid
from atoll.bench.job import NAME, BenchRequest, Length, make_job
from atoll.bench.results import ResultsWriter
from atoll.bench.runner import Bench
from atoll.host.local import LocalHost
from atoll.host.topology import read_machine
from atoll.inspect.processes import descendants, process_table
from atoll.supervise import records
from tests.parts.bench import FakeWork

QUERY_LIMIT_S = 20.0  # of one that hangs
FAULTS = ("hung", "killed for memory", "refused memory", "full disk")

_HOST = LocalHost()
_EASY = "select 1"
# Needs 300 MB at once, so that the engine's small requests do not meet the limit by chance.
_LARGE = "select length(repeat('x', 300000000))"
_SPILLING = {  # needs more of the disk than the test gives
    "duckdb": "set memory_limit = '40MB'; set threads = 1;"
    "select max(h) from (select hash(range) as h, range as r from range(8000000) "
    "order by h offset 1000000)",
    "postgresql": "set work_mem = '64kB';"
    "select count(*) from (select g from generate_series(1, 20000000) g order by -g offset 9) s",
}
_MORE_BYTES = 64 << 20


@dataclass
class Work(FakeWork):
    """Asks something easy, but for the first measured pass."""

    engine: str = ""
    fault: str = ""
    cgroup: str = ""
    asked: list[str] = field(default_factory=list)

    def sql(self, engine: str, query: str) -> str:
        text = _EASY
        if len(self.asked) == 2:
            text = self._meet()
        self.asked.append(text)
        return text

    def _meet(self) -> str:
        if self.fault == "hung":
            for pid in engines():
                os.kill(pid, signal.SIGSTOP)
        elif self.fault == "killed for memory":
            for pid in engines():
                Path(self.cgroup, "cgroup.procs").write_text(str(pid))
            return _LARGE
        elif self.fault == "refused memory":
            for pid in engines():
                limit = int(Path(f"/proc/{pid}/statm").read_text().split()[0]) * os.sysconf(
                    "SC_PAGE_SIZE"
                )
                resource.prlimit(pid, resource.RLIMIT_AS, (limit + _MORE_BYTES,) * 2)
            return _LARGE
        else:
            return _SPILLING[self.engine]
        return _EASY


def engines() -> list[int]:
    """All processes below the supervisor."""
    record = records.read(NAME)
    assert record is not None and record.supervisor is not None
    return [one.pid for one in descendants(process_table(_HOST), record.supervisor.pid)]


def main(engine: str, path: str, fault: str, cgroup: str = "") -> None:
    request = BenchRequest(
        targets=(engine,),
        suite="tpch",
        scale_factor=0.01,
        grid=Grid((Axis("policy", ("wim",)),)),
        queries="1,6",
        length=Length(2),
        query_limit_s=QUERY_LIMIT_S if fault == "hung" else 120.0,
        command="atoll bench",
    )
    job = make_job(request, host=_HOST, machine=read_machine(), progress=lambda doing, share: None)
    deployer = job.deployer(job.header.machine, _HOST, lambda line: None)
    work = Work(engine=engine, fault=fault, cgroup=cgroup)
    # The client of one that hangs gives up first, also where the machine stands still meanwhile.
    patient = mock.patch.object(passes, "SLACK_S", 120.0)
    brief = mock.patch.object(deploy, "_CONNECT_S", 10.0)  # of the look whether it lives
    with patient, brief, ResultsWriter.create(Path(path), job.header) as writer:
        Bench(job.header, _HOST, deployer, work, writer.append, lambda tick: None).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
