"""`atoll measure` and its probe on an emulated machine: threads and pages are where they should be.

What is judged is the kernel's word (`/proc`: masks, CPUs, numa_maps), seen from another process
while the probe works; the probe's own word must agree with it. The figures mean nothing here.
The machine has two packages of four chiplets and two nodes of memory without CPUs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from atoll.guest.guest import Guest
from atoll.schema.cpulist import format_cpulist
from atoll.schema.profile import Kind, Profile
from tests.vm import expected

pytestmark = pytest.mark.parametrize("guest", ["cxl"], indirect=True)
INSIDE = [sys.executable, "-m", "tests.vm.inside.measure"]
MIB = 1 << 20
CPUS = {0, 1, 6, 9}  # a chiplet's, another's, another package's
SAMPLING = {"budget_ns": 800_000_000, "settle": 0.0, "samples": 100_000}
NEAR, FAR = (0, 5), (1, 14)  # in one package; across


def chase(cpu: int, node: int) -> dict[str, Any]:
    return {"do": "chase", "cpu": cpu, "node": node, "bytes": 4 * MIB, "huge": False}


def move(cpus: Sequence[int], node: int | None, op: str, store: str) -> dict[str, Any]:
    request = {"do": "move", "cpus": cpus, "node": node, "bytes": 6 * MIB, "op": op}
    return {**request, "store": store, "isa": None, "huge": False, "start_ns": None, "run_ns": None}


# Each with the CPUs that it runs on and, where its memory is one, the node.
REQUESTS: Mapping[str, tuple[dict[str, Any], set[int], int | None]] = {
    "near memory": (chase(3, 0), {3}, 0),
    "far memory": (chase(3, 1), {3}, 1),
    "memory without CPUs": (chase(12, 2), {12}, 2),
    "two packages, one node": (move([2, 9], 1, "triad", "temporal"), {2, 9}, 1),
    "streaming stores": (move([7], 3, "copy", "streaming"), {7}, 3),
    "a thread in each package, first touch": (
        move([4, 15], None, "read", "temporal"),
        {4, 15},
        None,
    ),
    "loaded": (
        {"do": "load", "cpu": 8, "node": 1, "bytes": 4 * MIB, "loaders": [9, 10], "gap": 10},
        {8, 9, 10},
        1,
    ),
    "a pair": ({"do": "ping", "cpus": NEAR, "home": 0, "op": "cas"}, set(NEAR), None),
    "a pair far apart": ({"do": "ping", "cpus": FAR, "home": 1, "op": "store"}, set(FAR), None),
    "homed at the producer": (
        {"do": "pipe", "cpus": FAR, "home": 0, "bytes": 2 * MIB},
        set(FAR),
        0,
    ),
    "homed at the consumer": (
        {"do": "pipe", "cpus": FAR, "home": 1, "bytes": 2 * MIB},
        set(FAR),
        1,
    ),
}


def test_every_kernel_is_where_it_was_sent(guest: Guest) -> None:
    guest.run(["sh", "-c", "echo 0 >/proc/sys/kernel/numa_balancing"])
    requests = [{**request, **SAMPLING} for request, _, _ in REQUESTS.values()]
    done = guest.run(
        [*INSIDE, "kernels", json.dumps(requests)],
        timeout_s=900,
    )
    assert done.returncode == 0, done.stderr
    *found, ended = json.loads(done.stdout)
    assert ended == {"status": 0}
    for (name, (request, cpus, node)), one in zip(REQUESTS.items(), found, strict=True):
        answer = one["answer"]
        assert answer["ok"], (name, answer)
        looks = [look for look in one["looks"] if look["threads"]]
        assert looks, (name, one)
        # By the kernel's word: each thread may run on one CPU only, and does.
        for look in looks:
            for mask, cpu in look["threads"].values():
                assert mask == str(cpu) and cpu in cpus, (name, look)
        seen = {int(tid): cpu for look in looks for tid, (_, cpu) in look["threads"].items()}
        assert set(seen.values()) == cpus, (name, looks)
        # The probe says the same of the same threads.
        said = {thread["tid"]: thread["cpu"] for thread in answer["threads"]}
        assert said == seen, name
        assert all(set(t["seen"]) == {t["cpu"]} for t in answer["threads"]), (name, answer)
        # Memory: all of it was seen, and every page on the node.
        if "bytes" in request:
            memory = [each for look in looks for each in look["memory"]]
            assert memory, (name, looks)
            # A pipe's memory has its home from who touches it first.
            bound = node is not None and request["do"] != "pipe"
            policies = {policy for policy, _ in memory}
            assert policies == {f"bind:{node}" if bound else "default"}, (name, looks)
            parts = [part for _, part in memory]
            assert max(sum(part.values()) for part in parts) >= request["bytes"], (name, looks)
            nodes = {int(number) for part in parts for number in part}
            assert nodes == ({node} if node is not None else {0, 1}), (name, parts)
            assert {int(number) for number in answer["pages"]} == nodes, (name, answer["pages"])
        elif request["do"] == "ping":
            home = request["cpus"][request["home"]]
            assert answer["pages"] == {str(expected.layout(guest.topology).node_of[home]): 1}


@pytest.mark.long
def test_the_command_ends_and_nothing_of_it_is_astray(guest: Guest) -> None:
    done = guest.run(
        [*INSIDE, "command", "--quick", "--json", "--cpus", format_cpulist(CPUS)],
        timeout_s=900,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["status"] == 0, found["err"]
    assert found["probes"] >= 1 and found["left"] == []
    looks = found["looks"]

    # By the kernel's word.
    seen = [thread for look in looks for thread in look["threads"].values()]
    assert seen and all(mask == str(cpu) for mask, cpu in seen)
    assert {cpu for _, cpu in seen} == CPUS
    for look in looks:
        for policy, nodes in look["memory"]:
            if policy.startswith("bind:"):
                assert set(nodes) == {policy.removeprefix("bind:")}, look
    # By the profile's word.
    profile = Profile.model_validate(found["profile"])
    assert profile.emulated and "emulated" in {notice.code for notice in profile.notices}
    assert set(profile.cpus) == CPUS
    assert {watch.kind for watch in profile.watch} == set(Kind)
    for watch in profile.watch:
        assert watch.misplaced_threads == watch.misplaced_pages == 0, watch
    # Emulation shows no chiplets, and none are made up.
    assert profile.inference is None or not profile.inference.chiplets
    # A slow host may leave no time for a kind; then it is reported.
    latency = (profile.core_latency_cas_ns, profile.core_latency_store_ns)
    for matrix in filter(None, latency):
        assert set(matrix.pus) == CPUS
    if profile.nodes is not None:
        assert set(profile.nodes.cpu_nodes) == {0, 1}
        assert set(profile.nodes.memory_nodes) == {0, 1, 2, 3}
    measured = {
        Kind.LATENCY: all(latency),
        Kind.NODES: profile.nodes,
        Kind.STREAM: profile.stream,
        Kind.CACHE: profile.caches,
        Kind.SHARING: profile.sharing,
        Kind.CHURN: profile.churn,
        Kind.BANDWIDTH: profile.core_bandwidth_gbs,
    }
    left_out = " ".join(notice.message for notice in profile.left_out)
    for kind, figures in measured.items():
        assert figures or kind.value in left_out, (kind, profile.left_out)
