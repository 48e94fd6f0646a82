"""The status of a deployment: pids, CPUs, memory that a family of processes shares."""

from __future__ import annotations

from atoll.inspect.processes import PROCESS_MARK
from atoll.schema.deployment import Deployment, ProcessId, ProcessRecord, ProcessSpec, Role, State
from atoll.supervise.status import document, status
from atoll.supervise.stop import no_deployment
from tests.parts.fake_host import FakeHost
from tests.parts.toy import toy_plan


def deployment(host: FakeHost, *ids: ProcessId | None, **changes: object) -> Deployment:
    supervisor = host.spawn(["keeper"], env={}, log="").id
    processes = tuple(
        ProcessRecord(
            spec=ProcessSpec(
                name=f"worker-{i}", role=Role.WORKER, slot=i, argv=("x",), env={}, stage=0
            ),
            id=identity,
            log=f"/l/worker-{i}.log",
        )
        for i, identity in enumerate(ids)
    )
    return Deployment(
        name="mine",
        id="ab",
        boot_id="b",
        run_dir="/run/ab",
        scratch_dir="/x/ab",
        plan=toy_plan(2),
        state=State.READY,
        supervisor=supervisor,
        keeper=None,
        processes=processes,
        created_unix_s=0.0,
    ).model_copy(update=changes)


def add(host: FakeHost, pid: int, parent: int, *, mib: tuple[int, int, int], mark: str) -> None:
    """`mib`: anonymous memory, files, shared memory."""
    fields = ["S", str(parent), *["0"] * 15, "1", "0", str(pid * 10), *["0"] * 20]
    host.files[f"/proc/{pid}/stat"] = f"{pid} (x) {' '.join(fields)}"
    host.files[f"/proc/{pid}/environ"] = f"{PROCESS_MARK}={mark}\0"
    names = zip(("RssAnon", "RssFile", "RssShmem"), mib, strict=True)
    host.files[f"/proc/{pid}/status"] = "".join(f"{n}:\t {v << 10} kB\n" for n, v in names)


def test_shared_memory_of_a_family_counts_once() -> None:
    host = FakeHost(affinity=frozenset({0, 1, 2, 5}))
    server = host.spawn(["server"], env={}, log="").id
    one = deployment(host, server, None)
    assert one.supervisor is not None
    add(host, server.pid, one.supervisor.pid, mib=(10, 5, 100), mark="worker-0")
    add(host, 7001, server.pid, mib=(3, 5, 90), mark="worker-0")
    add(host, 7002, 1, mib=(500, 5, 90), mark="worker-0")  # not below the supervisor
    found = status(one, host)
    first, second = found.processes
    assert (first.pid, first.cpus, first.memory_bytes) == (server.pid, "0-2,5", (13 + 105) << 20)
    assert (second.pid, second.cpus, second.memory_bytes) == (None, "", 0)
    assert document(found)["processes"] == [
        first.model_dump(mode="json"),
        second.model_dump(mode="json"),
    ]


def test_a_failed_one_has_no_uptime_and_no_processes() -> None:
    host = FakeHost()
    gone = host.spawn(["server"], env={}, log="").id
    host.end(gone.pid, -9)
    one = deployment(host, gone, state=State.FAILED, error="boom", supervisor=None)
    found = document(status(one, host))
    assert (found["state"], found["error"], found["uptime_s"]) == ("failed", "boom", None)


def test_a_name_that_is_not_up_is_answered_with_those_that_are() -> None:
    known = (
        ("none is up", ()),
        ("spark is up", ("spark",)),
        ("spark, trino are up", ("trino", "spark")),
    )
    for words, names in known:
        assert str(no_deployment("x", names)) == f"no deployment 'x'; {words}"
