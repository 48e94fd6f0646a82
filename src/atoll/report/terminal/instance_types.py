"""What an engine would get on types of machines, as a table for a terminal. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from math import floor, log10

from atoll.report.table import Table
from atoll.report.terminal.grid import Fitted, printed
from atoll.schema.instance_types import InstanceTypePlans, TypePlan
from atoll.schema.size import gib
from atoll.schema.text import plural


def instance_types_text(plans: InstanceTypePlans, *, colour: bool, width: int = 80) -> str:
    """The table in at most `width` columns. Prices are per hour."""
    columns = ("type", "policy", "slots", "cores", "heap", "L3", "price", "per slot")
    table = Table("", columns, [_row(one) for one in plans.types if not one.refused])
    refused = [f"{one.name}: {one.refused}" for one in plans.types if one.refused]
    return printed(
        f"{plans.engine} on {plural(len(plans.types), 'instance type')}; cores, heap and L3 of a "
        f"slot; {plans.currency} per hour",
        *([Fitted(table, ("type", "policy"), (), {})] if table.rows else []),
        *refused,
        "Prices are those of the file. Atoll predicts no speed.",
        width=width,
        colour=colour,
    )


def _row(one: TypePlan) -> tuple[str, ...]:
    assert one.price_per_slot is not None  # it has slots
    return (
        one.name,
        str(one.policy),
        str(len(one.slots)),
        _span(str(slot.cores) for slot in sorted(one.slots, key=lambda slot: slot.cores)),
        _span(gib(slot.heap_bytes) for slot in sorted(one.slots, key=lambda slot: slot.heap_bytes)),
        _span(
            gib(slot.l3_bytes) if slot.l3_bytes else "unknown"
            for slot in sorted(one.slots, key=lambda slot: slot.l3_bytes)
        ),
        _price(one.price_per_hour),
        _price(round(one.price_per_slot, max(2, 3 - floor(log10(one.price_per_slot))))),
    )


def _price(amount: float) -> str:
    """All of its digits, at least two behind the point, and no exponent."""
    exact = Decimal(repr(amount))
    return f"{exact:.{max(2, -int(exact.as_tuple().exponent))}f}"


def _span(ordered: Iterable[str]) -> str:
    """'8', or '7 to 8' if slots differ."""
    texts = list(ordered)
    return texts[0] if texts[0] == texts[-1] else f"{texts[0]} to {texts[-1]}"
