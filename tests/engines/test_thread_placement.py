"""Thread placement as it is enacted: every thread looked at from outside, and by `verify`.

DuckDB here, and a program whose OpenMP runtime binds its threads. Other engines are in
test_every_engine.py, machines with several nodes and chiplets in tests/vm/test_thread_placement.py.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from atoll.engines import registry
from atoll.engines.api import Installation, Layout
from atoll.errors import EngineFailed
from atoll.plan import make_plan
from atoll.schema.deployment import ProcessId
from atoll.schema.plan import EngineTraits, Placement, Plan, TaskThreads
from atoll.supervise.launch import Running, launch
from tests.parts.deployment import HOST, until
from tests.parts.toy import ToyEngine, this_machine

PLACEMENTS = (Placement.DENSE, Placement.SPARSE)
CPUS = sorted(os.sched_getaffinity(0))
# A worker of the toy: a team as large as OpenMP makes it, whose threads stay.
TEAM = r"""
#include <arpa/inet.h>
#include <cstdlib>
#include <sys/socket.h>
#include <unistd.h>
int main(int, char** argv) {
#pragma omp parallel
  {
#pragma omp barrier
  }
  sockaddr_in to{AF_INET, htons(atoi(argv[1])), {htonl(INADDR_LOOPBACK)}, {}};
  int link = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(link, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) return 1;
  char byte = 'w';
  return write(link, &byte, 1) == 1 && read(link, &byte, 1) == 0 ? 0 : 1;
}
"""

pytestmark = pytest.mark.skipif(len(CPUS) < 2, reason="needs two CPUs to tell threads apart")


def masks(process: ProcessId) -> dict[int, tuple[str, list[int]]]:
    """Thread -> its name and its CPUs."""
    found = {}
    for name in os.listdir(f"/proc/{process.pid}/task"):
        comm = Path(f"/proc/{process.pid}/task/{name}/comm").read_text().strip()
        found[int(name)] = (comm, sorted(os.sched_getaffinity(int(name))))
    return found


def worker(running: Running) -> ProcessId:
    (found,) = (p.id for p in running.deployment.processes if p.spec.slot == 0)
    assert found is not None
    return found


def slot_cpus(plan: Plan) -> list[int]:
    assert plan.slots[0].cpus is not None
    return list(plan.slots[0].cpus)


@contextmanager
def busy(running: Running) -> Iterator[None]:
    """A long query, which ends when its client hangs up."""
    (client,) = registry.get("duckdb").connect(running.deployment.endpoints, timeout_s=30)
    sql = "select sum(a.range * b.range % 7) from range(1000000) a, range(1000000) b"

    def ask() -> None:
        with pytest.raises(EngineFailed):
            client.execute(sql, timeout_s=600)

    asking = threading.Thread(target=ask)
    asking.start()
    yield
    client.close()
    asking.join()


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_each_thread_of_duckdb_that_runs_tasks_has_its_own_cpu(placement: Placement) -> None:
    engine, machine = registry.get("duckdb"), this_machine()
    plan = make_plan(machine, engine.traits, "win", placement=placement)
    with launch(plan, engine, machine=machine, host=HOST, name="placed") as running, busy(running):
        process = worker(running)

        def tasks() -> list[list[int]]:
            return sorted(cpus for name, cpus in masks(process).values() if name == "duckdb-task")

        # DuckDB's own threads and the caller are as many as the slot has CPUs.
        one_each = [[cpu] for cpu in slot_cpus(plan)]
        until(lambda: tasks() == one_each, lambda: masks(process))
        # A caller that waits may keep the CPU that it had.
        others = [cpus for name, cpus in masks(process).values() if "duckdb" not in name]
        assert others and all(cpus == slot_cpus(plan) for cpus in others)
        found = running.verify(deep=False)
        assert found.drifted == 0 and found.task_threads >= len(one_each)
        if placement is Placement.DENSE:
            drifts_and_is_bound_again(running, process)


def drifts_and_is_bound_again(running: Running, process: ProcessId) -> None:
    supervisor = running.deployment.supervisor
    assert supervisor is not None
    tid, cpu = next(
        (tid, cpus) for tid, (name, cpus) in masks(process).items() if name == "duckdb-task"
    )
    HOST.signal(supervisor, signal.SIGSTOP)
    try:
        os.sched_setaffinity(tid, CPUS)
        drift = running.verify(deep=False).drift
        assert [(one.code, one.tid, one.expected) for one in drift] == [
            ("thread-unplaced", tid, f"CPU {cpu[0]}")
        ]
    finally:
        HOST.signal(supervisor, signal.SIGCONT)
    until(lambda: masks(process)[tid][1] == cpu, lambda: masks(process))
    assert running.verify(deep=False).drifted == 0


class Team(ToyEngine):
    """The toy with an OpenMP program as its worker."""

    def __init__(self, program: str) -> None:
        super().__init__()
        self._program = program

    @property
    def traits(self) -> EngineTraits:
        return super().traits.model_copy(update={"task_threads": TaskThreads(openmp=True)})

    def layout(
        self,
        plan: Plan,
        installation: Installation,
        *,
        run_dir: str,
        ports: Sequence[int],
        scratch_dir: str | None = None,
    ) -> Layout:
        layout = super().layout(plan, installation, run_dir=run_dir, ports=ports)
        coordinator, *workers = layout.processes
        argv = (self._program, str(ports[0]))
        return replace(
            layout,
            processes=(coordinator, *(spec.model_copy(update={"argv": argv}) for spec in workers)),
        )


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_the_threads_of_an_openmp_program_are_bound_by_its_runtime(
    placement: Placement, tmp_path: Path
) -> None:
    program = tmp_path / "team"
    subprocess.run(
        ["c++", "-fopenmp", "-xc++", "-", "-o", str(program)], input=TEAM, text=True, check=True
    )
    engine, machine = Team(str(program)), this_machine()
    plan = make_plan(machine, engine.traits, "win", placement=placement)
    with launch(plan, engine, machine=machine, host=HOST, name="team") as running:
        process = worker(running)
        assert Counter(cpus[0] for _, cpus in masks(process).values()) == Counter(slot_cpus(plan))
        assert all(len(cpus) == 1 for _, cpus in masks(process).values())
        assert os.sched_getaffinity(process.pid) == {plan.slots[0].thread_cpus[0]}
        found = running.verify(deep=False)
        assert (found.drifted, found.task_threads) == (0, len(slot_cpus(plan)))
