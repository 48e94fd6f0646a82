"""`--listen nic` on a machine with a network card on each node: each slot gets its own node's."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from atoll.guest.guest import Guest

NICS = Path(__file__).resolve().parent / "nics.toml"
CARDS = ("eth0", "eth1")


@pytest.mark.parametrize("guest", [str(NICS)], indirect=True)
def test_each_slot_listens_at_the_nic_of_its_node(guest: Guest) -> None:
    lines = [f"ip addr add 10.7.{number}.5/24 dev {name}" for number, name in enumerate(CARDS)]
    # The node of a card's PCI device, as the kernel has it.
    lines += [f"cat /sys/class/net/{name}/device/../numa_node" for name in CARDS]
    lines += [f"{sys.executable} -m atoll plan trino --policy win --listen nic --json"]
    done = guest.run(["sh", "-ec", "\n".join(lines)], timeout_s=300)
    assert done.returncode == 0, done.stdout + done.stderr
    *nodes, plan = done.stdout.split("\n", len(CARDS))
    card_on = {int(node): number for number, node in enumerate(nodes)}
    assert sorted(card_on) == [0, 1]
    slots = json.loads(plan)["slots"]
    assert [slot["nodes"] for slot in slots] == [[0], [1]]
    for slot in slots:
        number = card_on[slot["nodes"][0]]
        assert (slot["nic"], slot["address"]) == (CARDS[number], f"10.7.{number}.5")
