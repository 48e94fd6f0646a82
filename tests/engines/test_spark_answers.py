"""Spark through its SQL host: two workers with one executor each, all answers of TPC-H.

Spark is started once for this file, its memory bound and its master and driver in slot 0, so that
both can be looked for. Without a JDK 17 all of it is skipped, with the reason.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from atoll.engines.api import CountingClient
from atoll.engines.sql.client import SocketClient
from atoll.errors import EngineFailed
from atoll.plan.coordinator import CoordinatorChoice
from atoll.schema.cpulist import format_cpulist
from atoll.schema.deployment import Role
from atoll.schema.plan import CoordinatorKind, MemoryPolicy
from atoll.supervise.launch import Running
from tests.parts.answers import SOME_OF_TPCH, TPCH, attach, data_at, deployed, difference

pytestmark = pytest.mark.installed


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with deployed(
        "spark",
        instances=2,
        memory=MemoryPolicy.BIND,
        coordinator=CoordinatorChoice(CoordinatorKind.IN_WORKER),
    ) as up:
        yield up


@pytest.mark.parametrize(
    ("scale_factor", "queries"),
    [
        pytest.param(0.01, SOME_OF_TPCH, id="some"),
        *(
            pytest.param(scale, TPCH.query_names, id=str(scale), marks=pytest.mark.long)
            for scale in (0.01, 0.1, 1.0)
        ),
    ],
)
def test_answers(running: Running, scale_factor: float, queries: Sequence[str]) -> None:
    data = data_at(scale_factor)
    (client,) = running.clients
    attach(client, "spark", data)
    wrong = {query: said for query in queries if (said := difference(client, "spark", query, data))}
    assert wrong == {}


def test_every_worker_has_one_executor_inside_its_slot(running: Running) -> None:
    found = executors(running)
    assert sorted(found) == [slot.index for slot in running.deployment.plan.slots]
    for slot in running.deployment.plan.slots:
        (executor,) = found[slot.index]
        assert slot.cpus is not None
        assert cpus_of_threads(executor) <= set(slot.cpus)


def test_executors_inherit_the_memory_policy_of_their_slot(running: Running) -> None:
    found = executors(running)
    for slot in running.deployment.plan.slots:
        wanted = f" bind:{format_cpulist(slot.memory_nodes)} "
        (executor,) = found[slot.index]
        maps = Path(f"/proc/{executor}/numa_maps").read_text().splitlines()
        heap = max((line for line in maps if " anon=" in line), key=pages)
        assert wanted in heap


def test_master_and_driver_have_the_coordinators_place(running: Running) -> None:
    first = running.deployment.plan.slots[0]
    coordinators = {
        process.id.pid
        for process in running.deployment.processes
        if process.spec.role is not Role.WORKER and process.id
    }
    assert len(coordinators) == 2
    for pid in family(coordinators):  # the driver's JVM is a child of the SQL host
        assert cpus_of_threads(pid) <= set(first.cpus or ())


def test_the_event_log_tells_what_each_query_took(running: Running) -> None:
    (client,) = running.clients
    assert isinstance(client, CountingClient)
    attach(client, "spark", data_at(0.01))
    client.work(timeout_s=60)
    texts = TPCH.queries("spark")
    tickets = {name: client.execute(texts[name], timeout_s=300).ticket for name in ("q1", "q18")}
    work = client.work(timeout_s=60)
    # Tables that are broadcast are read in jobs of their own: those are the query's too.
    assert set(work) == set(tickets.values())
    for name in tickets:
        mine = work[tickets[name]]
        assert mine.tasks and mine.run_s and mine.shuffle_bytes and mine.read_bytes
        assert (mine.gc_s or 0) <= mine.run_s and mine.spilled_bytes == 0
    heaps = sum(slot.heap_bytes for slot in running.deployment.plan.slots)
    assert 0 < (work[tickets["q18"]].peak_bytes or 0) < heaps
    assert client.work(timeout_s=60) == {}


def test_both_executors_share_the_scan_of_lineitem(running: Running) -> None:
    (client,) = running.clients
    attach(client, "spark", data_at(0.1))
    rows = client.execute(
        "select spark_partition_id(), count(*) from lineitem group by 1", timeout_s=120
    ).rows
    assert len(rows) >= len(running.deployment.plan.slots)
    assert min(count for _, count in rows) > 0


def test_a_query_that_takes_too_long_is_cancelled_and_the_next_one_runs(running: Running) -> None:
    (path,) = running.deployment.endpoints
    client = SocketClient(path, timeout_s=60)
    with pytest.raises(EngineFailed, match="cancelled"):
        client.execute("select count(*) from range(1000000) a, range(1000000) b", timeout_s=2)
    again = SocketClient(path, timeout_s=60)
    assert again.execute("select 1", timeout_s=60).rows == [(1,)]
    again.close()


def test_an_error_is_one_line(running: Running) -> None:
    with pytest.raises(EngineFailed, match="frob") as caught:
        running.clients[0].execute("select frob", timeout_s=60)
    assert "\n" not in str(caught.value)


def test_ports_are_on_loopback_only(running: Running) -> None:
    """Every TCP socket that listens and belongs to the deployment."""
    pids = {process.id.pid for process in running.deployment.processes if process.id}
    inodes = {inode for pid in family(pids) for inode in sockets_of(pid)}
    listening = {
        (table, fields[1].rsplit(":", 1)[0])
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]
        if (fields := line.split())[3] == "0A" and fields[9] in inodes
    }
    loopback = {("tcp", "0100007F"), ("tcp6", "0000000000000000FFFF00000100007F")}
    assert listening
    assert listening <= loopback


def test_a_lost_executor_fails_the_query_though_its_worker_starts_another(
    running: Running,
) -> None:
    """The last test of this file: the deployment is not what was planned from here on."""
    (client,) = running.clients
    (executor,) = executors(running)[0]
    os.kill(executor, signal.SIGKILL)

    def until_noticed() -> None:
        while True:
            client.execute("select count(*) from range(1000)", timeout_s=120)

    with pytest.raises(EngineFailed, match="executors were lost"):
        until_noticed()


def executors(running: Running) -> dict[int, list[int]]:
    """Slot -> pids of the JVMs that its worker has started."""
    return {
        process.spec.slot: children(process.id.pid)
        for process in running.deployment.processes
        if process.spec.role is Role.WORKER and process.spec.slot is not None and process.id
    }


def children(pid: int) -> list[int]:
    """Direct children; they are asked for by thread, since any of a JVM's may have forked."""
    found = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread that has ended meanwhile
            found += [int(child) for child in path.read_text().split()]
    return found


def cpus_of_threads(pid: int) -> set[int]:
    found: set[int] = set()
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(ProcessLookupError):
            found |= os.sched_getaffinity(int(task.name))
    return found


def pages(line: str) -> int:
    return next(int(word[5:]) for word in line.split() if word.startswith("anon="))


def family(pids: set[int]) -> set[int]:
    return pids | {child for pid in pids for child in family(set(children(pid)))}


def sockets_of(pid: int) -> set[str]:
    found = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = os.readlink(link)
        except FileNotFoundError:  # closed while we look
            continue
        if target.startswith("socket:["):
            found.add(target[8:-1])
    return found
