"""A job that somebody else runs: found, watched and placed, with a JobManager and a /proc that are
made up."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from atoll.engines.availability import catalog, look
from atoll.engines.flink.program import FlinkProgram
from atoll.engines.flink.rest import Rest
from atoll.engines.placeable import OperatorThread
from atoll.errors import EngineFailed, ServerGone, UsageError
from tests.parts.placed import placement
from tests.parts.proc import Proc

PID, PORT = 70, 20001
SOURCE, FLUSHER, MAP, COLLECTOR = 71, 72, 73, 74
NAMES = {
    SOURCE: "Source: a (1/1)#0",
    FLUSHER: "OutputFlusher for Source: a (1/1)#0",
    MAP: "b (1/1)#0",
    COLLECTOR: "VM Thread",
}


class JobManager:
    """Answers with its documents; every look at the job finds more records."""

    def __init__(self) -> None:
        self.state = "RUNNING"
        self.looks = 0
        self.status = 200
        self.answers: dict[str, Any] = {
            "/jobs/overview": {"jobs": [self.line("1")]},
            "/taskmanagers": {"taskmanagers": [self.manager("127.0.0.1")]},
            "/jobs/1/exceptions": {
                "exceptionHistory": {
                    "entries": [{"exceptionName": "x.Y", "stacktrace": "x.Y: no disk\n\tat z"}]
                }
            },
        }

    def line(self, job: str) -> dict[str, Any]:
        return {"jid": job, "name": "j", "state": "RUNNING", "tasks": {"running": 2, "total": 2}}

    def manager(self, address: str) -> dict[str, Any]:
        path = f"pekko.ssl.tcp://flink@{address}:{PORT}/user/rpc/taskmanager_0"
        return {"id": f"{address}:{PORT}-abc", "path": path}

    def job(self) -> dict[str, Any]:
        self.looks += 1
        given = {"write-bytes": 640 * self.looks, "write-records": 10 * self.looks}
        taken = {"read-bytes": 640 * self.looks, "accumulated-busy-time": 7.0 * self.looks}
        return {
            "jid": "1",
            "name": "j",
            "state": self.state,
            "vertices": [
                {"id": "v1", "name": "Source: a", "parallelism": 1, "metrics": given},
                {"id": "v2", "name": "b", "parallelism": 1, "metrics": taken},
            ],
            "plan": {
                "nodes": [
                    {"id": "v1", "description": "Source: a"},
                    {"id": "v2", "inputs": [{"id": "v1", "ship_strategy": "HASH"}]},
                ]
            },
        }

    def answer(self, path: str) -> tuple[int, bytes]:
        if self.status != 200:
            return self.status, b'{"errors":["first: why","second"]}'
        found = self.job() if path == "/jobs/1" else self.answers.get(path)
        if found is None:
            return 404, b"nothing"
        return 200, json.dumps(found).encode()


@pytest.fixture
def manager() -> JobManager:
    return JobManager()


@pytest.fixture
def url(manager: JobManager) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, text = manager.answer(self.path)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class Machine(Proc):
    """A task manager with two operators; each look at a thread finds it 10 ms of CPU further."""

    def __init__(self) -> None:
        super().__init__()
        self.dumps = 0
        self.ends: set[int] = set()  # threads that end as they are bound
        self.used_ns = dict.fromkeys(NAMES, 0)
        self.add(PID, comm="java")
        row = f"0: 0100007F:{PORT:04X} 00000000:0000 0A 0:0 0:0 0 0 0 99"
        self.files |= {"/proc/net/tcp": f"head\n{row}\n", f"/proc/{PID}/fd/5": "socket:[99]"}
        for tid in NAMES:
            self.add_thread(PID, tid, "0-7")
            self.files[f"/proc/{PID}/task/{tid}/schedstat"] = ""

    def read_text(self, path: str) -> str:
        found = super().read_text(path)
        if path.endswith("/schedstat"):
            tid = int(path.split("/")[-2])
            self.used_ns[tid] += 10_000_000
            return f"{self.used_ns[tid]} 0 0\n"
        return found

    def ask_jvm(self, pid: int, command: str, *, timeout_s: float) -> str:
        assert (pid, command) == (PID, "Thread.print")
        self.dumps += 1
        return "".join(f'"{name}" #1 nid={tid:#x} runnable\n' for tid, name in NAMES.items())

    def set_affinity(self, tid: int, cpus: frozenset[int]) -> None:
        if tid in self.ends:
            for path in [path for path in self.files if f"/task/{tid}/" in path]:
                del self.files[path]
            raise ProcessLookupError
        super().set_affinity(tid, cpus)


@pytest.fixture
def host() -> Machine:
    return Machine()


def test_threads_are_found_with_one_dump(host: Machine, url: str) -> None:
    with FlinkProgram().attach(host, url) as running:
        expected = [
            OperatorThread(("Source: a",), PID, SOURCE),
            OperatorThread(("Source: a",), PID, FLUSHER),
            OperatorThread(("b",), PID, MAP),
        ]
        assert running.threads() == expected
        assert running.threads() == expected
        assert host.dumps == 1
        host.add_thread(PID, 90, "0-7")
        assert running.threads() == expected
        assert host.dumps == 2


def test_only_operators_are_bound(host: Machine, url: str) -> None:
    with FlinkProgram().attach(host, url) as running:
        running.place(placement({"Source: a": 3, "b": 4}))
    assert host.masks == {
        SOURCE: frozenset({3}),
        FLUSHER: frozenset({3}),
        MAP: frozenset({4}),
    }


def test_a_thread_that_ends_meanwhile_is_passed_over(host: Machine, url: str) -> None:
    host.ends = {FLUSHER}
    with FlinkProgram().attach(host, url) as running:
        running.place(placement({"Source: a": 3, "b": 4}))
        assert host.masks == {SOURCE: frozenset({3}), MAP: frozenset({4})}


def test_an_operator_that_the_placement_lacks(host: Machine, url: str) -> None:
    with (
        FlinkProgram().attach(host, url) as running,
        pytest.raises(UsageError, match="the placement lacks b"),
    ):
        running.place(placement({"Source: a": 3}))
    assert host.masks == {}


def test_a_profile(host: Machine, url: str) -> None:
    with FlinkProgram().attach(host, url) as running:
        graph = running.profile(3.0)
    duty = {each.id: each.activity.duty.value for each in graph.operators if each.activity}
    assert duty == pytest.approx({"Source: a": 0.2, "b": 0.1})
    (edge,) = graph.edges
    assert graph.rate is not None
    assert edge.bytes_per_s is not None
    assert edge.bytes_per_s.value == pytest.approx(64 * graph.rate.value)
    (overlap,) = graph.overlaps
    assert overlap.share == 1
    assert any("0.00 of a core" in note for note in graph.notes)


def test_a_profile_has_no_measured_throughput(host: Machine, url: str) -> None:
    with (
        FlinkProgram().attach(host, url) as running,
        pytest.raises(UsageError, match="only Atoll's own"),
    ):
        running.measure(1.0)


def test_a_job_that_failed_is_reported_with_its_cause(
    host: Machine, url: str, manager: JobManager
) -> None:
    with FlinkProgram().attach(host, url) as running:
        manager.state = "FAILED"
        with pytest.raises(EngineFailed, match=r"job 'j' of .* is FAILED: x.Y: no disk$"):
            running.threads()


@pytest.mark.parametrize("address", ["192.0.2.7", "[", "x" * 64])
def test_a_task_manager_elsewhere(
    host: Machine, url: str, manager: JobManager, address: str
) -> None:
    manager.answers["/taskmanagers"] = {"taskmanagers": [manager.manager(address)]}
    with (
        FlinkProgram().attach(host, url) as running,
        pytest.raises(EngineFailed, match=rf"no task manager runs on this .*{re.escape(address)}"),
    ):
        running.threads()


def test_which_job(host: Machine, url: str, manager: JobManager) -> None:
    manager.answers["/jobs/overview"] = {"jobs": [manager.line("1"), manager.line("2")]}
    with (
        pytest.raises(UsageError, match=r"several jobs run there: 1 \(j\), 2 \(j\)"),
        FlinkProgram().attach(host, url),
    ):
        pass
    with FlinkProgram().attach(host, f"{url}/jobs/1") as running:
        assert len(running.threads()) == 3
    manager.answers["/jobs/overview"] = {"jobs": []}
    with (
        pytest.raises(UsageError, match="no job runs there"),
        FlinkProgram().attach(host, url),
    ):
        pass


@pytest.mark.parametrize(
    "wrong",
    [
        "ftp://x",
        "http://",
        "http://x:y",
        "http://u:p@x",
        "http://x/?a=b",
        "http://x/y",
        "http://[x",
        "http://a b",
        "http://\0/",
    ],
)
def test_urls_that_are_refused(wrong: str) -> None:
    with pytest.raises(UsageError, match=r"give http\(s\)://HOST") as fault:
        Rest.at(wrong)
    assert "u:p" not in str(fault.value)


def test_urls() -> None:
    assert Rest.at("http://h").url == "http://h:8081"
    assert Rest.at("https://h/").url == "https://h:443"
    assert Rest.at("http://[::1]:9").url == "http://[::1]:9"


def test_refusals(url: str, manager: JobManager) -> None:
    rest = Rest.at(url)
    with pytest.raises(EngineFailed, match=r"/jobs/9: refused with status 404: nothing$"):
        rest.job("9")
    manager.status = 503
    with pytest.raises(ServerGone, match=r"status 503: first: why$"):
        rest.overview()
    with pytest.raises(ServerGone, match="no Flink JobManager answers"):
        Rest("http", "127.0.0.1", 1).overview()
    with pytest.raises(ServerGone, match="no Flink JobManager answers"):
        Rest.at(f"http://{'x' * 64}").overview()


def test_it_is_installed_as_engines_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    parts = catalog()["flink"]
    assert [part.name.partition("-")[0] for part in parts] == ["flink", "openjdk"]
    state = look("flink", Proc())
    assert (state.state, state.version) == ("missing", "")
    assert state.why.endswith("install it with: atoll engine install flink")
