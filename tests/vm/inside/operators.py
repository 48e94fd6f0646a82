"""Operators in the guest: `python -m tests.vm.inside.operators ANSWER NODES [drift]`.

Half of the operators are processes, which have touched memory before they are placed; the others
are threads of one process. For each number in NODES ('1,2,3,4') there are as many operators as need
that number of nodes. They are planned, placed and looked at. With `drift`, one operator then works
half as much again, and is watched. ANSWER gets what was seen, as JSON.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from atoll.engines.binding import bind
from atoll.engines.placeable import OperatorThread, Throughput
from atoll.host.local import LocalHost
from atoll.host.procfs import status_field
from atoll.host.topology import read_machine
from atoll.inspect.duty import sample, watched
from atoll.inspect.tasks import Thread
from atoll.operators.place import place
from atoll.operators.verify import verify
from atoll.operators.watch import watch
from atoll.schema.machine import Machine
from atoll.schema.operator_graph import Activity, GraphOperator, Known, OperatorGraph, Source
from atoll.schema.placement import Placement

PAGE_BYTES, PAGES = 4096, 64
PERIOD_S = 0.2
PLANNED = 0.7  # of a core: each operator needs one
DUTY = 0.05  # what they really use, since all of the guest's CPUs share the host's few
DRIFTING, MORE = 0.1, 0.15  # of the first operator, while it is watched
HOST = LocalHost()


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


@contextmanager
def operators(count: int) -> Iterator[tuple[list[Operator], Path]]:
    """As many of them, at work."""
    names = [f"op-{number}" for number in range(count)]
    alone, together = names[: (count + 1) // 2], names[(count + 1) // 2 :]
    children: list[int] = []
    with tempfile.TemporaryDirectory(dir="/run") as made:
        folder = Path(made)
        try:
            for group in [*([name] for name in alone), together]:
                if group:
                    children += [fork(group, folder, has_early=group is not together)]
            await_all(folder, names, ".here")
            found = [json.loads((folder / f"{name}.here").read_text()) for name in names]
            yield [Operator(**one) for one in found], folder
        finally:
            for pid in children:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def fork(group: Sequence[str], folder: Path, *, has_early: bool) -> int:
    pid = os.fork()
    if pid:
        return pid
    threads = [
        threading.Thread(target=work, args=(name, folder), kwargs={"has_early": has_early})
        for name in group[1:]
    ]
    for thread in threads:
        thread.start()
    work(group[0], folder, has_early=has_early)
    os._exit(1)  # it never ends by itself


def await_all(folder: Path, names: Sequence[str], suffix: str) -> None:
    deadline_s = time.monotonic() + 300
    while not all((folder / f"{name}{suffix}").exists() for name in names):
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"no {suffix} of all of {', '.join(names)}")
        time.sleep(0.05)


@dataclass(frozen=True)
class Program:
    """See `atoll.engines.placeable.Running`."""

    found: Sequence[Operator]

    def threads(self) -> list[OperatorThread]:
        return [OperatorThread((one.name,), one.pid, one.tid) for one in self.found]

    def place(self, placement: Placement) -> None:
        bind(HOST, self.threads, placement)

    def profile(self, seconds: float) -> OperatorGraph:
        of = {one.name: [Thread(one.pid, one.tid)] for one in self.found}
        threads = [thread for each in of.values() for thread in each]
        seen = watched(sample(HOST, threads, seconds=seconds), of, ())
        return OperatorGraph(
            rate=None,
            operators=tuple(GraphOperator(id=name, activity=seen.activity[name]) for name in of),
        )

    def measure(self, seconds: float) -> Throughput:
        raise NotImplementedError  # the guest has no speed


def graph_of(names: Sequence[str]) -> OperatorGraph:
    """As it is planned."""
    duty = Activity(duty=Known(value=PLANNED, source=Source.GIVEN))
    return OperatorGraph(
        rate=None, operators=tuple(GraphOperator(id=name, activity=duty) for name in names)
    )


def nodes_of(pid: int, start: int) -> Mapping[str, int]:
    """Pages by node, of those that are there."""
    addresses = np.arange(start, start + PAGES * PAGE_BYTES, PAGE_BYTES, dtype=np.uint64)
    nodes = HOST.page_nodes(pid, addresses).tolist()
    return Counter(str(node) for node in nodes if node >= 0)


def look(one: Operator) -> dict[str, Any]:
    folder = f"/proc/{one.pid}/task/{one.tid}"
    return {
        "mask": status_field(HOST.read_text(f"{folder}/status"), "Cpus_allowed_list"),
        "cpu": int(HOST.read_text(f"{folder}/stat").rpartition(")")[2].split()[36]),
        "early": dict(nodes_of(one.pid, one.early)) if one.early else None,
        "late": dict(nodes_of(one.pid, one.late)),
    }


def placed_on(nodes: int, machine: Machine) -> dict[str, Any]:
    """What is seen of a plan that needs that number of nodes."""
    each = len(machine.allowed_cores) // sum(bool(node.pus) for node in machine.nodes)
    with operators(each * (nodes - 1) + 1) as (found, folder):
        names = [one.name for one in found]
        plan = place(graph_of(names), machine)
        program = Program(found)
        program.place(plan)
        publish(folder / "placed", "")
        await_all(folder, names, ".done")
        # What this process has written since the fork left pages of both to the children alone.
        program.place(plan)
        checked = verify(HOST, program.threads(), plan, wait_s=30)
        return {
            "cpus": {unit.operators[0]: unit.cpu for unit in plan.units},
            "seen": {one.name: look(one) for one in found},
            "faults": checked.faults,
            "idle": checked.idle,
            "local": checked.local,
        }


def drift(machine: Machine) -> dict[str, Any]:
    """What `watch` says when an operator works half as much again, for a minute and then on."""
    with operators(2) as (found, folder):
        program, first = Program(found), found[0].name
        publish(folder / f"{first}.duty", str(DRIFTING))
        time.sleep(2)
        graph = program.profile(20)
        plan = place(graph, machine)
        program.place(plan)
        calm = watch(HOST, program, plan, graph, lambda new: place(new, machine), print, for_s=20)
        publish(folder / f"{first}.duty", str(MORE))
        began_s = time.monotonic()
        offer = watch(HOST, program, plan, graph, lambda new: place(new, machine), print, for_s=300)
        return {
            "calm": calm is None,
            "after_s": time.monotonic() - began_s,
            "drifted": [one.operator for one in offer.drifts] if offer else [],
            "said": [str(one) for one in offer.drifts] if offer else [],
            "cores": len(offer.placement.cores) if offer and offer.placement else 0,
            "masks": [look(one)["mask"] for one in found],
            "cpus": [unit.cpu for unit in plan.units],
        }


def main(answer: Path, nodes: Sequence[int], *, with_drift: bool) -> None:
    machine = read_machine()
    seen: dict[str, Any] = {str(count): placed_on(count, machine) for count in nodes}
    if with_drift:
        seen["drift"] = drift(machine)
    answer.write_text(json.dumps(seen))


if __name__ == "__main__":
    main(
        Path(sys.argv[1]),
        [int(one) for one in sys.argv[2].split(",")],
        with_drift="drift" in sys.argv[3:],
    )
