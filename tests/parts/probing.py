"""A scripted atoll-probe on a fake host: it answers from a model of a machine, takes time on the
fake clock, and can hang, die or be disturbed on request."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from atoll.probing.budget import budget
from atoll.probing.run import Progress, Run
from atoll.schema.machine import Machine
from atoll.schema.profile import Kind, Mode
from tests.parts.fake_host import FakeHost

GIB = 1 << 30
PROGRAM = "/bin/atoll-probe"
Fields = dict[str, Any]
# A request's fields -> changes to the answer's; 'hang' and 'die' do that.
Script = Callable[[Fields], Fields | str]
Latency = Callable[[int, int, int], float]  # a, b, the CPU that is home


def plain_latency(a: int, b: int, home: int) -> float:
    return 50.0


class ScriptedProbe:
    """See `atoll.host.api.Conversation`."""

    def __init__(self, world: World, env: Mapping[str, str], pid: int) -> None:
        self.pid = pid
        self.env = dict(env)
        self.closed = False
        self.requests: list[Fields] = []
        self._world = world
        self._posted: list[tuple[float, Fields]] = []

    def send(self, line: str) -> None:
        if self.closed:
            raise BrokenPipeError(32, "gone")
        request = json.loads(line)
        self.requests.append(request)
        self._world.requests.append(request)
        self._posted.append((self._world.host.now_s, request))

    def receive(self, *, timeout_s: float) -> str:
        if self.closed:
            raise EOFError
        posted_s, request = self._posted.pop(0)
        host = self._world.host
        answer = self._world.answer(request)
        if answer == "die":
            raise EOFError
        # Probes work at the same time: what counts is when it was asked.
        took_s = answer["wall_ns"] / 1e9 if isinstance(answer, dict) else 0.0
        done_s = max(host.now_s, posted_s + took_s)
        if answer == "hang" or done_s > host.now_s + timeout_s:
            host.now_s += timeout_s
            raise TimeoutError
        host.now_s = done_s
        return answer if isinstance(answer, str) else json.dumps(answer)

    def last_words(self) -> str:
        return "a word\nof the probe"

    def close(self) -> int:
        self.closed = True
        return -9


class World:
    """A machine that is measured: its probes, its clock, its answers."""

    def __init__(
        self,
        machine: Machine,
        *,
        latency: Latency = plain_latency,
        script: Script = lambda request: {},
        slowness: float = 1.0,
        affinity: Iterable[int] | None = None,
        files: Mapping[str, str] | None = None,
    ) -> None:
        self.machine = machine
        self.latency = latency
        self.script = script
        self.slowness = slowness  # how many times its budget a request takes
        self.requests: list[Fields] = []
        self.probes: list[ScriptedProbe] = []
        self.host = FakeHost(
            {
                "/proc/meminfo": f"MemAvailable: {64 * GIB // 1024} kB\n",
                "/proc/stat": "cpu  100 0 100 800 0 0 0 0 0 0\n",
                **(files or {}),
            },
            affinity=frozenset(machine.allowed.pus if affinity is None else affinity),
            on_converse=self._start,
        )

    def run(
        self,
        kinds: Sequence[Kind] = tuple(Kind),
        mode: Mode = Mode.QUICK,
        progress: Progress | None = None,
    ) -> Run:
        cpus = sorted(self.host.affinity(0))
        return Run(
            self.host,
            self.machine,
            program=PROGRAM,
            cpus=cpus,
            budget=budget(mode, kinds, self.machine, cpus),
            started_s=self.host.monotonic(),
            progress=progress,
        )

    def asked(self, do: str) -> list[Fields]:
        return [request for request in self.requests if request["do"] == do]

    def answer(self, request: Fields) -> Fields | str:
        changes = self.script(request)
        if isinstance(changes, str):
            return changes
        cpus = _cpus_of(request)
        threads = [{"tid": 1, "cpu": cpu, "seen": [cpu, cpu], "involuntary": 0} for cpu in cpus]
        node = request.get("node")
        common = {
            "ok": True,
            "threads": threads,
            "pages": {} if node is None else {str(node): 16},
            "huge": bool(request.get("huge")),
            "wall_ns": int(request["budget_ns"] * self.slowness),
        }
        return {**common, **self._own(request), **changes}

    def _own(self, request: Fields) -> Fields:
        match request["do"]:
            case "hello":
                return {
                    "version": 1,
                    "clock": "tsc",
                    "tick_ns": 0.5,
                    "isa": "avx2",
                    "page_bytes": 4096,
                    "huge_page_bytes": 2 << 20,
                }
            case "spin":
                return {"op_ns": [[0.3] * 8 for _ in request["cpus"]]}
            case "ping":
                a, b = request["cpus"]
                return {"one_way_ns": spread(self.latency(a, b, request["cpus"][request["home"]]))}
            case "pipe":
                return {"gbs": spread(12.0)}
            case "chase":
                return {"load_ns": spread(chase_ns(request["bytes"]))}
            case "move":
                return {
                    "gbs": spread(10.0 * len(request["cpus"])),
                    "begin_ns": 0,
                    "end_ns": 1000,
                    "moved_bytes": 10_000 * len(request["cpus"]),
                    "verified": True,
                }
            case "load":
                gap = request["gap"]
                load = 0.0 if gap is None else 100.0 / (1 + gap)
                return {"load_ns": spread(90 + load), "gbs": load}
            case "vector":
                return {"gbs": spread(5.0 * len(request["cpus"])), "verified": True}
            case "churn":
                return {
                    "wall_ns_samples": spread(1e6),
                    "requested_bytes": 1 << 20,
                    "resident_bytes": 5 << 18,
                    "allocator_reached": "/lib/libc.so.6",
                }
        return {"ok": False, "code": "argument", "error": f"unknown: {request['do']}"}

    def _start(self, argv: Sequence[str], env: Mapping[str, str]) -> ScriptedProbe:
        assert list(argv) == [PROGRAM]
        probe = ScriptedProbe(self, env, pid=5000 + len(self.probes))
        self.probes.append(probe)
        return probe


def spread(value: float, samples: int = 12) -> list[float]:
    """Samples about a value that settle."""
    return [value * (1 + 0.001 * ((index * 7) % 5 - 2)) for index in range(samples)]


def chase_ns(size: int) -> float:
    for capacity, latency in ((48 << 10, 1.5), (2 << 20, 5.0), (32 << 20, 20.0)):
        if size <= capacity:
            return latency
    return 100.0


def _cpus_of(request: Fields) -> list[int]:
    if "cpus" in request:
        return list(request["cpus"])
    return [request["cpu"], *request.get("loaders", [])] if "cpu" in request else []
