"""Which setting is best: successive halving, then a judgement on fresh blocks. Pure.

`search` is a generator. It yields one block at a time, which is a list of settings to run in this
order, and receives what was measured. So simulated times test it, and I/O stays with the caller.

1. **Halving** (Jamieson and Talwalkar, Non-stochastic Best Arm Identification and Hyperparameter
   Optimization, 2016). Every value of every factor runs in the same blocks, beside the baseline.
   After each round each factor loses the worse half of its values, and the next round has twice
   the blocks, until one value of each factor is left. This decides nothing but what to look at
   longer: the best of many by chance looks better than it is.
2. **Judging**. The factors' winners, and all that seem to gain together, run in fresh blocks.
   Each is compared with the baseline of its own block (`stats.signed_rank`). There are at most
   LOOKS looks at fixed numbers of blocks. The chance of error is divided evenly among comparisons
   and looks (Bonferroni), so that it holds for all verdicts together.

A verdict of SAME means that the whole interval lies within the margin: then the advice is to leave
it, also if the change is real. The combination is preferred to the best single factor only if it is
shown to be better in the blocks that both ran in, and by the margin: fewer settings are better, and
a factor without effect would come along by chance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from atoll.schema.tuning import Verdict, setting_words
from atoll.stats.paired import Interval
from atoll.stats.signed_rank import fewest, shift

ERROR = 0.05
MARGIN = 0.02
LOOKS = 5
FIRST_ROUND_BLOCKS = 3

Setting = tuple[tuple[str, str], ...]  # (factor, value) that differ from the baseline, sorted
BASELINE: Setting = ()


@dataclass(frozen=True, slots=True)
class Judged:
    """A setting's gain: the baseline's cost divided by its own, within a block."""

    setting: Setting
    gain: float
    interval: Interval | None
    blocks: int
    verdict: Verdict | None  # None: not judged


@dataclass(frozen=True, slots=True)
class Block:
    settings: tuple[Setting, ...]  # in running order
    doing: str
    leader: Judged | None  # what seems best so far, with what is known of it


@dataclass(frozen=True, slots=True)
class Measured:
    costs: Mapping[Setting, float]  # smaller is better; without those that failed
    seconds: float  # that the block took
    left_s: float
    out: Collection[Setting] = ()  # not to run again; of all blocks so far


@dataclass(frozen=True, slots=True)
class Outcome:
    effects: tuple[Judged, ...]  # one for each factor, then the combination
    dropped: tuple[Judged, ...]
    best: Setting
    comparisons: int


Search = Generator[Block, Measured, Outcome]
_Steps = Generator[Block, Measured, None]


def least_runs(factors: Mapping[str, Sequence[str]]) -> int:
    """How many runs the shortest search makes: one round, then one look."""
    values = sum(map(len, factors.values()))
    halving = FIRST_ROUND_BLOCKS * (1 + values) if any(len(v) > 1 for v in factors.values()) else 0
    return halving + _shortest_look(len(factors))


def search(factors: Mapping[str, Sequence[str]]) -> Search:
    """`factors`: name -> values other than the baseline's, at least one each."""
    log = _Log()
    singles = yield from _halve(log, factors)
    dropped = [
        log.rated(setting)
        for name, values in factors.items()
        for value in values
        if (setting := ((name, value),)) not in (*singles, *log.failed) and log.gains(setting)
    ]
    together = _combined(log.seeming(singles))
    chosen = [*singles, *([together] if together else [])]
    comparisons = _comparisons(len(singles), combined=bool(together))
    effects = yield from _judge(log, chosen, comparisons)
    best = best_of(effects, lambda one, other: log.shows(one, other, _error(comparisons)))
    return Outcome(tuple(effects), tuple(dropped), best, comparisons)


def best_of(effects: Iterable[Judged], shown: Callable[[Setting, Setting], bool]) -> Setting:
    """The baseline if no setting is better. `shown`: that the first setting beats the second."""
    better = [one for one in effects if one.verdict is Verdict.BETTER]
    single = max(
        (one for one in better if len(one.setting) == 1), key=lambda one: one.gain, default=None
    )
    several = next((one for one in better if len(one.setting) > 1), None)
    if several and (single is None or shown(several.setting, single.setting)):
        return several.setting
    return single.setting if single else BASELINE


def words(setting: Setting) -> str:
    return setting_words(dict(setting))


def judged(setting: Setting, gains: Sequence[float], error: float) -> Judged:
    """`gains`: logarithms, one a block. `error`: of this one verdict."""
    found = shift(gains, error)
    if found.interval is None:
        return Judged(setting, math.exp(found.value), None, len(gains), Verdict.CANNOT_TELL)
    low, high = found.interval.low, found.interval.high
    margin = math.log1p(MARGIN)
    if -margin <= low and high <= margin:
        verdict = Verdict.SAME
    elif low > 0:
        verdict = Verdict.BETTER
    elif high < 0:
        verdict = Verdict.WORSE
    else:
        verdict = Verdict.CANNOT_TELL
    interval = Interval(math.exp(low), math.exp(high))
    return Judged(setting, math.exp(found.value), interval, len(gains), verdict)


@dataclass(slots=True)
class _Log:
    """What was measured. `clear` begins the judgement, which must not see what chose."""

    costs: list[Mapping[Setting, float]] = field(default_factory=list)
    failed: set[Setting] = field(default_factory=set)
    number: int = 0
    left_s: float = math.inf
    _seconds: float = 0.0
    _runs: int = 0

    def run(self, settings: Sequence[Setting], doing: str, leader: Judged | None) -> _Steps:
        """One block, in reverse order every second time, so that drift favours nobody."""
        order = tuple(settings if self.number % 2 == 0 else reversed(settings))
        measured = yield Block(order, doing, leader)
        self.number += 1
        self.costs.append(measured.costs)
        self.failed |= set(measured.out)
        self.left_s = measured.left_s
        self._seconds += measured.seconds
        self._runs += len(settings)

    def fits(self, runs: int) -> bool:
        """Whether there is time for them; before the first run nothing is known."""
        return not self._runs or runs * self._seconds / self._runs <= self.left_s

    def clear(self) -> None:
        self.costs.clear()

    def gains(self, setting: Setting, over: Setting = BASELINE) -> list[float]:
        return [
            math.log(costs[over] / costs[setting])
            for costs in self.costs
            if setting in costs and over in costs
        ]

    def shows(self, one: Setting, other: Setting, error: float) -> bool:
        """That one beats the other, and by the margin."""
        gains = self.gains(one, other)
        found = shift(gains, error) if gains else None
        return (
            found is not None
            and found.interval is not None
            and found.interval.low > 0
            and found.value > math.log1p(MARGIN)
        )

    def rated(self, setting: Setting) -> Judged:
        gains = self.gains(setting)
        return Judged(setting, math.exp(median(gains)), None, len(gains), None)

    def leader(self, settings: Iterable[Setting]) -> Judged | None:
        rated = [self.rated(one) for one in settings if self.gains(one)]
        return max(rated, key=lambda one: one.gain, default=None)

    def seeming(self, settings: Iterable[Setting]) -> list[Setting]:
        """Those that seem to gain; all of them if nothing was measured yet."""
        return [one for one in settings if not (gains := self.gains(one)) or median(gains) > 0]


def _halve(
    log: _Log, factors: Mapping[str, Sequence[str]]
) -> Generator[Block, Measured, list[Setting]]:
    """One setting for each factor whose values did not all fail."""
    alive: dict[str, list[Setting]] = {
        name: [((name, value),) for value in values] for name, values in factors.items()
    }
    blocks = FIRST_ROUND_BLOCKS
    judging = _shortest_look(len(factors))
    while any(len(settings) > 1 for settings in alive.values()):
        settings = [one for values in alive.values() for one in values]
        if not log.fits(blocks * (1 + len(settings)) + judging):
            break  # the best so far goes on
        for _ in range(blocks):
            here = [one for one in settings if one not in log.failed]
            if not log.fits(1 + len(here)):
                break
            yield from log.run([BASELINE, *here], "halving", log.leader(here))
        for name, values in alive.items():
            alive[name] = _better_half(log, values)
        blocks *= 2
    return [one for values in alive.values() for one in _better_half(log, values, most=1)]


def _better_half(log: _Log, settings: Sequence[Setting], most: int = 0) -> list[Setting]:
    left = [one for one in settings if one not in log.failed]
    if not log.costs:
        return left[: most or len(left)]
    left.sort(key=lambda one: -median(log.gains(one) or [-math.inf]))
    return left[: most or math.ceil(len(settings) / 2)]


def _judge(
    log: _Log, settings: Sequence[Setting], comparisons: int
) -> Generator[Block, Measured, list[Judged]]:
    favourite = log.leader(settings)
    early = {
        one: replace(log.rated(one), verdict=Verdict.CANNOT_TELL)
        for one in settings
        if log.gains(one)
    }
    log.clear()
    error = _error(comparisons)
    done: dict[Setting, Judged] = {}
    looks = [_first_look(comparisons) * 2**look for look in range(LOOKS)]
    for block in range(1, looks[-1] + 1):
        open_ = [one for one in settings if one not in log.failed and one not in done]
        if not open_ or not log.fits(1 + len(open_)):
            break
        best = log.leader(open_)
        leader = judged(best.setting, log.gains(best.setting), error) if best else favourite
        yield from log.run([BASELINE, *open_], "judging", leader)
        if block in looks:
            done |= _decided(log, open_, error)
    rest = [one for one in settings if one not in done and one not in log.failed and log.gains(one)]
    done |= {one: judged(one, log.gains(one), error) for one in rest}
    done = {one: early[one] for one in early if one not in log.failed} | done
    return [done[one] for one in settings if one in done]


def _decided(log: _Log, settings: Iterable[Setting], error: float) -> dict[Setting, Judged]:
    measured = [one for one in settings if one not in log.failed and log.gains(one)]
    found = (judged(one, log.gains(one), error) for one in measured)
    return {one.setting: one for one in found if one.verdict is not Verdict.CANNOT_TELL}


def _comparisons(singles: int, *, combined: bool) -> int:
    """Each with the baseline, and the combination with the best single one."""
    return singles + 2 * combined


def _error(comparisons: int) -> float:
    """Of one comparison at one look."""
    return ERROR / (LOOKS * max(1, comparisons))


def _shortest_look(factors: int) -> int:
    """The runs until the first look, without a combination, but with the error of one."""
    comparisons = _comparisons(factors, combined=factors > 1)
    return _first_look(comparisons) * (1 + factors)


def _first_look(comparisons: int) -> int:
    """One block more than an interval needs, so that its ends are not the two wildest blocks."""
    return fewest(_error(comparisons)) + 1


def _combined(settings: Sequence[Setting]) -> Setting:
    """All of them together; empty if that is no other setting."""
    return tuple(sorted(pair for one in settings for pair in one)) if len(settings) > 1 else ()
