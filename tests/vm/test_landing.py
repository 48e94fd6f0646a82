"""Plans land: every thread on its CPUs, every page on its nodes, in guests of every topology.

A many-threaded program (tests/vm/subject) is started in every slot of a plan by the very code
that `atoll up` uses. It is judged (tests/vm/landing.py) by what it sees from inside
(sched_getaffinity, getcpu, move_pages) and by what /proc shows from outside (status, stat,
numa_maps), and beside what numactl, hwloc and numastat say of the same slots.

On every topology every policy and every memory policy lands at least once; over all topologies
every pair does. The full product runs in `make test-long`.
"""

from __future__ import annotations

import json
import re
import signal
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from atoll.guest import topology
from atoll.guest.guest import Guest
from tests.vm import expected
from tests.vm.landing import Verdict, plan_faults
from tests.vm.proof import (
    MEMORY,
    POLICIES,
    ROOT,
    STILL,
    TOPOLOGIES,
    Landed,
    ask,
    case,
    covering,
    every_topology,
    judge,
    landing_steps,
    product,
    proof,
    subject,
    weights,
)


def test_the_subset_covers_what_it_promises() -> None:
    layouts = {name: expected.layout(topology.load(name)) for name in TOPOLOGIES}
    pairs = set()
    for name, layout in layouts.items():
        cases = covering(name, layout)
        assert {c["policy"] for c in cases} == set(POLICIES)
        assert {c["memory"] for c in cases} == set(MEMORY)
        pairs |= {(c["policy"], c["memory"]) for c in cases}
    assert len(pairs) == len(POLICIES) * len(MEMORY)


@every_topology
def test_every_policys_plan_is_valid(guest: Guest) -> None:
    """All policies, with all memory policies and with none, with and without SMT."""
    found = proof(guest)
    assert len(found.plans) >= len(POLICIES) * (len(MEMORY) + 1)
    faults = []
    for answer in found.plans:
        asked = answer["case"]
        assert "refused" not in answer, answer
        faults += [
            (asked, fault)
            for fault in plan_faults(
                answer["plan"], found.layout, asked["policy"], asked["memory"], smt=asked["smt"]
            )
        ]
    assert not faults


@every_topology
def test_every_policy_lands(guest: Guest, request: pytest.FixtureRequest) -> None:
    _assert_landed(proof(guest).landed, request)


def _assert_landed(landed: Sequence[Landed], request: pytest.FixtureRequest) -> None:
    total = Verdict()
    for one in landed:
        assert not one.plan_faults, one.case
        assert not one.verdict.faults, (one.case, one.verdict.faults[:10])
        # Each of a slot's threads was there, and its pages; nothing passes by being absent.
        assert one.verdict.threads >= one.plan["total_threads"], one.case
        assert one.verdict.pages >= 100 * one.verdict.threads, one.case
        assert one.verdict.outside_pages >= one.verdict.pages, one.case
        assert one.verdict.uncertain <= one.verdict.pages // 10, one.case
        total += one.verdict
    request.node.user_properties += [("threads", total.threads), ("pages", total.pages)]


@every_topology
def test_numactl_and_hwloc_see_the_same_mask_and_policy(guest: Guest) -> None:
    seen = 0
    for one in proof(guest).landed:
        for slot, entry in zip(one.plan["slots"], one.slots, strict=True):
            if "numactl" not in entry:
                continue
            seen += 1
            # numactl 2.0.16 forgets the end of its line 'preferred node: ' under `local`.
            pattern = r"(policy|preferred node|physcpubind|membind|interleavemask): ?([\w ]*)$"
            shown = dict(re.findall(pattern, entry["numactl"], re.MULTILINE))
            assert sorted(map(int, shown["physcpubind"].split())) == slot["cpus"]
            # Debian 12's numactl knows nothing of weighted interleave.
            word = {"first-touch": "default", "weighted-interleave": None}.get(
                slot["memory_policy"], slot["memory_policy"]
            )
            if word is not None:
                assert shown["policy"] == word
            if word in ("bind", "interleave"):
                key = {"bind": "membind", "interleave": "interleavemask"}[word]
                assert list(map(int, shown[key].split())) == slot["memory_nodes"]
            if word == "preferred":
                assert [int(shown["preferred node"])] == slot["memory_nodes"]
            mask = sum(1 << cpu for cpu in slot["cpus"])
            assert int(entry["hwloc"].replace(",0x", ""), 16) == mask
    assert seen >= min(2, len(one.plan["slots"]))


@every_topology
def test_numastat_counts_the_same_pages(guest: Guest) -> None:
    """numastat -p rounds to hundredths of a MiB and leaves shared memory out."""
    seen = 0
    for one in proof(guest).landed:
        for entry in one.slots:
            if "numastat" not in entry:
                continue
            seen += 1
            rows = re.findall(r"^(Heap|Stack|Private) +([ \d.]+)$", entry["numastat"], re.MULTILINE)
            assert len(rows) == 3, entry["numastat"]
            numbers = [list(map(float, row.split())) for _, row in rows]
            theirs = [sum(column) for column in zip(*numbers, strict=True)][:-1]
            ours = dict.fromkeys(range(len(theirs)), 0)
            for line in entry["numa_maps"].splitlines():
                for node, pages in re.findall(r" N(\d+)=(\d+)", line):
                    ours[int(node)] += int(pages)
            for node, mib in enumerate(theirs):
                assert mib == pytest.approx(ours[node] * 4096 / 2**20, abs=0.1)
    assert seen


@pytest.mark.parametrize("guest", ["hidden"], indirect=True)
def test_hidden_chiplets_make_wicp_win_and_the_plan_says_so(guest: Guest) -> None:
    found = proof(guest)
    plans = {
        (a["case"]["policy"], a["case"]["memory"], a["case"]["smt"]): a["plan"] for a in found.plans
    }
    assert found.topo["chiplets"] == []
    for memory in ("", *MEMORY):
        win, wicp = plans["win", memory, False], plans["wicp", memory, False]
        assert win["slots"] == wicp["slots"]
        assert "win" in wicp["coincides_with"]
        assert "wicp" in win["coincides_with"]
    text = " ".join(reason["text"] for reason in plans["wicp", "", False]["reasons"])
    assert "win" in text


@pytest.mark.parametrize("guest", ["milan4"], indirect=True)
def test_a_wrong_start_is_noticed(guest: Guest) -> None:
    """What is started is not what was planned, in one way each; the judge has to object."""
    layout = expected.layout(guest.topology)
    wrong = {
        "neighbour's CPUs": (case("wicp", "bind"), {"mask", "ran on", "from outside"}),
        "next node's memory": (case("win", "bind"), {"lies on", "numa_maps"}),
        "no memory policy": (case("wic", "preferred"), {"numa_maps"}),
    }
    cases = [{**one, "sabotage": how} for how, (one, _) in wrong.items()]
    # Without a policy the pages of an interleaved slot all lie where they were touched.
    cases.append(case("win", "interleave", sabotage="no memory policy"))
    expectations = [words for _, words in wrong.values()] + [{"pages on node", "numa_maps"}]
    shares = weights(layout)
    answers = ask(guest, landing_steps(cases, shares))
    for one, words in zip(judge(answers[-1], layout, shares), expectations, strict=True):
        for slot in one.plan["slots"]:
            said = [f for f in one.verdict.faults if f.startswith(f"slot {slot['index']}")]
            assert said, (one.case, slot["index"])
        text = "\n".join(one.verdict.faults)
        assert all(word in text for word in words), (one.case, text[:2000])


@pytest.mark.parametrize("guest", ["milan2"], indirect=True)
def test_a_full_node_spills_where_preferred_and_kills_where_bound(guest: Guest) -> None:
    """What `bind` and `preferred` differ in shows on a node with less memory than is asked for."""
    # 2 threads x 2 mappings: 187 MiB. So many more than are left that what the kernel finds to take
    # back on the node (page cache that came after the filling, what is freed late) does not do.
    asked_pages, left_mib = 12000, 24
    program = [str(subject()), "2", str(asked_pages)]
    # Of all processes the kernel shall choose this one.
    launch = ["choom", "-n", "1000", "--", str(ROOT / ".venv/bin/atoll-exec"), "-C", "8-9"]
    steps: list[tuple[str, Any]] = [("write", STILL)]
    for flag in ("-m", "-p"):
        steps += [("fill", {"node": 1, "leave_mib": left_mib})]
        steps += [("report", [*launch, flag, "1", "--", *program]), ("drain", None)]
    _, left_first, bound, _, left_second, preferred, _ = ask(guest, steps)
    asked_mib = 4 * asked_pages * 4 // 1024
    assert 0 < left_first < asked_mib
    assert 0 < left_second < asked_mib

    assert bound == [-signal.SIGKILL, ""]
    status, said = preferred
    assert status is None
    nodes = Counter(
        node
        for thread in json.loads(said)["threads"]
        for region in thread["regions"]
        for node in region["nodes"]
    )
    assert set(nodes) == {0, 1}
    assert nodes.total() > 4 * asked_pages


@pytest.mark.long
@every_topology
def test_the_full_product_lands(guest: Guest, request: pytest.FixtureRequest) -> None:
    layout = expected.layout(guest.topology)
    shares = weights(layout)
    landed = []
    for policy in POLICIES:
        cases = [one for one in product(layout) if one["policy"] == policy]
        answers = ask(guest, landing_steps(cases, shares), timeout_s=1800)
        landed += judge(answers[-1], layout, shares)
    assert len(landed) == len(product(layout))
    _assert_landed(landed, request)
