"""This machine: its files of /sys and /proc, and real processes.

A signal reaches exactly the process that was meant, even if its pid was reused in between: the
pidfd is opened first, and the start time is compared afterwards. A spawned child has a session of
its own, no stdin, and none of our other descriptors or signal handlers.
"""

from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from atoll.host import caller, network, pages, processes
from atoll.host.api import Conversation, FileId, FilePages
from atoll.host.conversation import LocalConversation
from atoll.host.procfs import parse_stat
from atoll.schema.deployment import ProcessId

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class LocalHost:
    """See `atoll.host.api.Host`."""

    def read_text(self, path: str) -> str:
        # newline="": a carriage return in the name of a thread must not start a line.
        with open(path, encoding="utf-8", errors="replace", newline="") as file:
            return file.read()

    def list_dir(self, path: str) -> list[str]:
        return sorted(os.listdir(path))

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def read_bytes(self, path: str, *, offset: int = 0, size: int | None = None) -> bytes:
        if size is None:
            with open(path, "rb", buffering=0) as file:
                file.seek(offset)
                return file.read()
        # A third of the calls: live views read thousands of small files.
        descriptor = os.open(path, os.O_RDONLY)
        try:
            return os.pread(descriptor, size, offset)
        finally:
            os.close(descriptor)

    def read_link(self, path: str) -> str:
        # As in read_text: a name that is not UTF-8 can then be printed and written as JSON.
        return os.fsencode(os.readlink(path)).decode(errors="replace")

    def file_id(self, path: str) -> FileId:
        return pages.file_id(path)

    def write_text(self, path: str, text: str) -> None:
        # Never makes a file. It is truncated after the write: if this process is killed in between,
        # a whole first line is left, also in a plain file that stands for a switch.
        data = text.encode()
        descriptor = os.open(path, os.O_WRONLY)
        try:
            os.write(descriptor, data)
            os.ftruncate(descriptor, len(data))
        finally:
            os.close(descriptor)

    def page_nodes(self, pid: int, addresses: npt.NDArray[np.uint64]) -> npt.NDArray[np.int32]:
        return pages.page_nodes(pid, addresses)

    def move_pages(
        self, pid: int, addresses: npt.NDArray[np.uint64], node: int
    ) -> npt.NDArray[np.int32]:
        return pages.move_pages(pid, addresses, node)

    def huge_pages(self, pid: int, addresses: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        return pages.huge_pages(pid, addresses)

    def file_size(self, path: str) -> int:
        return pages.file_size(path)

    def cached_nodes(self, path: str, *, most_pages: int) -> FilePages:
        return pages.cached_nodes(path, most_pages=most_pages)

    def ask_jvm(self, pid: int, command: str, *, timeout_s: float) -> str:
        from atoll.host import jvm_attach  # few commands ask a JVM; every keeper would import it

        return jvm_attach.ask(self, pid, command, timeout_s=timeout_s)

    def affinity(self, pid: int) -> frozenset[int]:
        return frozenset(os.sched_getaffinity(pid))

    def cpu_seconds(self, pid: int) -> float:
        # The clock of another process, as clock_getcpuclockid(3) makes its number.
        try:
            return time.clock_gettime(~pid << 3 | 2)
        except OSError:
            raise ProcessLookupError(errno.ESRCH, "no such process", str(pid)) from None

    def set_affinity(self, tid: int, cpus: frozenset[int]) -> None:
        os.sched_setaffinity(tid, cpus)

    variable = staticmethod(caller.variable)
    addresses = staticmethod(network.addresses)
    route = staticmethod(network.route)
    user_id = staticmethod(caller.user_id)
    run = staticmethod(processes.run)
    spawn = staticmethod(processes.start)

    def converse(self, argv: Sequence[str], *, env: Mapping[str, str]) -> Conversation:
        return LocalConversation(argv, env)

    def signal(self, process: ProcessId, number: int) -> bool:
        try:
            descriptor = os.pidfd_open(process.pid)
        except ProcessLookupError:
            return False
        try:
            if self.identify(process.pid) != process:
                return False
            signal.pidfd_send_signal(descriptor, number)
        except ProcessLookupError:
            return False
        finally:
            os.close(descriptor)
        return True

    def identify(self, pid: int) -> ProcessId | None:
        try:
            stat = parse_stat(self.read_text(f"/proc/{pid}/stat"))
        except (FileNotFoundError, ProcessLookupError):
            return None
        return ProcessId(pid=pid, start_ticks=stat.start_ticks) if stat.lives else None

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
