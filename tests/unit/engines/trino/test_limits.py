"""A user's limits of what queries take: kept where they fit, else smaller, and never larger."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.engines.trino.family import PRESTO, TRINO, Family
from atoll.engines.trino.memory import HEADROOM, limits_to_change
from tests.parts.trino_plans import BOTH, a_plan, a_tree, config, lay_out, mib

GIB = 1 << 30
PER_NODE, HEADROOM_NAME = "query.max-memory-per-node", "memory.heap-headroom-per-node"
TOTAL = "query.max-total-memory-per-node"


@BOTH
def test_limits_that_fit_stay_as_they_are(name: str) -> None:
    """On a large machine they became as large as the machine."""
    text = f"query.max-memory=40GB\n{PER_NODE}=8GB\n{TOTAL}=9GB\nquery.max-total-memory=50GB\n"
    text += "task.concurrency=4\ntask.max-worker-threads=6\n"
    plan = a_plan(name, "win")
    found = config(lay_out(name, plan, a_tree(config_properties=text)), "worker-0")
    assert found["query.max-memory"] == "40GB"
    assert found["query.max-total-memory"] == "50GB"
    assert (found[PER_NODE], found[TOTAL]) == ("8GB", "9GB")
    assert (found["task.concurrency"], found["task.max-worker-threads"]) == ("4", "6")
    assert HEADROOM_NAME not in found


@BOTH
def test_limits_that_a_user_leaves_at_their_defaults_stay_there(name: str) -> None:
    found = config(lay_out(name, a_plan(name, "win"), a_tree()), "worker-0")
    assert not {"query.max-memory", PER_NODE, TOTAL, HEADROOM_NAME} & found.keys()


@BOTH
def test_limits_that_do_not_fit_become_smaller(name: str) -> None:
    text = f"query.max-memory=900TB\n{PER_NODE}=300GB\ntask.concurrency=64\n"
    text += "task.max-worker-threads=500\n"
    plan = a_plan(name)
    layout = lay_out(name, plan, a_tree(config_properties=text))
    heap_mib = plan.slots[0].heap_bytes >> 20
    found = config(layout, "worker-0")
    assert 0.69 * heap_mib < mib(found[PER_NODE]) <= 0.7 * heap_mib
    if name == "presto":  # its default is twice the other limit
        assert found[TOTAL] == found[PER_NODE]
    total_mib = sum(slot.heap_bytes for slot in plan.slots) >> 20
    assert 0.69 * total_mib < mib(found["query.max-memory"]) <= 0.7 * total_mib
    assert found["task.concurrency"] == str(plan.slots[0].threads)
    assert found["task.max-worker-threads"] == str(2 * plan.slots[0].threads)
    # The coordinator has a small heap of its own.
    assert plan.coordinator
    assert mib(config(layout, "coordinator")[PER_NODE]) < plan.coordinator.heap_bytes >> 20


sizes = st.none() | st.integers(1, 200).map("{}GB".format) | st.sampled_from(["40%", "0.5TB"])


@pytest.mark.parametrize("family", [TRINO, PRESTO], ids=["trino", "presto"])
@given(per_node=sizes, total=sizes, headroom=sizes, heap_gib=st.integers(1, 300))
def test_the_server_starts_and_no_limit_grows(
    family: Family, per_node: str | None, total: str | None, headroom: str | None, heap_gib: int
) -> None:
    """By the rules with which Trino and Presto check these settings at their start."""
    given_ = {PER_NODE: per_node, TOTAL: total, HEADROOM_NAME: headroom}
    theirs = {key: value for key, value in given_.items() if value is not None}
    if family is TRINO:
        theirs.pop(TOTAL, None)
    heap = heap_gib * GIB
    changed = limits_to_change(family, theirs, heap, [heap])
    found = {key: as_bytes(value, heap) for key, value in theirs.items()}
    new = found | {key: as_bytes(setting.value, heap) for key, setting in changed.items()}
    assert all(new[key] <= size for key, size in found.items())
    beside = new.get(HEADROOM_NAME, heap * HEADROOM)
    one = new.get(PER_NODE, heap * (0.3 if family is TRINO else 0.1))
    largest = one if family is TRINO else new.get(TOTAL, 2 * one)
    assert one <= largest
    assert largest + beside <= heap + 1


def test_a_limit_that_cannot_be_read_is_the_servers_to_refuse() -> None:
    theirs = {PER_NODE: "${ENV:LIMIT}", "query.max-memory": "much"}
    assert limits_to_change(TRINO, theirs, 8 * GIB, [8 * GIB]) == {}


def as_bytes(text: str, heap: int) -> float:
    if text.endswith("%"):
        return heap * float(text[:-1]) / 100
    return float(text[:-2]) * {"MB": 1 << 20, "GB": GIB, "TB": GIB << 10}[text[-2:]]
