"""The language of terms and claims, and the judgement of a claim. Pure.

    claim := comparison ('and' comparison)*
    comparison := side ('>' | '>=' | '~') side
    side := [NUMBER '*'] term | NUMBER
    term := NAME '(' [KEY '=' VALUE (',' KEY '=' VALUE)*] ')'

A comparison is judged by the interval of the ratio of its sides, never by the ratio alone:

    >   more: held if the interval is above 1; not if it is below 1 + MARGIN
    >=  at least: held if it is above 1 - MARGIN; not if it is below that
    ~   as much: held if it is within MARGIN of 1; not if it is outside

Otherwise it cannot be judged, and neither if both sides are one deployment or both are 1 by name;
only best(...) may be the other side. A claim on the least query is one on every query.

MARGIN is 10 %, unless the file says otherwise: repeated measurements in the papers differ by 5 to
13 % (numa-distributed-engines prints 2.53, 2.61 and 2.65 for one deployment, in Fig. 5, 6 and 7).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from atoll.bench.axes import KNOB
from atoll.errors import UsageError
from atoll.stats.paired import MIN_BLOCKS, Estimate, Interval, median_estimate

MARGIN = 1.10

_NAME = r"[a-z][a-z_]*"
_TERM = re.compile(rf"({_NAME})\(([^()]*)\)")
_SIDE = re.compile(rf"(?:(\d+(?:\.\d+)?)\s*(?:\*\s*|$))?({_NAME}\([^()]*\))?")
_COMPARISON = re.compile(r"([^<>~]+?)\s*(>=|>|~)\s*([^<>~]+)")


@dataclass(frozen=True, slots=True)
class Term:
    name: str
    values: Mapping[str, str]

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{key}={value}' for key, value in self.values.items())})"


@dataclass(frozen=True, slots=True)
class Side:
    factor: float
    term: Term | None  # None: the factor alone

    def __str__(self) -> str:
        if self.term is None:
            return f"{self.factor:g}"
        return f"{self.term}" if self.factor == 1 else f"{self.factor:g} * {self.term}"


@dataclass(frozen=True, slots=True)
class Comparison:
    left: Side
    sign: str
    right: Side

    def __str__(self) -> str:
        return f"{self.left} {self.sign} {self.right}"


@dataclass(frozen=True, slots=True)
class Reading:
    """What a term is on one machine: a value for each block, or an estimate."""

    estimate: Estimate
    blocks: Mapping[int, float] | None = None
    of: str = ""  # the deployment, and the query if it is of one
    mean: float | None = None  # as the papers compute it, from means over the runs
    by_name: bool = False  # 1 because the deployment is its own baseline on this machine
    each: tuple[Reading, ...] = ()  # of the least query, the least first; of each number of cores

    @classmethod
    def over(cls, blocks: Mapping[int, float], of: str) -> Reading:
        """Raises ValueError if there is no block."""
        return cls(median_estimate([blocks[one] for one in sorted(blocks)]), dict(blocks), of)


class Outcome(StrEnum):
    HELD = "held"
    NOT = "did not hold"
    UNJUDGED = "could not be judged"


@dataclass(frozen=True, slots=True)
class Verdict:
    outcome: Outcome
    reasons: tuple[str, ...]  # one line for each comparison, with its outcome if they differ


# term -> its reading, or why there is none
Read = Callable[[Term], Reading | str]


def parse_claim(text: str) -> tuple[Comparison, ...]:
    """Raises UsageError."""
    return tuple(_comparison(part.strip(), text) for part in re.split(r"\s+and\s+", text))


def parse_term(text: str) -> Term:
    """Raises UsageError."""
    found = _TERM.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"{text!r} is not a term, such as speedup(policy=win)")
    values: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in found[2].split(","))):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not (key and equals and value) or key in values:
            raise UsageError(f"{text!r}: {part!r} is not KEY=VALUE, each key once")
        values[key] = value
    return Term(found[1], values)


def without_knobs(term: Term, axes: Container[str]) -> dict[str, str]:
    """The values of a term without those of knobs that were not turned: where nobody may turn one,
    both sides of a claim have what the machine has."""
    return {
        key: value for key, value in term.values.items() if not key.startswith(KNOB) or key in axes
    }


def knobs_of(terms: Iterable[Term], axes: Container[str]) -> list[str]:
    """The knobs in terms that were not turned."""
    named = dict.fromkeys(key for term in terms for key in term.values if key.startswith(KNOB))
    return [name for name in named if name not in axes]


def terms_of(claim: Iterable[Comparison]) -> list[Term]:
    sides = (side for one in claim for side in (one.left, one.right))
    return [side.term for side in sides if side.term is not None]


def judge(claim: Iterable[Comparison], read: Read, margin: float = MARGIN) -> Verdict:
    """The outcome of the whole claim: all comparisons must hold. Those that decide come first."""
    judged = sorted((_judged(one, read, margin) for one in claim), key=_order)
    mixed = len({outcome for outcome, _ in judged}) > 1
    reasons = (f"{outcome}: {reason}" if mixed else reason for outcome, reason in judged)
    return Verdict(judged[0][0], tuple(reasons))


def _comparison(part: str, whole: str) -> Comparison:
    found = _COMPARISON.fullmatch(part)
    if found is None:
        raise UsageError(f"{whole!r}: {part!r} is not a comparison with >, >= or ~")
    return Comparison(_side(found[1], whole), found[2], _side(found[3], whole))


def _side(text: str, whole: str) -> Side:
    found = _SIDE.fullmatch(text.strip())
    if found is None or not any(found.groups()):
        raise UsageError(f"{whole!r}: {text.strip()!r} is neither a number nor a term")
    factor = float(found[1] or 1)
    if not factor:
        raise UsageError(f"{whole!r}: compares with 0")
    return Side(factor, parse_term(found[2]) if found[2] else None)


def _judged(one: Comparison, read: Read, margin: float) -> tuple[Outcome, str]:
    sides: list[Reading | None] = []
    for side in (one.left, one.right):
        found = read(side.term) if side.term else None
        if isinstance(found, str):
            return Outcome.UNJUDGED, f"{one}: {found}"
        sides.append(found)
    left, right = sides
    if left and left.each:
        judged = [_compared(one, each, right, margin) for each in left.each]
        every = [
            (found, f"{reason} ({each.of})")
            for each, (found, reason) in zip(left.each, judged, strict=True)
        ]
        return _worst(every)
    return _compared(one, left, right, margin)


def _worst(judged: Sequence[tuple[Outcome, str]]) -> tuple[Outcome, str]:
    """The first of the worst outcome: all must hold."""
    return min(judged, key=_order)


def _order(judged: tuple[Outcome, str]) -> int:
    return (Outcome.NOT, Outcome.UNJUDGED, Outcome.HELD).index(judged[0])


def _compared(
    one: Comparison, left: Reading | None, right: Reading | None, margin: float
) -> tuple[Outcome, str]:
    best = any(side.term and side.term.name == "best" for side in (one.left, one.right))
    if left and right and left.of and left.of == right.of and not best:
        return Outcome.UNJUDGED, f"{one}: both are the same deployment on this machine"
    if all(side is None or side.by_name for side in (left, right)):
        return Outcome.UNJUDGED, f"{one}: it is its own baseline on this machine"
    ratio = _ratio(left, right)
    if ratio is None:
        return Outcome.UNJUDGED, f"{one}: no block has both sides"
    factor = one.left.factor / one.right.factor
    value = f"{one}: left over right is {ratio.value * factor:.2f}"
    if ratio.interval is None:
        in_blocks = any(side and side.blocks for side in (left, right))
        few = f" (fewer than {MIN_BLOCKS} blocks)" if in_blocks else ""
        return Outcome.UNJUDGED, f"{value}, without an interval{few}"
    low, high = ratio.interval.low * factor, ratio.interval.high * factor
    outcome = _by_interval(one.sign, low, high, margin)
    by_margin = outcome is Outcome.NOT and one.sign == ">" and high > 1
    less = f", so not {margin - 1:.0%} more" if by_margin else ""
    return outcome, f"{value}, interval {low:.2f} to {high:.2f}{less}"


def _by_interval(sign: str, low: float, high: float, margin: float) -> Outcome:
    match sign:
        case ">":
            held, fails = low > 1, high < margin
        case ">=":
            held, fails = low >= 1 / margin, high < 1 / margin
        case _:
            held, fails = low >= 1 / margin and high <= margin, low > margin or high < 1 / margin
    return Outcome.HELD if held else Outcome.NOT if fails else Outcome.UNJUDGED


def _ratio(left: Reading | None, right: Reading | None) -> Estimate | None:
    """Left over right; None stands for 1. Of blocks that both have; else of independent
    intervals, which is wider."""
    if left and right and left.blocks is not None and right.blocks is not None:
        common = sorted(left.blocks.keys() & right.blocks.keys())
        if not common:
            return None
        return median_estimate([left.blocks[one] / right.blocks[one] for one in common])
    one = left.estimate if left else _ONE
    other = right.estimate if right else _ONE
    interval = None
    if one.interval and other.interval:
        interval = Interval(
            one.interval.low / other.interval.high, one.interval.high / other.interval.low
        )
    return Estimate(one.value / other.value, interval, min(one.blocks, other.blocks))


_ONE = Estimate(1.0, Interval(1.0, 1.0), 1)
