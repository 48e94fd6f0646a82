"""Gives each slot the address at which its instance listens, if it is not loopback. Pure.

Only `--listen` opens an engine to the network. A slot then gets a NIC of its own node, so that data
from other machines arrives in the memory that uses it.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from atoll.errors import UsageError
from atoll.schema.cpulist import format_cpulist
from atoll.schema.machine import Machine
from atoll.schema.plan import LOOPBACK, EngineTraits, Reason, Slot
from atoll.schema.size import bit_rate

ON_LOOPBACK = "loopback"
EACH_NIC = "nic"


class Place(NamedTuple):
    """Where an instance listens."""

    address: str
    nic: str | None  # the interface that has the address, if it is known


# The places to deal out, in the order of their NICs' names.
Listen = tuple[Place, ...]


def parse_listen(
    text: str, machine: Machine, addresses: Mapping[str, Sequence[str]] | None
) -> Listen:
    """Parses 'loopback' (then there is no place), 'nic' or an address. Raises UsageError.

    `addresses`: those of this machine's interfaces; None if `machine` is another one.
    """
    if text in (ON_LOOPBACK, LOOPBACK):
        return ()
    if text == EACH_NIC:
        return _of_nics(machine, addresses)
    try:
        address = ipaddress.IPv4Address(text)
    except ValueError:
        raise UsageError(
            f"--listen {text}: use {ON_LOOPBACK}, {EACH_NIC} or an IPv4 address of the machine"
        ) from None
    if address.is_unspecified or address.is_multicast or address.is_reserved:
        raise UsageError(
            f"--listen {text}: instances give each other their address; use one of the machine's"
        )
    holders = [name for name, own in (addresses or {}).items() if text in own]
    if addresses is not None and not holders and not address.is_loopback:
        raise UsageError(f"--listen {text}: this machine has only {_listed(addresses)}")
    return (Place(text, holders[0] if holders else None),)


def _of_nics(machine: Machine, addresses: Mapping[str, Sequence[str]] | None) -> Listen:
    if addresses is None:
        raise UsageError(
            f"--listen {EACH_NIC}: the addresses of another machine are unknown; give one of them"
        )
    names = sorted({card.name for card in machine.nics})
    found = tuple(Place(addresses[name][0], name) for name in names if addresses.get(name))
    if not found:
        raise UsageError(
            f"--listen {EACH_NIC}: no PCI network card has an IPv4 address; give one of "
            f"{_listed(addresses)}"
        )
    return found


def _listed(addresses: Mapping[str, Sequence[str]]) -> str:
    pairs = [f"{each} ({name})" for name, own in addresses.items() for each in own]
    return ", ".join(pairs) or "no address"


def refuse_deaf(listen: Listen, traits: EngineTraits) -> None:
    if listen and not traits.listens:
        raise UsageError(f"--listen: {traits.name} has UNIX sockets only; remove the option")


def deal(listen: Listen, machine: Machine, nodes: Iterable[tuple[int, ...]]) -> list[Place | None]:
    """A place for each slot, by the slot's nodes: slots of a node take its NICs in turn, and those
    of a node without a NIC take all in turn."""
    turns: Counter[Listen] = Counter()
    dealt: list[Place | None] = []
    for own in nodes:
        near = _on(listen, machine, own) or listen
        dealt.append(near[turns[near] % len(near)] if near else None)
        turns[near] += 1
    return dealt


def _on(listen: Listen, machine: Machine, nodes: tuple[int, ...]) -> Listen:
    homes = {card.name: card.node for card in machine.nics}
    return tuple(place for place in listen if homes.get(place.nic or "") in nodes)


def about_network(listen: Listen, machine: Machine, slots: Sequence[Slot]) -> Reason:
    if len(listen) == 1:
        address, nic = listen[0]
        text = f"All slots listen at {address}{f' ({nic})' if nic else ''}, as requested."
        rule = "one NIC for all slots"
    else:
        text = "Each slot listens at the address of a NIC on its node, as requested."
        rule = "a NIC for each slot"
        if far := [slot.index for slot in slots if not _on(listen, machine, slot.nodes)]:
            text += f" Slots whose node has none ({format_cpulist(far)}) take turns on all NICs."
    if rates := _rates(listen, machine):
        text += f" {', '.join(f'{nic} has {bit_rate(rate)}' for nic, rate in rates.items())}."
    return Reason(rule=rule, text=text, source="the user")


def about_rates(listen: Listen, machine: Machine, slots: Sequence[Slot]) -> list[str]:
    """A warning if slots have NICs of different rates: a query waits for its slowest instance."""
    rates = _rates(listen, machine)
    used = {rates[slot.nic]: slot.nic for slot in slots if slot.nic in rates}
    slow, fast = min(used, default=0), max(used, default=0)
    if slow == fast:
        return []
    return [
        f"{used[slow]} has {bit_rate(slow)} and {used[fast]} {bit_rate(fast)}, so instances on "
        f"{used[slow]} wait for the network when those on {used[fast]} do not; the address of "
        f"{used[fast]} as --listen gives it to all (numa-distributed-engines, figures 13 to 16: "
        "two unequal NICs are at best as good as the fast one alone)"
    ]


def _rates(listen: Listen, machine: Machine) -> dict[str, int]:
    """In Mbit/s, by NIC, as far as they are known."""
    rates = {card.name: card.rate_mbit_s for card in machine.nics}
    return {nic: rate for _, nic in listen if nic and (rate := rates.get(nic))}


def about_exposure(listen: Listen) -> list[str]:
    """The warning that `--listen` deserves."""
    seen = [each for each in listen if not ipaddress.IPv4Address(each.address).is_loopback]
    if not seen:
        return []
    where = ", ".join(place.address for place in seen)
    return [
        f"instances listen at {where}: others on that network can reach them, and the traffic is "
        "not encrypted"
    ]
