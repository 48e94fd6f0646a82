"""What the control plane needs of the system that it runs on. Tests replace it by a fake.

There are two hosts: `local.LocalHost` (this machine) and `snapshot.SnapshotHost` (a captured folder
of sysfs and proc, read-only). Unit tests have a third, in memory.
Paths are absolute. Reading raises the usual OSError, which the caller interprets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from atoll.host.network import Route
from atoll.host.processes import Finished
from atoll.schema.deployment import ProcessId

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class FilePages:
    """The pages of a file in the page cache. `nodes` has the node of every page examined."""

    size_bytes: int
    cached_pages: int
    nodes: npt.NDArray[np.int32]


class FileId(NamedTuple):
    """Identifies a file with its content: it changes when the file is replaced or written."""

    device: int
    inode: int
    modified_ns: int
    size_bytes: int


class Conversation(Protocol):
    """A child that answers each line with a line. It ends at `close`, and when this process ends,
    because its stdin ends."""

    @property
    def pid(self) -> int: ...

    def send(self, line: str) -> None:
        """Raises BrokenPipeError if the child has ended."""
        ...

    def receive(self, *, timeout_s: float) -> str:
        """The next line, without its end. Raises TimeoutError, and EOFError if the child has
        ended."""
        ...

    def last_words(self) -> str:
        """Its output on stderr so far, at most the last 4 KiB."""
        ...

    def close(self) -> int:
        """End the child: close its stdin, then SIGKILL. Returns how it ended (negative: the
        signal). May be called again."""
        ...


class Child(Protocol):
    """A process that `Host.spawn` has started."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None:
        """How it ended (negative: the signal); None while it runs."""
        ...

    def wait(self, timeout_s: float | None = None) -> int:
        """Wait for its end, and return how it ended. Raises TimeoutError."""
        ...

    def signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        ...


class Host(Protocol):
    def read_text(self, path: str) -> str:
        """The text of the file, with undecodable bytes replaced."""
        ...

    def list_dir(self, path: str) -> list[str]:
        """Names in a folder, sorted."""
        ...

    def exists(self, path: str) -> bool: ...

    def read_bytes(self, path: str, *, offset: int = 0, size: int | None = None) -> bytes:
        """At most `size` bytes from `offset`; fewer at the end of the file."""
        ...

    def read_link(self, path: str) -> str: ...

    def file_id(self, path: str) -> FileId: ...

    def write_text(self, path: str, text: str) -> None:
        """Write an existing kernel switch (/sys, /proc) in one write(2). `atoll.store.files` writes
        Atoll's own files."""
        ...

    def page_nodes(self, pid: int, addresses: npt.NDArray[np.uint64]) -> npt.NDArray[np.int32]:
        """The memory node of the page at each address of the process; a negative number is an
        errno, -ENOENT for an address without a page. (move_pages(2) without nodes moves nothing.)
        """
        ...

    def move_pages(
        self, pid: int, addresses: npt.NDArray[np.uint64], node: int
    ) -> npt.NDArray[np.int32]:
        """Move the pages at these addresses to a node, except those that other processes map too.
        Returns where each is now, as `page_nodes`. Raises OSError."""
        ...

    def huge_pages(self, pid: int, addresses: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        """Whether a huge page maps each address of the process now. Raises OSError, ENOTTY if
        the kernel cannot tell (before Linux 6.7)."""
        ...

    def file_size(self, path: str) -> int:
        """Bytes of a regular file. Raises OSError, also for another kind of file."""
        ...

    def cached_nodes(self, path: str, *, most_pages: int) -> FilePages:
        """The pages of a file in the page cache, and their nodes; reads nothing into it."""
        ...

    def ask_jvm(self, pid: int, command: str, *, timeout_s: float) -> str:
        """The answer of a HotSpot JVM to a jcmd command ('VM.flags -all'). Raises OSError, also if
        asking could harm the JVM (it does not catch SIGQUIT)."""
        ...

    def affinity(self, pid: int) -> frozenset[int]:
        """The CPUs that the thread `pid` may run on (sched_getaffinity); 0 is the caller."""
        ...

    def cpu_seconds(self, pid: int) -> float:
        """The CPU time of all threads that the process has or had, exact. Raises
        ProcessLookupError."""
        ...

    def set_affinity(self, tid: int, cpus: frozenset[int]) -> None:
        """Bind a thread to these CPUs (sched_setaffinity). Raises OSError."""
        ...

    def variable(self, name: str) -> str:
        """An environment variable of the process that runs Atoll; empty if it is not set."""
        ...

    def addresses(self) -> Mapping[str, tuple[str, ...]]:
        """The IPv4 addresses of each network interface that has any."""
        ...

    def route(self, source: str, destination: str) -> Route | None:
        """How the kernel sends a packet from an address of this machine. None: not at all."""
        ...

    def user_id(self) -> int:
        """The effective user of the process that runs Atoll."""
        ...

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
        """Run to the end, output captured.

        `tied`: the process is killed when this one ends, however it ends. `tick` is called four
        times a second; if it raises, the process is ended first. Raises FileNotFoundError,
        TimeoutError.
        """
        ...

    def spawn(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        log: str,
        cwd: str | None = None,
        tied_by: int | None = None,
        pass_fds: Sequence[int] = (),
    ) -> Child:
        """Start a child in a session of its own, output appended to `log`.

        `tied_by`: the signal that the child gets when this process ends, however it ends.
        `pass_fds`: descriptors that it inherits. Raises OSError.
        """
        ...

    def converse(self, argv: Sequence[str], *, env: Mapping[str, str]) -> Conversation:
        """Start a child to talk to, in a session of its own. Raises OSError."""
        ...

    def signal(self, process: ProcessId, number: int) -> bool:
        """Send a signal if this process (pid and start time) lives; False if it is gone."""
        ...

    def identify(self, pid: int) -> ProcessId | None:
        """The process with this pid; None if there is none. A zombie counts as gone."""
        ...

    def monotonic(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...
