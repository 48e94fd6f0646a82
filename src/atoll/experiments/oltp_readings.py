"""What a machine can repeat of an experiment with transactions, and the terms of its claim. Pure.

commits(placement=P, cores=N)   commits a second; P is packed or spread
spread_over_packed()            their ratio, for each number of cores: a claim on it must hold
                                for all of them; spread_over_packed(cores=N) is that of one
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from atoll.errors import UsageError
from atoll.experiments.claims import Reading, Term
from atoll.experiments.here import counts
from atoll.oltp.analysis import rates
from atoll.oltp.seats import Seat, make_seats
from atoll.schema.experiment import TransactionRun
from atoll.schema.machine import Machine
from atoll.schema.oltp import OltpRuns, OltpSeat
from atoll.schema.plan import EngineTraits

NAMES = frozenset({"commits", "spread_over_packed"})
_NOTHING = "nothing was committed"


@dataclass(frozen=True, slots=True)
class CanSeat:
    """The part of an experiment that this machine can run."""

    cores: tuple[int, ...]
    seats: Sequence[Seat]
    cannot: tuple[str, ...]  # what is not varied, and why


def transactions_here(run: TransactionRun, machine: Machine, traits: EngineTraits) -> CanSeat:
    """Raises UsageError if no number of cores has two placements."""
    have = counts(machine)
    asked = [int(number) for number in have.numbers(run.cores)]
    cannot = [f"cores={one}: this machine has {have.cores}" for one in asked if one > have.cores]
    cores: list[int] = []
    seats: list[Seat] = []
    for one in asked:
        if one > have.cores:
            continue
        found, notes = make_seats(machine, traits, [one])
        if len(found) == 2:
            cores.append(one)
            seats += found
        else:
            cannot.append(notes[0])
    if not cores:
        raise UsageError(f"spread and packed are the same here: {'; '.join(cannot)}")
    return CanSeat(tuple(cores), seats, tuple(cannot))


class OltpReadings:
    """The terms of one workload."""

    def __init__(self, found: OltpRuns, workload: str) -> None:
        self._counts = counts(found.machine)
        self._found, self._workload = found, workload
        self._seats: dict[tuple[str, str], OltpSeat] = {
            (seat.placement, str(seat.cores)): seat for seat in found.seats
        }

    def __call__(self, term: Term) -> Reading | str:
        cores = self._counts.number(term.values.get("cores", ""))
        if term.name == "commits":
            seat = self._seats.get((_placement(term), cores))
            return "nothing was run there" if seat is None else self._commits(seat)
        if term.name != "spread_over_packed":
            return f"transactions have no {term.name}(...)"
        pairs = [
            (packed, spread)
            for (placement, count), packed in self._seats.items()
            if placement == "packed"
            and cores in ("", count)
            and (spread := self._seats.get(("spread", count)))
        ]
        if not pairs:
            return "both are the same deployment on this machine"
        each = tuple(one for pair in pairs if (one := self._ratio(*pair)))
        if len(each) < len(pairs):
            return _NOTHING
        return each[0] if len(each) == 1 else replace(each[0], each=each)

    def _commits(self, seat: OltpSeat) -> Reading | str:
        found = rates(self._found, self._workload, seat)
        return Reading.over(found, seat.label) if all(found.values()) else _NOTHING

    def _ratio(self, packed: OltpSeat, spread: OltpSeat) -> Reading | None:
        one, other = (rates(self._found, self._workload, seat) for seat in (packed, spread))
        both = {
            block: other[block] / one[block] for block in one if one[block] and other.get(block)
        }
        return Reading.over(both, f"cores={packed.cores}") if both else None


def _placement(term: Term) -> str:
    return term.values.get("placement", "packed")
