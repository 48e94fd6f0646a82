"""Inside the guest: make a plan, start the subject in its slots, look at where it sits.

The subject is started once per slot, all at once, exactly as the supervisor starts an engine's
process (`placed_argv`, `LocalHost.spawn`), on the plan of the machine that is found. What the
subject says of itself and what /proc says of it goes back to the host, which judges
(tests/vm/landing.py). Nothing is judged here.
"""

from __future__ import annotations

import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypedDict

from atoll.errors import UsageError
from atoll.host.api import Child
from atoll.host.caller import clean_environment
from atoll.host.local import LocalHost
from atoll.plan import make_plan
from atoll.schema.deployment import ProcessSpec, Role
from atoll.schema.machine import Machine
from atoll.schema.plan import EngineTraits, MemoryPolicy, Plan, Slot
from atoll.supervise.place import placed_argv
from atoll.supervise.prepare import find_launcher

PATIENCE_S = 600.0  # where memory is short the kernel looks long for some
POLL_S = 0.02
THREADS_PER_CPU = 2  # more threads than CPUs, so that the scheduler has reason to move them
TRAITS = EngineTraits(
    name="subject",
    distributed=True,
    parallel_query=True,
    has_coordinator=False,
    jvm=False,
    heap_ratio=0.5,
    ratio_source="the tests",
    min_heap_bytes=1 << 20,
    coordinator_bytes=0,
    overhead_bytes=0,
)


class Case(TypedDict):
    policy: str
    memory: str  # '': the planner's default
    smt: bool
    sabotage: str  # a key of SABOTAGE; '': started as planned
    witnesses: bool  # ask numastat, numactl and hwloc too


def plan_of(machine: Machine, case: Case) -> dict[str, Any]:
    try:
        plan = _plan(machine, case)
    except UsageError as fault:
        return {"case": case, "refused": str(fault)}
    return {"case": case, "plan": plan.model_dump(mode="json")}


def _plan(machine: Machine, case: Case) -> Plan:
    return make_plan(
        machine,
        TRAITS,
        case["policy"],
        memory=MemoryPolicy(case["memory"]) if case["memory"] else None,
        smt=case["smt"],
    )


def land(machine: Machine, case: Case, subject: str, pages: int) -> dict[str, Any]:
    """Run one case to its end; nothing of it is left. Raises UsageError where there is no plan."""
    plan = _plan(machine, case)
    started = SABOTAGE[case["sabotage"]](plan, machine)
    host = LocalHost()
    launcher = find_launcher()
    slots: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            for slot in plan.slots:
                arguments = (str(THREADS_PER_CPU * slot.threads), str(pages))
                argv = placed_argv(launcher, started, _process(slot, subject, *arguments))
                log = Path(folder, str(slot.index))
                child = host.spawn(argv, env=clean_environment(), cwd=folder, log=str(log))
                slots.append({"argv": argv, "log": log, "child": child})
            _await_reports(slots)
            seen = [_look(slot) for slot in slots]
            if case["witnesses"]:
                for slot in {plan.slots[0], plan.slots[-1]}:  # each costs a second of the guest's
                    entry, pid = seen[slot.index], slots[slot.index]["child"].pid
                    entry["numastat"] = _said(["numastat", "-p", str(pid)])
                    entry["numactl"] = _said(
                        placed_argv(launcher, plan, _process(slot, "numactl", "--show"))
                    )
                    entry["hwloc"] = _said(
                        placed_argv(launcher, plan, _process(slot, "hwloc-bind", "--get"))
                    )
        finally:
            _end([slot["child"] for slot in slots])
    return {"case": case, "plan": plan.model_dump(mode="json"), "slots": seen}


def report(argv: Sequence[str]) -> tuple[int | None, str]:
    """The subject's line, and its exit status if it did not live to be ended."""
    host = LocalHost()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        child = host.spawn(argv, env=clean_environment(), cwd=folder, log=str(log))
        try:
            _await_reports([{"log": log, "child": child}])
            status = child.poll()
        finally:
            _end([child])
        return status, log.read_text()


def _process(slot: Slot, *argv: str) -> ProcessSpec:
    name = f"worker-{slot.index}"
    return ProcessSpec(name=name, role=Role.WORKER, slot=slot.index, argv=argv, env={}, stage=0)


def _said(argv: Sequence[str]) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


def _await_reports(slots: Sequence[dict[str, Any]]) -> None:
    """Until every subject has written its line, or has ended."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        if all(
            slot["log"].read_text().endswith("\n") or slot["child"].poll() is not None
            for slot in slots
        ):
            return
        time.sleep(POLL_S)


def _look(slot: dict[str, Any]) -> dict[str, Any]:
    """What the subject wrote, and what the kernel shows of it to others."""
    proc = Path("/proc", str(slot["child"].pid))
    tasks: list[dict[str, Any]] = []
    numa_maps = ""
    try:
        for task in sorted((proc / "task").iterdir()):
            status, stat = (task / "status").read_text(), (task / "stat").read_text()
            tasks.append({"tid": int(task.name), "status": status, "stat": stat})
        numa_maps = (proc / "numa_maps").read_text()
    except OSError:
        pass  # it has ended; what it wrote says why
    return {
        "argv": slot["argv"],
        "said": slot["log"].read_text(),
        "tasks": tasks,
        "numa_maps": numa_maps,
    }


def _end(children: Sequence[Child]) -> None:
    for child in children:
        child.signal(signal.SIGTERM)
    for child in children:
        child.wait()


# ---- Wrong on purpose: what is started is not what was planned, and the judge has to object ---


def _every_slot(plan: Plan, change: Callable[[Slot], dict[str, Any]]) -> Plan:
    slots = tuple(slot.model_copy(update=change(slot)) for slot in plan.slots)
    return plan.model_copy(update={"slots": slots})


def _neighbours_cpus(plan: Plan, _: Machine) -> Plan:
    count = len(plan.slots)
    return _every_slot(plan, lambda slot: {"cpus": plan.slots[(slot.index + 1) % count].cpus})


def _next_node(plan: Plan, machine: Machine) -> Plan:
    homes = [node.os_index for node in machine.nodes if node.pus and node.memory_bytes]
    after = dict(zip(homes, homes[1:] + homes[:1], strict=True))
    return _every_slot(
        plan, lambda slot: {"memory_nodes": tuple(sorted(after[n] for n in slot.memory_nodes))}
    )


def _no_policy(plan: Plan, _: Machine) -> Plan:
    return _every_slot(plan, lambda _: {"memory_policy": MemoryPolicy.FIRST_TOUCH})


SABOTAGE: dict[str, Callable[[Plan, Machine], Plan]] = {
    "": lambda plan, _: plan,
    "neighbour's CPUs": _neighbours_cpus,
    "next node's memory": _next_node,
    "no memory policy": _no_policy,
}
