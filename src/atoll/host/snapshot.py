"""A captured machine: a folder with copies of /sys and /proc. Read-only.

Nothing outside the folder is read, not even through a symbolic link in it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from atoll.errors import NotPermitted
from atoll.host import caller, pages
from atoll.host.api import FileId, FilePages
from atoll.host.procfs import parse_stat, status_field
from atoll.schema.cpulist import parse_cpulist
from atoll.schema.deployment import ProcessId

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class SnapshotHost:
    """See `atoll.host.api.Host`. Starting and signalling raise NotPermitted."""

    def __init__(self, root: str | Path) -> None:
        self._root = os.path.realpath(root)

    def read_text(self, path: str) -> str:
        return Path(self._inside(path)).read_text(encoding="utf-8", errors="replace")

    def list_dir(self, path: str) -> list[str]:
        return sorted(os.listdir(self._inside(path)))

    def exists(self, path: str) -> bool:
        try:
            return os.path.exists(self._inside(path))
        except FileNotFoundError:
            return False

    def read_bytes(self, path: str, *, offset: int = 0, size: int | None = None) -> bytes:
        content = Path(self._inside(path)).read_bytes()
        return content[offset:] if size is None else content[offset : offset + size]

    def read_link(self, path: str) -> str:
        return os.readlink(os.path.join(self._root, path.lstrip("/")))

    def file_id(self, path: str) -> FileId:
        return pages.file_id(self._inside(path))

    def write_text(self, path: str, text: str) -> None:
        self._refuse(f"write {path}")

    def page_nodes(self, pid: int, addresses: npt.NDArray[np.uint64]) -> npt.NDArray[np.int32]:
        self._refuse(f"say where the pages of process {pid} are")

    def move_pages(
        self, pid: int, addresses: npt.NDArray[np.uint64], node: int
    ) -> npt.NDArray[np.int32]:
        self._refuse(f"move pages of process {pid}")

    def huge_pages(self, pid: int, addresses: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        self._refuse(f"say which pages of process {pid} are huge")

    def file_size(self, path: str) -> int:
        return os.path.getsize(self._inside(path))

    def cached_nodes(self, path: str, *, most_pages: int) -> FilePages:
        self._refuse(f"say where the pages of {path} are")

    def ask_jvm(self, pid: int, command: str, *, timeout_s: float) -> str:
        self._refuse(f"ask the JVM {pid}")

    def affinity(self, pid: int) -> frozenset[int]:
        who = str(pid) if pid else "self"
        allowed = status_field(self.read_text(f"/proc/{who}/status"), "Cpus_allowed_list")
        return frozenset(parse_cpulist(allowed))

    def cpu_seconds(self, pid: int) -> float:
        return parse_stat(self.read_text(f"/proc/{pid}/stat")).cpu_s

    def set_affinity(self, tid: int, cpus: frozenset[int]) -> NoReturn:
        self._refuse(f"bind thread {tid}")

    def variable(self, name: str) -> str:
        return ""

    def addresses(self) -> dict[str, tuple[str, ...]]:
        return {}  # no file of /sys or /proc names an interface with its addresses

    def route(self, source: str, destination: str) -> NoReturn:
        self._refuse(f"say how it sends packets to {destination}")

    user_id = staticmethod(caller.user_id)

    def run(self, argv: Sequence[str], **_: object) -> NoReturn:
        self._refuse(f"run {argv[0]}")

    def spawn(self, argv: Sequence[str], **_: object) -> NoReturn:
        self._refuse(f"start {argv[0]}")

    def converse(self, argv: Sequence[str], *, env: Mapping[str, str]) -> NoReturn:
        self._refuse(f"start {argv[0]}")

    def signal(self, process: ProcessId, number: int) -> bool:
        self._refuse(f"signal process {process.pid}")

    def identify(self, pid: int) -> ProcessId | None:
        try:
            stat = parse_stat(self.read_text(f"/proc/{pid}/stat"))
        except FileNotFoundError:
            return None
        return ProcessId(pid=pid, start_ticks=stat.start_ticks) if stat.lives else None

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def _inside(self, path: str) -> str:
        found = os.path.realpath(os.path.join(self._root, path.lstrip("/")))
        if found != self._root and not found.startswith(self._root + os.sep):
            raise FileNotFoundError(2, "leads out of the snapshot", path)
        return found

    def _refuse(self, what: str) -> NoReturn:
        raise NotPermitted(f"{self._root}: a captured machine cannot {what}; use the live one")
