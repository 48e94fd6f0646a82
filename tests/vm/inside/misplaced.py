"""Inside the guest: processes are put onto a node, moved behind their backs, and inspected.

    python -m tests.vm.inside.misplaced placed
    python -m tests.vm.inside.misplaced deployed POLICY

Prints JSON: what inspect and verify found at each step. The host side judges. All steps of one
kind are one process, since a start of Python takes seconds in there.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from atoll.engines.api import Layout
from atoll.host.local import LocalHost
from atoll.host.topology import read_machine
from atoll.inspect.clues import read_numa_system
from atoll.inspect.inspection import inspect_process
from atoll.live.watcher import Watcher
from atoll.plan import make_plan
from atoll.schema.inspection import Finding, MappingKind
from atoll.supervise.launch import Running, launch
from atoll.supervise.prepare import find_launcher
from tests.parts.toy import ToyEngine

HOST = LocalHost()
MIB = 1 << 20
HELD_BYTES = 16 * MIB
# A private mapping, every page touched, and a thread that does nothing. What is left out of core
# dumps is a mapping of its own: else the kernel makes one of it and the thread's stack below it.
_HOLDS = f"""
import mmap, socket, sys, threading
held = mmap.mmap(-1, {HELD_BYTES}, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
held.madvise(mmap.MADV_DONTDUMP)
for start in range(0, {HELD_BYTES}, 4096):
    held[start] = 1
threading.Thread(target=threading.Event().wait, daemon=True).start()
"""
_HOLDER = (
    _HOLDS
    + """
print("ready", flush=True)
threading.Event().wait()
"""
)
# As toy.py's worker, without the seconds that its imports take here.
_WORKER = (
    _HOLDS
    + """
link = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
link.sendall(b"w")
link.recv(1)
"""
)
# A thread binds itself to node 1 (set_mempolicy, MPOL_BIND) and touches memory then.
_THREAD_POLICY = f"""
import ctypes, mmap, threading
touched = threading.Event()
def run():
    assert ctypes.CDLL(None).syscall(238, 2, ctypes.byref(ctypes.c_ulong(2)), 64) == 0
    held = mmap.mmap(-1, {HELD_BYTES}, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    held.madvise(mmap.MADV_DONTDUMP)
    for start in range(0, {HELD_BYTES}, 4096):
        held[start] = 1
    touched.set()
    threading.Event().wait()
threading.Thread(target=run, daemon=True).start()
touched.wait()
print("ready", flush=True)
threading.Event().wait()
"""
_MOVE_PAGES = 279  # x86-64


class LightEngine(ToyEngine):
    def layout(self, *arguments: Any, **named: Any) -> Layout:
        made = super().layout(*arguments, **named)
        script = [sys.executable, "-I", "-S", "-c", _WORKER]
        return replace(
            made,
            processes=tuple(
                spec
                if spec.slot is None
                else spec.model_copy(
                    update={"argv": (*script, spec.argv[spec.argv.index("--port") + 1])}
                )
                for spec in made.processes
            ),
        )


def main() -> None:
    what, arguments = sys.argv[1], sys.argv[2:]
    steps = placed() if what == "placed" else deployed(arguments[0])
    json.dump(steps, sys.stdout)


def placed() -> dict[str, Any]:
    """A program under atoll-exec, and what befalls it."""
    steps: dict[str, Any] = {}
    with holder("-C", "0-7", "-m", "0") as pid:
        steps["bound"] = inspected(pid)
        run("migratepages", str(pid), "0", "1")
        steps["all moved"] = inspected(pid)
        run("migratepages", str(pid), "1", "0")
        steps["moved back"] = inspected(pid)
        steps["mapping"] = move_largest(pid, 1)
        steps["mapping moved"] = inspected(pid)
        run("migratepages", str(pid), "1", "0")
        threads = sorted(int(name) for name in os.listdir(f"/proc/{pid}/task"))
        steps["thread"] = threads[-1]
        run("taskset", "-c", "-p", "8", str(threads[-1]))
        steps["thread moved"] = inspected(pid)
    with holder("-C", "0-7") as pid:
        steps["confined"] = inspected(pid)
        run("migratepages", str(pid), "0", "1")
        steps["confined moved"] = inspected(pid)
    with holder("-m", "0", program=_THREAD_POLICY) as pid:
        steps["own policy"] = inspected(pid)
        steps["binder"] = max(int(name) for name in os.listdir(f"/proc/{pid}/task"))
    with holder("-i", "0-1") as pid:
        steps["interleaved"] = inspected(pid)
    with holder() as pid:
        run("migratepages", str(pid), "0", "1")
        steps["free, moved"] = inspected(pid)
    return steps


def deployed(policy: str) -> dict[str, Any]:
    """A deployment as planned; then one thread of it is moved, and one mapping."""
    machine = read_machine()
    engine = LightEngine()
    plan = make_plan(machine, engine.traits, policy)
    with launch(plan, engine, machine=machine, host=HOST, name=policy, grace_s=1.0) as running:
        steps: dict[str, Any] = {"slots": len(plan.slots), "clean": verified(running)}
        steps["live clean"] = watched(policy)
        last = next(
            process.id
            for process in reversed(running.deployment.processes)
            if process.id is not None
        )
        threads = sorted(int(name) for name in os.listdir(f"/proc/{last.pid}/task"))
        run("taskset", "-c", "-p", "0", str(threads[-1]))
        steps["thread"] = [last.pid, threads[-1]]
        steps["mapping"] = [last.pid, move_largest(last.pid, 0)]
        steps["misplaced"] = verified(running)
        steps["live"] = watched(policy)
        steps["glance"] = [told(finding) for finding in running.verify(deep=False).drift]
    return steps


@contextmanager
def holder(*flags: str, program: str = _HOLDER) -> Iterator[int]:
    command = [find_launcher(), *flags, "--", sys.executable, "-I", "-S", "-c", program]
    with started(command) as pid:
        yield pid


@contextmanager
def started(command: Sequence[str]) -> Iterator[int]:
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
        yield child.pid
    finally:
        child.kill()
        child.communicate()


def inspected(pid: int) -> dict[str, Any]:
    found = inspect_process(HOST, pid, read_numa_system(HOST))
    return {
        "findings": [told(finding) for finding in found.findings],
        "expected": found.expected.model_dump(mode="json"),
        "policy": found.memory_policy,
        "own_nodes_share": found.memory and found.memory.own_nodes_share,
        "jvm": found.jvm and found.jvm.model_dump(mode="json"),
        "unknown": found.unknown,
    }


def verified(running: Running) -> dict[str, Any]:
    found = running.verify()
    return {"threads": found.threads, "findings": [told(finding) for finding in found.findings]}


def watched(name: str) -> dict[str, Any]:
    """The first look of the live view, which is complete."""
    (view,) = [one for one in Watcher(HOST).look().deployments if one.name == name]
    return view.model_dump(mode="json")


def told(finding: Finding) -> dict[str, Any]:
    return finding.model_dump(mode="json")


def move_largest(pid: int, node: int) -> str:
    """Move the pages of the largest anonymous mapping with move_pages(2); its address."""
    memory = inspect_process(HOST, pid, read_numa_system(HOST)).memory
    assert memory is not None
    largest = next(m for m in memory.mappings if m.kind is MappingKind.ANONYMOUS)
    pages = range(largest.start, largest.start + largest.size_bytes, 4096)
    addresses = (ctypes.c_void_p * len(pages))(*pages)
    nodes = (ctypes.c_int * len(pages))(*[node] * len(pages))
    status = (ctypes.c_int * len(pages))()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(_MOVE_PAGES, pid, len(pages), addresses, nodes, status, 2) < 0:
        raise OSError(ctypes.get_errno(), "move_pages")
    return f"{largest.start:#x}"


def run(*command: str) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    began = time.monotonic()
    main()
    print(f"{time.monotonic() - began:.0f} s", file=sys.stderr)
