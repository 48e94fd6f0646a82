"""Flink, started, profiled, placed and measured as `atoll operators` does it, and looked at from
outside."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from atoll.engines.availability import look
from atoll.engines.flink.program import FlinkProgram, table
from atoll.engines.flink.running import FlinkJob
from atoll.errors import UsageError
from atoll.host.local import LocalHost
from atoll.host.topology import read_machine
from atoll.inspect.processes import process_table
from atoll.operators.place import place
from atoll.schema.operator_graph import OperatorGraph, Source

pytestmark = pytest.mark.installed

HOST = LocalHost()
CPUS = sorted(os.sched_getaffinity(0))
PATIENCE_S = 300.0
OWNER = """
import sys
from pathlib import Path
from atoll.engines.flink.program import FlinkProgram
from atoll.host.local import LocalHost
with FlinkProgram().start(LocalHost(), Path(sys.argv[1]), [0]):
    pass
"""


def jvms(folder: Path) -> list[int]:
    """The processes whose arguments name the folder."""
    found = []
    for pid in process_table(HOST):
        try:
            arguments = HOST.read_text(f"/proc/{pid}/cmdline").split("\0")
        except OSError:
            continue
        if arguments[0].endswith("java") and f"{folder}/conf" in arguments:
            found.append(pid)
    return found


def until_none(folder: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while jvms(folder):
        assert time.monotonic() < deadline, "a JVM of Flink is left"
        time.sleep(0.1)


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    state = look("flink", HOST)
    if state.state != "ready":
        pytest.skip(f"Flink is {state.state}: {state.why}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("flink")


@pytest.fixture(scope="module")
def running(folder: Path) -> Iterator[FlinkJob]:
    with FlinkProgram().start(HOST, folder, CPUS) as running:
        assert len(jvms(folder)) == 2
        yield running
    assert jvms(folder) == []
    assert [path for path in folder.glob("tmp/*") if path.is_socket()] == []


@pytest.fixture(scope="module")
def graph(running: FlinkJob) -> OperatorGraph:
    return running.profile(4.0)


def test_every_operator_of_the_table_is_profiled(graph: OperatorGraph) -> None:
    assert len(graph.operators) == len(table()) == 44
    names = {name.removeprefix("Source: ").removesuffix(": Writer") for name in ids(graph)}
    assert names == {each["name"] for each in table()}
    assert len(graph.edges) == sum(len(each.get("from", ())) for each in table())
    for operator in graph.operators:
        assert operator.activity is not None, operator.id
        assert operator.activity.duty.value > 0, operator.id
    assert graph.rate is not None
    assert graph.rate.value > 0
    sources = {edge.bytes_per_s.source for edge in graph.edges if edge.bytes_per_s}
    assert Source.MEASURED in sources


def ids(graph: OperatorGraph) -> set[str]:
    return {operator.id for operator in graph.operators}


def test_the_packed_deployment_binds_every_thread(running: FlinkJob, graph: OperatorGraph) -> None:
    machine = read_machine()
    packed = place(graph, machine, headroom=0.1)
    running.place(packed)
    cpu_of = {name: unit.cpu for unit in packed.units for name in unit.operators}
    (pid,) = {one.pid for one in running.threads()}
    # From outside: the kernel has the first 15 bytes of each name.
    own = 0
    for name in os.listdir(f"/proc/{pid}/task"):
        comm = Path(f"/proc/{pid}/task/{name}/comm").read_text().rstrip("\n")
        masks = {
            frozenset({cpu})
            for operator, cpu in cpu_of.items()
            if f"{operator} (1/1)#0"[:15] == comm
        }
        if masks:
            own += 1
            assert os.sched_getaffinity(int(name)) in masks, comm
    assert own == 44
    running.place(place(graph, machine, deployment="os"))
    assert {frozenset(os.sched_getaffinity(one.tid)) for one in running.threads()} == {
        frozenset(CPUS)
    }


def test_an_operator_per_core_needs_as_many_cores(graph: OperatorGraph) -> None:
    if len(CPUS) >= 44:
        pytest.skip("this machine has a core for each")
    with pytest.raises(UsageError, match="44 cores"):
        place(graph, read_machine(), deployment="per-core")


def test_it_is_measured_by_what_reaches_the_sinks(running: FlinkJob) -> None:
    found = running.measure(3.0)
    assert len(found.per_window) == 3
    assert all(rate > 0 for rate in found.per_window)
    assert 0 < found.p50_ms <= found.p90_ms <= found.p99_ms


def test_a_job_that_runs_elsewhere_can_be_placed_but_not_measured(running: FlinkJob) -> None:
    with FlinkProgram().attach(HOST, f"{running.rest.url}/jobs/{running.job}") as attached:
        assert {one.tid for one in attached.threads()} == {one.tid for one in running.threads()}
        with pytest.raises(UsageError, match="only Atoll's own"):
            attached.measure(1.0)


def test_nothing_is_left_after_kill_9(tmp_path: Path) -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER, str(tmp_path)])
    try:
        deadline = time.monotonic() + PATIENCE_S
        while len(jvms(tmp_path)) < 2:
            assert owner.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
    finally:
        owner.send_signal(signal.SIGKILL)
        owner.wait()
    until_none(tmp_path)
