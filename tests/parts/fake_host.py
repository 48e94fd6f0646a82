"""A host in memory for unit tests: files in a dict, and processes that a test starts and ends."""

from __future__ import annotations

import errno
import itertools
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from atoll.host.api import Conversation, FileId, FilePages
from atoll.host.network import Route
from atoll.host.processes import Finished
from atoll.schema.deployment import ProcessId


@dataclass(slots=True)
class FakeProcess:
    id: ProcessId
    argv: tuple[str, ...]
    env: dict[str, str]
    exit_status: int | None = None
    signals: list[int] = field(default_factory=list)

    @property
    def pid(self) -> int:
        return self.id.pid

    def poll(self) -> int | None:
        return self.exit_status

    def wait(self, timeout_s: float | None = None) -> int:
        if self.exit_status is None:
            raise TimeoutError("still runs")
        return self.exit_status

    def signal(self, number: int) -> None:
        self.signals.append(number)
        if number == signal.SIGKILL:
            self.exit_status = -number


class FakeHost:
    """See `atoll.host.api.Host`. Time passes only in `sleep`; SIGKILL ends a process at once."""

    def __init__(
        self,
        files: Mapping[str, str] | None = None,
        *,
        affinity: frozenset[int] = frozenset({0}),
        variables: Mapping[str, str] | None = None,
        user_id: int = 1000,
        on_run: Callable[[Sequence[str]], Finished] | None = None,
        on_converse: Callable[[Sequence[str], Mapping[str, str]], Conversation] | None = None,
    ) -> None:
        self.files = dict(files or {})
        self.blobs: dict[str, bytes] = {}  # path -> content of binary files
        self.pages: dict[int, dict[int, int]] = {}  # pid -> address -> node
        self.huge: set[int] = set()  # addresses
        self.cached: dict[str, FilePages] = {}
        self.jvm_answers: dict[tuple[int, str], str] = {}
        self.nics: dict[str, tuple[str, ...]] = {}  # interface -> addresses
        self.routes: dict[tuple[str, str], Route] = {}  # by source and destination
        self.processes: dict[int, FakeProcess] = {}
        self.now_s = 0.0
        self.masks: dict[int, frozenset[int]] = {}  # tid -> CPUs; others have `affinity`
        self.cpu_s: dict[int, float] = {}  # pid -> CPU time
        self._affinity = affinity
        self._variables = dict(variables or {})
        self._user_id = user_id
        self._on_run = on_run
        self._on_converse = on_converse
        self._pids = itertools.count(1000)

    def read_text(self, path: str) -> str:
        try:
            return self.files[path]
        except KeyError:
            raise FileNotFoundError(2, "no such file", path) from None

    def list_dir(self, path: str) -> list[str]:
        prefix = path.rstrip("/") + "/"
        names = {
            name[len(prefix) :].split("/")[0] for name in self.files if name.startswith(prefix)
        }
        if not names:
            raise FileNotFoundError(2, "no such folder", path)
        return sorted(names)

    def exists(self, path: str) -> bool:
        return path in self.files or any(name.startswith(path + "/") for name in self.files)

    def read_bytes(self, path: str, *, offset: int = 0, size: int | None = None) -> bytes:
        content = self.blobs.get(path) or self.read_text(path).encode()
        return content[offset:] if size is None else content[offset : offset + size]

    def read_link(self, path: str) -> str:
        return self.read_text(path)

    def file_id(self, path: str) -> FileId:
        return FileId(0, hash(path), 0, len(self.read_bytes(path)))

    def write_text(self, path: str, text: str) -> None:
        self.read_text(path)  # it must exist
        self.files[path] = text

    def page_nodes(self, pid: int, addresses: npt.NDArray[np.uint64]) -> npt.NDArray[np.int32]:
        where = self.pages.get(pid, {})
        found = [where.get(int(address), -errno.ENOENT) for address in addresses]
        return np.array(found, dtype=np.int32)

    def move_pages(
        self, pid: int, addresses: npt.NDArray[np.uint64], node: int
    ) -> npt.NDArray[np.int32]:
        where = self.pages.get(pid, {})
        where |= {int(address): node for address in addresses if int(address) in where}
        return self.page_nodes(pid, addresses)

    def huge_pages(self, pid: int, addresses: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        return np.array([int(address) in self.huge for address in addresses], dtype=np.bool_)

    def file_size(self, path: str) -> int:
        return self.cached_nodes(path, most_pages=0).size_bytes

    def cached_nodes(self, path: str, *, most_pages: int) -> FilePages:
        try:
            return self.cached[path]
        except KeyError:
            raise FileNotFoundError(2, "no such file", path) from None

    def ask_jvm(self, pid: int, command: str, *, timeout_s: float) -> str:
        try:
            return self.jvm_answers[pid, command]
        except KeyError:
            raise ConnectionRefusedError(111, "no JVM", str(pid)) from None

    def affinity(self, pid: int) -> frozenset[int]:
        return self.masks.get(pid, self._affinity)

    def cpu_seconds(self, pid: int) -> float:
        if self.identify(pid) is None:
            raise ProcessLookupError(3, "no such process", str(pid))
        return self.cpu_s.get(pid, 0.0)

    def set_affinity(self, tid: int, cpus: frozenset[int]) -> None:
        self.masks[tid] = cpus

    def variable(self, name: str) -> str:
        return self._variables.get(name, "")

    def addresses(self) -> dict[str, tuple[str, ...]]:
        return self.nics

    def route(self, source: str, destination: str) -> Route | None:
        return self.routes.get((source, destination))

    def user_id(self) -> int:
        return self._user_id

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float | None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        tied: bool = False,
        tick: Callable[[], None] | None = None,
    ) -> Finished:
        if self._on_run is None:
            raise FileNotFoundError(2, "no such program", argv[0])
        return self._on_run(argv)

    def spawn(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        log: str,
        cwd: str | None = None,
        tied_by: int | None = None,
        pass_fds: Sequence[int] = (),
    ) -> FakeProcess:
        pid = next(self._pids)
        identity = ProcessId(pid=pid, start_ticks=pid * 10)
        process = self.processes[pid] = FakeProcess(identity, tuple(argv), dict(env))
        return process

    def converse(self, argv: Sequence[str], *, env: Mapping[str, str]) -> Conversation:
        if self._on_converse is None:
            raise FileNotFoundError(2, "no such program", argv[0])
        return self._on_converse(argv, env)

    def end(self, pid: int, status: int) -> None:
        """Let a process die."""
        self.processes[pid].exit_status = status

    def signal(self, process: ProcessId, number: int) -> bool:
        if self.identify(process.pid) != process:
            return False
        self.processes[process.pid].signal(number)
        return True

    def identify(self, pid: int) -> ProcessId | None:
        process = self.processes.get(pid)
        return process.id if process is not None and process.exit_status is None else None

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds
