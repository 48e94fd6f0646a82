"""NICs are dealt out when, and only when, instances listen to the network."""

from __future__ import annotations

import pytest

from atoll.errors import UsageError
from atoll.plan import make_plan
from atoll.plan.network import parse_listen
from atoll.report.terminal.plan import plan_text
from atoll.schema.base import parse
from atoll.schema.machine import Machine, Nic
from atoll.schema.plan import Plan
from tests.parts.faults import fails
from tests.parts.machines import NodeShape, build
from tests.parts.plan import DISTRIBUTED, SINGLE

LISTENING = DISTRIBUTED.model_copy(update={"listens": True})
ADDRESSES = {"eth0": ("10.0.0.5", "10.0.0.6"), "eth1": ("10.0.1.5",), "lo": ("127.0.0.1",)}


def machine(*nics: Nic) -> Machine:
    cards = nics or (Nic(name="eth1", node=0), Nic(name="eth0", node=0), Nic(name="ib0", node=1))
    return build([[NodeShape((2, 2, 2))], [NodeShape((2,))]], nics=cards)


def planned(text: str, *nics: Nic, policy: str = "wicp") -> Plan:
    ground = machine(*nics)
    return make_plan(ground, LISTENING, policy, listen=parse_listen(text, ground, ADDRESSES))


def listening(plan: Plan) -> list[tuple[str | None, str | None]]:
    return [(slot.address, slot.nic) for slot in plan.slots]


@pytest.mark.parametrize("text", ["loopback", "127.0.0.1"])
def test_on_loopback_no_nic_is_dealt_out_or_shown(text: str) -> None:
    plan = planned(text)
    assert plan == make_plan(machine(), LISTENING, "wicp")
    assert listening(plan) == [(None, None)] * 4
    assert plan.addresses == ()
    assert "listens at" not in plan_text(plan, explain=True, colour=False)


def test_slots_take_the_nics_of_their_node_in_turn() -> None:
    plan = planned("nic")
    first, second = ("10.0.0.5", "eth0"), ("10.0.1.5", "eth1")
    # ib0 of node 1 has no address, so the slot there takes a NIC of another node.
    assert listening(plan) == [first, second, first, second]
    assert plan.addresses == ("10.0.0.5", "10.0.1.5")
    assert plan.coordinator is not None and plan.coordinator.address == "10.0.0.5"
    (reason,) = [reason.text for reason in plan.reasons if reason.rule == "a NIC for each slot"]
    assert "whose node has none (3)" in reason
    assert "10.0.1.5 eth1" in plan_text(plan, explain=False, colour=False, width=120)


def test_each_node_with_a_nic_uses_it() -> None:
    plan = planned("nic", Nic(name="eth0", node=1), Nic(name="eth1", node=0))
    assert [slot.nic for slot in plan.slots] == ["eth1", "eth1", "eth1", "eth0"]


def test_a_single_nic_is_shared_and_the_plan_says_so() -> None:
    plan = planned("nic", Nic(name="eth1", node=1))
    assert listening(plan) == [("10.0.1.5", "eth1")] * 4
    assert "All slots listen at 10.0.1.5 (eth1)" in " ".join(
        plan_text(plan, explain=False, colour=False).split()
    )


@pytest.mark.parametrize(
    ("text", "nic"), [("10.0.0.6", "eth0"), ("127.0.0.9", None)], ids=["second", "loopback"]
)
def test_one_address_is_for_all_slots(text: str, nic: str | None) -> None:
    plan = planned(text, policy="wim")
    assert listening(plan) == [(text, nic)]
    assert any(text in warning for warning in plan.warnings) == (nic is not None)


@pytest.mark.parametrize("text", ["", "eth0", "10.0.0", "::1", "10.0.0.5/24"])
def test_nonsense_is_refused(text: str) -> None:
    with fails(UsageError, text=f"--listen {text}:"):
        parse_listen(text, machine(), ADDRESSES)


@pytest.mark.parametrize("text", ["0.0.0.0", "224.0.0.1", "255.255.255.255"])
def test_what_no_peer_could_be_given_is_refused(text: str) -> None:
    with fails(UsageError, text=f"--listen {text}:"):
        parse_listen(text, machine(), ADDRESSES)


def test_addresses_of_another_machine() -> None:
    with fails(UsageError, text="--listen nic:"):
        parse_listen("nic", machine(), None)
    (place,) = parse_listen("10.9.9.9", machine(), None)
    assert place == ("10.9.9.9", None)
    with fails(UsageError, text="--listen 10.9.9.9:", have="10.0.1.5 (eth1)"):
        parse_listen("10.9.9.9", machine(), ADDRESSES)


def test_nics_without_addresses_are_refused_with_those_there_are() -> None:
    with fails(UsageError, text="--listen nic:", have="10.0.0.5 (bond0)"):
        parse_listen("nic", machine(), {"bond0": ("10.0.0.5",)})


def test_an_engine_with_sockets_only_is_refused() -> None:
    with fails(UsageError, engine=SINGLE.name):
        make_plan(machine(), SINGLE, "wim", listen=parse_listen("nic", machine(), ADDRESSES))


@pytest.mark.parametrize("change", [{"address": "10.0.0"}, {"nic": "../../x"}])
def test_a_hand_edited_address_is_checked(change: dict[str, str]) -> None:
    plan = planned("nic")
    slots = (plan.slots[0].model_copy(update=change), *plan.slots[1:])
    with pytest.raises(UsageError):
        parse(Plan, plan.model_copy(update={"slots": slots}).model_dump_json(), where="p")


def test_rates_are_in_the_reason_and_unequal_ones_in_a_warning() -> None:
    fast, slow = Nic(name="eth0", node=0, rate_mbit_s=10000), Nic(name="eth1", node=1)
    slow = slow.model_copy(update={"rate_mbit_s": 1000})
    plan = planned("nic", fast, slow)
    (reason,) = [reason.text for reason in plan.reasons if reason.rule == "a NIC for each slot"]
    assert "eth0 has 10 Gbit/s, eth1 has 1 Gbit/s" in reason
    assert any("eth1 has 1 Gbit/s and eth0 10 Gbit/s" in each for each in plan.warnings)


def test_equal_unknown_and_unused_rates_need_no_warning() -> None:
    cards = [Nic(name="eth0", node=0, rate_mbit_s=2500), Nic(name="eth1", node=1, rate_mbit_s=2500)]
    unknown = [Nic(name="eth0", node=0), cards[1]]
    for nics in (cards, unknown):
        assert not any("bit/s" in each for each in planned("nic", *nics).warnings)
    assert not any("bit/s" in each for each in planned("10.0.0.5", *unknown).warnings)
