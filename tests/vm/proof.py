"""Asks a guest, in one run for each topology, all that the proof of placement needs of it.

Tests share the answers of a boot: starting Python in a guest takes seconds. The covering
subset of the normal suite pairs each policy with a memory policy, turned by one from topology
to topology, so that on every topology every policy and every memory policy lands at least once
and over all topologies every pair does. The full product is for `make test-long`.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from atoll.guest.guest import Guest
from tests.vm import expected
from tests.vm.landing import Layout, Verdict, judge_slot, plan_faults

ROOT = Path(__file__).resolve().parents[2]
SUBJECT = ROOT / "tests/vm/subject/subject.cpp"
TOPOLOGIES = ("milan2", "milan4", "milan8", "smt", "short", "spr4", "cxl", "hidden", "siblings")
# A proof takes a minute and a half on two cores: CI has AMD's chiplets beside nodes without CPUs,
# and Intel's cores.
_IN_CI = ("cxl", "spr4")
every_topology = pytest.mark.parametrize(
    "guest",
    [name if name in _IN_CI else pytest.param(name, marks=pytest.mark.long) for name in TOPOLOGIES],
    indirect=True,
)
POLICIES = ("wim", "win", "wicp", "wicp-mixed", "wic", "spmwin")
MEMORY = ("first-touch", "local", "bind", "preferred", "interleave", "weighted-interleave")
PAGES = 60  # of a mapping, per thread: whole cycles for 2, 4 and 5 shares
PATIENCE_S = 600.0
POLL_S = 0.1
_WEIGHTS = "/sys/kernel/mm/mempolicy/weighted_interleave"

Case = dict[str, Any]


def case(
    policy: str,
    memory: str = "",
    *,
    smt: bool = False,
    sabotage: str = "",
    witnesses: bool = False,
) -> Case:
    return {
        "policy": policy,
        "memory": memory,
        "smt": smt,
        "sabotage": sabotage,
        "witnesses": witnesses,
    }


def with_smt(layout: Layout) -> tuple[bool, ...]:
    """The values of --smt that differ on a machine."""
    return (False, True) if any(len(core) > 1 for core in layout.cores) else (False,)


def covering(topology: str, layout: Layout) -> list[Case]:
    """Every policy and every memory policy once; the pairing turns with the topology."""
    turn = TOPOLOGIES.index(topology) if topology in TOPOLOGIES else 0
    kinds = with_smt(layout)
    return [
        case(
            policy,
            MEMORY[(place + turn) % len(MEMORY)],
            smt=kinds[(place + turn) % len(kinds)],
            witnesses=policy == "wicp",
        )
        for place, policy in enumerate(POLICIES)
    ]


def product(layout: Layout) -> list[Case]:
    return [
        case(policy, memory, smt=smt)
        for policy, memory, smt in itertools.product(POLICIES, ("", *MEMORY), with_smt(layout))
    ]


def weights(layout: Layout) -> dict[int, int]:
    """Unequal weights for weighted interleave, other than the kernel's own."""
    return {node: (3, 1, 2)[node % 3] for node in layout.memory_nodes}


def weight_files(shares: Mapping[int, int]) -> dict[str, str]:
    return {f"{_WEIGHTS}/node{node}": str(weight) for node, weight in shares.items()}


# AutoNUMA, huge pages and compaction would move pages on their own, or many at a time, and blur
# what is seen: a page on its way is counted nowhere.
STILL = {
    "/proc/sys/kernel/numa_balancing": "0",
    "/proc/sys/vm/compaction_proactiveness": "0",
    "/sys/kernel/mm/transparent_hugepage/enabled": "never",
}
# Before huge pages are asked for: where free memory lies in pieces there are fewer, or none.
ROOM = "sync && echo 3 >/proc/sys/vm/drop_caches && echo 1 >/proc/sys/vm/compact_memory"


@functools.cache
def subject() -> Path:
    """The program that is placed, built for any x86-64: TCG has no AVX-512."""
    folder = ROOT / "build/vm"
    built = folder / "subject"
    if not built.exists() or built.stat().st_mtime < SUBJECT.stat().st_mtime:
        folder.mkdir(parents=True, exist_ok=True)
        flags = ["-std=c++20", "-O2", "-pthread", "-static-libstdc++", "-static-libgcc"]
        fresh = folder / f"subject.{os.getpid()}"
        subprocess.run(["g++", *flags, str(SUBJECT), "-o", str(fresh)], check=True)
        fresh.rename(built)
    return built


@dataclass
class _Server:
    """tests/vm/inside/steps.py as it runs in a guest."""

    command: int
    asked: int = 0


_SERVERS: dict[Path, _Server] = {}  # by the guest's share, which is another one at each boot


def ask(guest: Guest, steps: Sequence[tuple[str, Any]], timeout_s: float = PATIENCE_S) -> list[Any]:
    """The guest's answers to the steps. The first call in a guest starts what gives them.

    Raises GuestDied where they do not come; the guest is off then."""
    if guest.share not in _SERVERS:
        argv = [sys.executable, "-m", "tests.vm.inside.steps", str(guest.share)]
        _SERVERS[guest.share] = _Server(guest.start(argv, cwd=ROOT))
    server = _SERVERS[guest.share]
    answer = guest.share / f"answer-{server.asked}.json"
    request = guest.share / f"request-{server.asked}.json"
    fresh = request.with_suffix(".new")
    fresh.write_text(json.dumps(steps))
    fresh.rename(request)
    deadline = time.monotonic() + timeout_s
    ended = None
    while not answer.exists() and ended is None and time.monotonic() < deadline:
        ended = guest.wait(server.command, POLL_S)
    if not answer.exists():
        said = guest.output(server.command, "err").read_text()
        del _SERVERS[guest.share]
        if ended is None:
            guest.give_up(f"no answer in {timeout_s:g} s; last step: {said.splitlines()[-1:]}")
        raise AssertionError(
            f"the guest's steps ended with {ended}, {guest.out_of_memory()}; they said:\n{said}"
        )
    server.asked += 1
    answers = json.loads(answer.read_text())
    assert isinstance(answers, list)
    return answers


def online(cpu: int, *, on: bool) -> tuple[str, dict[str, str]]:
    """The step that takes a CPU online or offline."""
    return ("write", {f"/sys/devices/system/cpu/cpu{cpu}/online": str(int(on))})


def landing_steps(cases: Iterable[Case], shares: Mapping[int, int]) -> list[tuple[str, Any]]:
    """Three steps; the last one's answer is what `judge` takes."""
    program = {"subject": str(subject()), "pages": PAGES, "cases": list(cases)}
    return [("write", STILL), ("write", weight_files(shares)), ("land", program)]


@dataclass(frozen=True)
class Landed:
    """One case that was judged."""

    case: Case
    plan: Mapping[str, Any]
    slots: Sequence[Mapping[str, Any]]
    plan_faults: Sequence[str]
    verdict: Verdict


def judge(answers: Sequence[Any], layout: Layout, shares: Mapping[int, int]) -> list[Landed]:
    landed = []
    for answer in answers:
        asked, plan = answer["case"], answer["plan"]
        verdict = Verdict()
        for slot, seen in zip(plan["slots"], answer["slots"], strict=True):
            verdict += judge_slot(slot, seen, layout, shares)
        faults = plan_faults(plan, layout, asked["policy"], asked["memory"], smt=asked["smt"])
        landed.append(Landed(asked, plan, answer["slots"], faults, verdict))
    return landed


@dataclass(frozen=True)
class Proof:
    """A topology's answers."""

    layout: Layout
    topo: Mapping[str, Any]  # `atoll topo --json`
    plans: Sequence[Mapping[str, Any]]
    landed: Sequence[Landed]
    said: Mapping[str, str]  # what other tools print, by their command line


_TOOLS = (
    "numactl --hardware",
    "hwloc-info",
    "lscpu -p=CPU,NODE,SOCKET",
    *(f"hwloc-calc -N {kind} all" for kind in ("package", "numa", "l3", "core", "pu")),
    "grep -H . -r /sys/devices/system/cpu --include=shared_cpu_list --include=level",
)
_PROOFS: dict[str, Proof] = {}


def proof(guest: Guest) -> Proof:
    """The answers of this guest's topology, asked for once in a run of pytest."""
    name = guest.topology.name
    if name not in _PROOFS:
        _PROOFS[name] = _prove(guest)
    return _PROOFS[name]


def _prove(guest: Guest) -> Proof:
    layout = expected.layout(guest.topology)
    shares = weights(layout)
    steps: list[tuple[str, Any]] = [("atoll", ["topo", "--json"])]
    steps += [("plans", product(layout))]
    steps += [("run", tool.split()) for tool in _TOOLS]
    steps += landing_steps(covering(guest.topology.name, layout), shares)
    answers = ask(guest, steps)
    status, out, err = answers[0]
    assert status == 0, err
    for tool, (tool_status, _, tool_err) in zip(_TOOLS, answers[2:], strict=False):
        assert tool_status == 0, f"{tool}: {tool_err}"
    return Proof(
        layout=layout,
        topo=json.loads(out),
        plans=answers[1],
        landed=judge(answers[-1], layout, shares),
        said={tool: answer[1] for tool, answer in zip(_TOOLS, answers[2:], strict=False)},
    )
