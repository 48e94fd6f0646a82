"""Over how many chiplets Atoll's scheduler spread the workers in the measured passes. Pure.

A server's clock starts when its database is opened; the warm-up and the measured pass follow. The
bench reads the scheduler's state right after the measured pass, so this pass is the last part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from atoll.schema.results import Line, PassDone, SchedulerRan
from atoll.schema.summary import SpreadSummary


@dataclass(frozen=True, slots=True)
class Spell:
    """A period of one spread. Second 0 is the start of the measured pass."""

    begin_s: float
    end_s: float
    spread: int
    reason: str


@dataclass(frozen=True, slots=True)
class Course:
    """The spreads of one server in one block, from its opening to the end of the measured pass."""

    label: str
    block: int
    slot: int
    chiplets: int
    spells: tuple[Spell, ...]


def courses(lines: Sequence[Line]) -> list[Course]:
    """The courses of the finished passes, in the order of the file."""
    passes = {
        (line.label, line.block): line.seconds for line in lines if isinstance(line, PassDone)
    }
    return [
        _course(line, passes[line.label, line.block])
        for line in lines
        if isinstance(line, SchedulerRan) and (line.label, line.block) in passes
    ]


def spread_summary(mine: Sequence[Course]) -> SpreadSummary | None:
    """Summarise the measured passes of one entrant's courses; None if there are none."""
    spells = [
        (max(spell.begin_s, 0.0), spell)
        for course in mine
        for spell in course.spells
        if spell.end_s > 0
    ]
    if not spells:
        return None
    seconds = sum(spell.end_s - begin for begin, spell in spells)
    return SpreadSummary(
        chiplets=max(course.chiplets for course in mine),
        lowest=min(spell.spread for _, spell in spells),
        highest=max(spell.spread for _, spell in spells),
        mean=sum((spell.end_s - begin) * spell.spread for begin, spell in spells) / seconds,
        changes=sum(spell.begin_s > 0 for _, spell in spells),
    )


def _course(ran: SchedulerRan, pass_s: float) -> Course:
    state = ran.state
    # Slightly late: a pass's seconds lack what the bench did between two queries.
    began = state.seconds - pass_s
    # The first spread counts from the opening, which happened slightly earlier. Rounding could put
    # a change at the very end behind it.
    times = [-began, *(min(one.t_s - began, pass_s) for one in state.spreads[1:]), pass_s]
    return Course(
        label=ran.label,
        block=ran.block,
        slot=ran.slot,
        chiplets=state.chiplets,
        spells=tuple(
            Spell(begin, end, change.spread, change.reason)
            for (begin, end), change in zip(pairwise(times), state.spreads, strict=True)
        ),
    )
