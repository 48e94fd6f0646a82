"""Carries out a search: runs the command, turns switches, and reports what was found."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median, quantiles

from atoll.bench import switches
from atoll.bench.axes import KNOB, Axis
from atoll.errors import CheckFailed, UsageError
from atoll.host.api import Host
from atoll.host.cpu_times import cpu_times
from atoll.knobs.journal import JournalFolder
from atoll.schema.advice import Reach
from atoll.schema.span import span
from atoll.schema.text import plural
from atoll.schema.tuning import LeftOut, Run
from atoll.stats.failing import fails_more
from atoll.tune import search
from atoll.tune.factors import Factor, Recipe
from atoll.tune.metric import Metric, Ran
from atoll.tune.runs import Differs, NoEnd, RunFault, Runs

SHORTEST_S = 0.1
_BUSY_SHARE = 0.1  # of the CPUs' time, by other programs or the hypervisor
_WILD_SPREAD = 0.2  # between the quartiles, as a share of the median
_MOST_FAILING = 0.25  # of the baseline's runs
_WRONGLY_OUT = 0.1  # the chance to leave out a setting that fails no more often than the baseline

Watch = Callable[[search.Block, int, float], None]  # the block, its number, the seconds left


@dataclass(frozen=True, slots=True)
class Work:
    """What is to be tuned, and by what."""

    name: str
    metric: Metric
    factors: Sequence[Factor]
    recipe: Callable[[search.Setting], Recipe]
    time_s: float
    start: Callable[[str], Runs]  # with the journal's folder if switches are turned, else ''
    if_short: str  # what to do if a run is too short to measure


@dataclass(slots=True)
class Found:
    outcome: search.Outcome
    runs: list[Run] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    cautions: list[str] = field(default_factory=list)
    seconds: float = 0.0


def conduct(host: Host, work: Work, folder: JournalFolder, watch: Watch) -> Found:
    """Raises UsageError for a command that cannot be measured, and CheckFailed if it fails later.

    Every process of the command is ended and every switch restored, however this ends.
    """
    values = {one.name: one.values for one in work.factors if one.values}
    if not values:
        return Found(search.Outcome((), (), search.BASELINE, 0))
    knobs = [one for one in work.factors if one.values and one.reach is Reach.SYSTEM]
    cautions: list[str] = []
    axes = [Axis(f"{KNOB}{one.tuner}", (one.current, *one.values)) for one in knobs]
    before = switches.present_values(axes, host, folder)
    with contextlib.ExitStack() as held:
        runs = work.start(str(folder.folder) if knobs else "")
        held.callback(runs.end)
        turn = held.enter_context(switches.turning(before, host, folder, cautions.append))
        conductor = _Conductor(host, work, runs, before, turn)
        found = conductor.conduct(search.search(values), search.least_runs(values), watch)
    found.cautions[:0] = cautions
    return found


class _Conductor:
    def __init__(
        self, host: Host, work: Work, runs: Runs, before: dict[str, str], turn: switches.Turn
    ) -> None:
        self._host = host
        self._work = work
        self._runs = runs
        self._before = before
        self._turn = turn
        self._started_s = host.monotonic()
        self._until_s = self._started_s + work.time_s
        self._slowest_s = work.time_s
        self._digest = ""  # of the output of every baseline run; empty: they differ
        self._ran: Counter[search.Setting] = Counter()
        self._failed: Counter[search.Setting] = Counter()
        self._alone: Counter[search.Setting] = Counter()  # blocks where the baseline did not fail
        self._beside: Counter[search.Setting] = Counter()  # only the baseline failed
        self._out: dict[search.Setting, str] = {}
        self._faults: dict[search.Setting, str] = {}  # the last of each, in the order of time
        self._busy: list[float] = []  # share of other programs in each block
        self._made: list[Run] = []

    def conduct(self, steps: search.Search, least_runs: int, watch: Watch) -> Found:
        self._try_out(least_runs)
        number = 0
        block = next(steps)
        while True:
            watch(block, number, self._left_s)
            measured = self._block(block, number)
            number += 1
            try:
                block = steps.send(measured)
            except StopIteration as end:
                return self._found(end.value)

    @property
    def _left_s(self) -> float:
        return self._until_s - self._host.monotonic()

    def _try_out(self, least_runs: int) -> None:
        """Two runs of the baseline: whether it can be measured, and in the time that there is."""
        name = self._work.name
        try:
            first = self._baseline()
            began_s = self._host.monotonic()
            second = self._baseline()
        except NoEnd as fault:
            raise UsageError(f"{name}: {fault}; give it less work, or a longer --time") from None
        except RunFault as fault:
            raise UsageError(f"{name}: {fault}") from None
        except ValueError as fault:
            raise UsageError(f"--metric {self._work.metric.name}: {fault}") from None
        if self._work.metric.name in ("time", "throughput") and second.seconds < SHORTEST_S:
            raise UsageError(
                f"{name}: takes {second.seconds:.3f} s, too short to measure; give it more work, "
                f"at least {SHORTEST_S:g} s{self._work.if_short}"
            )
        self._digest = first.digest if first.digest == second.digest else ""
        self._slowest_s = max(first.seconds, second.seconds)
        now_s = self._host.monotonic()
        needed_s = least_runs * (now_s - began_s)
        if needed_s > self._left_s:
            raise UsageError(
                f"{name}: takes {now_s - began_s:.1f} s, and {least_runs} runs are the least; "
                f"give --time {span(1.2 * (needed_s + now_s - self._started_s)).replace(' ', '')}, "
                "or fewer --factors"
            )

    def _baseline(self) -> Ran:
        """Raises RunFault, and ValueError if the metric is not in its output."""
        self._ran[search.BASELINE] += 1
        ran = self._runs.run(self._recipe(search.BASELINE), limit_s=self._left_s)
        self._work.metric.cost(ran)
        return ran

    def _recipe(self, setting: search.Setting) -> Recipe:
        recipe = self._work.recipe(setting)
        self._turn(self._before | recipe.knobs)
        return recipe

    def _block(self, block: search.Block, number: int) -> search.Measured:
        started_s, before = self._host.monotonic(), cpu_times(self._host)
        own_s = 0.0
        idle: list[float] = []
        costs: dict[search.Setting, float] = {}
        for setting in block.settings:
            self._ran[setting] += 1
            try:
                ran = self._runs.run(self._recipe(setting), limit_s=5 * self._slowest_s + 5)
                self._compare(setting, ran)
                costs[setting] = self._work.metric.cost(ran)
            except (RunFault, ValueError) as fault:
                self._fail(setting, fault)
                continue
            own_s += ran.cpu_s or 0.0
            idle += [] if ran.idle_share is None else [ran.idle_share]
            self._made.append(
                Run(
                    block=number,
                    setting=dict(setting),
                    seconds=ran.seconds,
                    cpu_s=ran.cpu_s,
                    rss_bytes=ran.rss_bytes,
                    cost=costs[setting],
                )
            )
        self._leave_out(set(block.settings), set(block.settings) - costs.keys())
        after = cpu_times(self._host)
        if idle:
            self._busy.append(1 - min(idle))
        elif total := after.total - before.total:
            own = own_s * os.sysconf("SC_CLK_TCK")
            others = after.busy + after.steal - before.busy - before.steal - own
            self._busy.append(others / total)
        seconds = self._host.monotonic() - started_s
        return search.Measured(costs, seconds, self._left_s, self._out)

    def _compare(self, setting: search.Setting, ran: Ran) -> None:
        """Raises Differs if only this setting changes the output."""
        if self._digest and ran.digest != self._digest:
            if setting != search.BASELINE:
                raise Differs("its output differs from that of the baseline")
            self._digest = ""

    def _fail(self, setting: search.Setting, fault: Exception) -> None:
        """Some commands fail now and then, so a single failure of any kind but a wrong or a late
        answer is no reason to leave a setting out. Raises CheckFailed if the baseline fails too
        often to compare with."""
        self._failed[setting] += 1
        self._faults.pop(setting, None)
        self._faults[setting] = str(fault)
        failed = self._failed[setting]
        if setting == search.BASELINE:
            often = failed > 1 and failed > _MOST_FAILING * self._ran[setting]
            if often or isinstance(fault, Differs):
                raise CheckFailed(
                    f"{self._work.name}: {fault}, {self._times(setting)}; nothing was decided"
                )
        elif isinstance(fault, (Differs, NoEnd)):
            self._out[setting] = str(fault)

    def _leave_out(self, ran: set[search.Setting], failed: set[search.Setting]) -> None:
        """Those that are shown to fail more often than the baseline."""
        if search.BASELINE in failed:
            self._beside.update(ran - failed)
            return
        self._alone.update(failed)
        for one in failed:
            if fails_more(self._alone[one], self._beside[one], _WRONGLY_OUT):
                self._out.setdefault(one, self._why_out(one))

    def _why_out(self, setting: search.Setting) -> str:
        baseline = f"the baseline {self._times(search.BASELINE)}"
        return f"{self._faults[setting]}, {self._times(setting)}, {baseline}"

    def _times(self, setting: search.Setting) -> str:
        return f"in {self._failed[setting]} of {plural(self._ran[setting], 'run')}"

    def _found(self, outcome: search.Outcome) -> Found:
        for one in self._failed:
            if self._failed[one] == self._ran[one]:  # few runs, but none is good
                self._out.setdefault(one, self._why_out(one))
        left_out = [LeftOut(what=search.words(one), why=why) for one, why in self._out.items()]
        return Found(
            outcome,
            self._made,
            left_out,
            list(self._cautions()),
            self._host.monotonic() - self._started_s,
        )

    def _cautions(self) -> list[str]:
        said = []
        if not self._digest:
            said.append("its output differs from run to run, so answers were not compared")
        if counted := [one for one in self._faults if one not in self._out]:
            failed = ", ".join(f"{search.words(one)} {self._times(one)}" for one in counted)
            said.append(f"failed runs do not count: {failed} (last: {self._faults[counted[-1]]})")
        times = [run.cost for run in self._made if not run.setting]
        low, _, high = quantiles(times) if len(times) > 1 else (1.0, 1.0, 1.0)
        if (spread := (high - low) / median(times or [1.0])) > _WILD_SPREAD:
            said.append(
                f"the baseline's own runs differ by {spread:.0%} between their quartiles: small "
                "effects cannot be seen"
            )
        busy = sum(share > _BUSY_SHARE for share in self._busy)
        if busy:
            said.append(
                f"other programs took more than {_BUSY_SHARE:.0%} of the CPUs in {busy} of "
                f"{len(self._busy)} blocks"
            )
        return said
