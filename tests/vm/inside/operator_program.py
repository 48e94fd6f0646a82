"""A process with an operator or more in the guest, one in each thread, until it is killed:
`python -m tests.vm.inside.operator_program FOLDER early|late NAME...`.

With `early`, each touches memory at once, else only once FOLDER/placed is there. It imports little,
as many of it start on few CPUs.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

PAGE_BYTES, PAGES = 4096, 64
PERIOD_S = 0.2
DUTY = 0.05  # of a core, since all of the guest's CPUs share the host's few


@dataclass(frozen=True)
class Operator:
    """As it says of itself."""

    name: str
    pid: int
    tid: int
    early: int  # address of pages that it touched at once; 0: none
    late: int  # of pages that it touches once it is placed


def work(name: str, folder: Path, *, has_early: bool) -> None:
    """An operator, until its process is killed."""
    late = mmap.mmap(-1, PAGES * PAGE_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    early = mmap.mmap(-1, PAGES * PAGE_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    # The kernel joins neighbouring mappings, and a huge page would be of several operators.
    late.madvise(mmap.MADV_NOHUGEPAGE)
    if has_early:
        touch(early)
    me = Operator(
        name,
        os.getpid(),
        threading.get_native_id(),
        address(early) if has_early else 0,
        address(late),
    )
    publish(folder / f"{name}.here", json.dumps(me.__dict__))
    done = False
    while True:
        began_s = time.monotonic()
        try:
            duty = float((folder / f"{name}.duty").read_text())
        except (OSError, ValueError):
            duty = DUTY
        until_s = time.thread_time() + duty * PERIOD_S
        while time.thread_time() < until_s:
            pass
        if not done and (folder / "placed").exists():
            touch(late)
            publish(folder / f"{name}.done", "")
            done = True
        time.sleep(max(0.0, began_s + PERIOD_S - time.monotonic()))


def touch(memory: mmap.mmap) -> None:
    for page in range(PAGES):
        memory[page * PAGE_BYTES] = 1


def address(memory: mmap.mmap) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


def publish(path: Path, text: str) -> None:
    whole = path.with_suffix(".part")
    whole.write_text(text)
    whole.rename(path)


def main(folder: Path, names: list[str], *, has_early: bool) -> None:
    for name in names[1:]:
        arguments = {"has_early": has_early}
        threading.Thread(target=work, args=(name, folder), kwargs=arguments).start()
    work(names[0], folder, has_early=has_early)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[3:], has_early=sys.argv[2] == "early")
