"""Operators in the guest: `python -m tests.vm.inside.operators ANSWER NODES [drift]`.

Half of the operators are processes, which have touched memory before they are placed; the others
are threads of one process. For each number in NODES ('1,2,3,4') there are as many operators as need
that number of nodes. They are planned, placed and looked at. With `drift`, one operator then works
half as much again, and is watched. ANSWER gets what was seen, as JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
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
from tests.vm.inside.operator_program import PAGE_BYTES, PAGES, Operator, publish

PLANNED = 0.7  # of a core: each operator needs one (what they use: see operator_program)
DRIFTING, MORE = 0.1, 0.15  # of the first operator, while it is watched
HOST = LocalHost()


@contextmanager
def operators(count: int) -> Iterator[tuple[list[Operator], Path]]:
    """As many of them, at work."""
    names = [f"op-{number}" for number in range(count)]
    alone, together = names[: (count + 1) // 2], names[(count + 1) // 2 :]
    children: list[subprocess.Popen[bytes]] = []
    with tempfile.TemporaryDirectory(dir="/run") as made:
        folder = Path(made)
        try:
            for group in [*([name] for name in alone), together]:
                if group:
                    argv = [sys.executable, "-m", "tests.vm.inside.operator_program", str(folder)]
                    argv += ["late" if group is together else "early", *group]
                    children.append(subprocess.Popen(argv))
            await_all(folder, names, ".here")
            found = [json.loads((folder / f"{name}.here").read_text()) for name in names]
            yield [Operator(**one) for one in found], folder
        finally:
            for child in children:
                child.kill()
                child.wait()


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
