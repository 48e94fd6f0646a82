"""Threads and memory moved behind a process's back, on a machine with two nodes and 8 chiplets.

inspect and verify name exactly what was moved, and find nothing where nothing was. What one node
can show is in tests/engines/test_misplaced.py, a JVM's UseNUMA in test_jvm.py.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from atoll.guest.guest import Guest

pytestmark = pytest.mark.parametrize("guest", ["milan2:misplaced"], indirect=True)


def inside(guest: Guest, *arguments: str, timeout_s: float) -> dict[str, Any]:
    done = guest.run(
        [sys.executable, "-m", "tests.vm.inside.misplaced", *arguments], timeout_s=timeout_s
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def codes(look: dict[str, Any]) -> set[str]:
    return {finding["code"] for finding in look["findings"]}


def largest(look: dict[str, Any]) -> dict[str, Any]:
    """The finding about the largest mapping: it comes first."""
    first: dict[str, Any] = look["findings"][0]
    return first


def test_any_process_that_is_moved(guest: Guest) -> None:
    steps = inside(guest, "placed", timeout_s=600)

    # Bound to node 0 by atoll-exec.
    assert steps["bound"]["policy"] == steps["bound"]["expected"]["memory_policy"] == "bind:0"
    for healthy in ("bound", "moved back", "confined", "interleaved", "free, moved"):
        # The last may run anywhere: its memory is nowhere wrong.
        assert steps[healthy]["findings"] == [], healthy
        assert steps[healthy]["unknown"] == []

    moved = steps["all moved"]
    assert codes(moved) == {"memory-outside"}
    assert all(finding["severity"] == "drift" for finding in moved["findings"])
    assert (largest(moved)["expected"], largest(moved)["found"]) == ("nodes 0", "16 MiB on node 1")
    assert largest(moved)["cause"].startswith("all of its memory was moved")
    assert largest(moved)["remedy"].endswith(" 1 0")  # which is what put it back

    (mapping,) = steps["mapping moved"]["findings"]
    assert (mapping["code"], mapping["found"]) == ("memory-outside", "16 MiB on node 1")
    assert mapping["mapping"] == f"anonymous {steps['mapping']}"

    (thread,) = steps["thread moved"]["findings"]
    assert (thread["code"], thread["tid"]) == ("thread-outside", steps["thread"])
    assert (thread["expected"], thread["found"]) == ("CPUs 0-7", "CPUs 8")

    assert largest(steps["own policy"])["found"] == "16 MiB on node 1"
    assert f"thread {steps['binder']} (" in largest(steps["own policy"])["cause"]
    assert "has a policy of its own, bind:1" in largest(steps["own policy"])["cause"]

    # Nothing bound, but kept to the CPUs of node 0: memory belongs beside them.
    assert steps["confined"]["expected"]["memory_nodes"] == "0"
    assert largest(steps["confined moved"])["code"] == "memory-outside"


@pytest.mark.long
@pytest.mark.parametrize("policy", ["win", "wicp"])
def test_a_deployment_of_which_a_thread_and_a_mapping_move(guest: Guest, policy: str) -> None:
    steps = inside(guest, "deployed", policy, timeout_s=600)
    assert steps["slots"] == {"win": 2, "wicp": 8}[policy]
    assert steps["clean"]["findings"] == []
    thread, mapping = steps["misplaced"]["findings"]
    # The live view finds the same with its cheaper looks.
    assert steps["live clean"]["findings"] == []
    assert steps["live"]["findings"] == steps["misplaced"]["findings"]
    before, after = (steps[look]["slots"][-1] for look in ("live clean", "live"))
    assert (before["outside"], after["outside"]) == (0, 1)
    assert after["local_share"] < before["local_share"]
    assert (thread["code"], [thread["pid"], thread["tid"]]) == ("thread-outside", steps["thread"])
    assert mapping["code"] == "memory-outside"
    pid, address = steps["mapping"]
    assert (mapping["pid"], mapping["mapping"]) == (pid, f"anonymous {address}")
    assert (mapping["expected"], mapping["found"]) == ("nodes 1", "16 MiB on node 0")
    assert steps["glance"] == [thread]  # the cheap look has the same rule
