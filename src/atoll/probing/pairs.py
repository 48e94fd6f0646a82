"""Measures cores against cores: latency by ping-pong of a cache line, and bandwidth.

Follows olap-on-chiplets 2.3 and 2.4. Bandwidth flows from a producer to a consumer. Only one pair
runs at a time, so that no other pair uses the interconnect. Each pair is measured with the line
homed on either side in turn, because on two-socket machines the two differ widely. Pairs that did
not settle are measured again at the end while there is time; one that never settles keeps the
narrowest of its intervals and is marked.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from atoll.probing.budget import MOST_RETRIES, rounds
from atoll.probing.errors import ProbeFault
from atoll.probing.requests import PairOp, Ping, PingAnswer, Pipe, PipeAnswer
from atoll.probing.run import Run
from atoll.schema.profile import Figure, Kind, PairMatrix

# Per kind; a probe that has died three times will die again.
_MOST_FAULTS = 3
# The line or buffer moves between caches, not memory: it fits the smallest L2 in use.
PIPE_BYTES = 128 << 10

# PUs (a, b): homed at a
Home = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Measured:
    figure: Figure
    wall_ns: int


# Measures one pair with one home.
_Ask = Callable[[Home], _Measured]


class _Board:
    """The figures of one matrix as they come in."""

    def __init__(self, pus: Sequence[int], what: str, ask: _Ask) -> None:
        self.pus = tuple(pus)
        self.what = what
        self.ask = ask
        self.found: dict[Home, _Measured] = {}

    def unsettled(self) -> list[Home]:
        return [home for home, measured in self.found.items() if not measured.figure.settled]

    def keep(self, home: Home, measured: _Measured) -> None:
        before = self.found.get(home)
        if before is None or _rank(measured.figure) < _rank(before.figure):
            self.found[home] = measured

    def matrix(self) -> PairMatrix | None:
        if not self.found:
            return None
        order = [(a, b) for a in self.pus for b in self.pus]
        figures = {home: measured.figure for home, measured in self.found.items()}
        values = [figures[home].value if home in figures else None for home in order]
        spreads = [figures[home].spread if home in figures else None for home in order]
        width = len(self.pus)
        return PairMatrix(
            pus=self.pus,
            values=tuple(tuple(values[i : i + width]) for i in range(0, len(values), width)),
            spreads=tuple(tuple(spreads[i : i + width]) for i in range(0, len(spreads), width)),
            unsettled=tuple(sorted(self.unsettled())),
            samples=round(statistics.median(f.samples for f in figures.values())),
            pair_ms=statistics.median(m.wall_ns for m in self.found.values()) / 1e6,
        )


def measure_latency(run: Run) -> tuple[PairMatrix | None, PairMatrix | None]:
    """Compare-and-swap and store; None if there is no pair."""
    plan = run.budget.pairs.get(Kind.LATENCY)
    if plan is None:
        _lonely(run, Kind.LATENCY)
        return None, None

    def asking(op: PairOp) -> _Ask:
        def ask(home: Home) -> _Measured:
            a, b = min(home), max(home)
            side: Literal[0, 1] = 0 if home == (a, b) else 1
            node = run.home_node(home[0])
            request = Ping(cpus=(a, b), home=side, op=op, budget_s=plan.each_s)
            answer: PingAnswer = run.ask(request, node=node)
            return _Measured(run.figure(answer.one_way_ns, answer, node=node), answer.wall_ns)

        return ask

    cas = _Board(plan.pus, "compare-and-swap", asking("cas"))
    store = _Board(plan.pus, "store", asking("store"))
    # One matrix after the other rather than alternating: without time for both, one is complete.
    _fill(run, [cas, store], "core latency")
    _note_thinned(run, plan.pus, "core latency")
    return cas.matrix(), store.matrix()


def measure_bandwidth(run: Run) -> PairMatrix | None:
    plan = run.budget.pairs.get(Kind.BANDWIDTH)
    if plan is None:
        _lonely(run, Kind.BANDWIDTH)
        return None

    def ask(home: Home) -> _Measured:
        node = run.home_node(home[0])
        request = Pipe(cpus=home, home=0, bytes=PIPE_BYTES, budget_s=plan.each_s)
        answer: PipeAnswer = run.ask(request, node=node)
        return _Measured(run.figure(answer.gbs, answer, node=node), answer.wall_ns)

    board = _Board(plan.pus, "producer to consumer", ask)
    _fill(run, [board], "core bandwidth")
    _note_thinned(run, plan.pus, "core bandwidth")
    return board.matrix()


def _fill(run: Run, boards: Sequence[_Board], what: str) -> None:
    todo = [
        (board, home) for board in boards for a, b in rounds(board.pus) for home in ((a, b), (b, a))
    ]
    done = _go(run, todo, what, faults_before=0)
    if done is None:
        return
    for _ in range(MOST_RETRIES):
        again = [(board, home) for board in boards for home in board.unsettled()]
        if not again or run.seconds_left() <= 0:
            return
        done = _go(run, again, what, faults_before=done, retry=True)
        if done is None:
            return


def _go(
    run: Run,
    todo: Sequence[tuple[_Board, Home]],
    what: str,
    *,
    faults_before: int,
    retry: bool = False,
) -> int | None:
    """Measures these pairs. Returns the number of faults; None: too many, or out of time."""
    faults = faults_before
    for place, (board, home) in enumerate(todo):
        label = f"{board.what} {home[0]}-{home[1]}"
        if run.seconds_left() <= 0:
            if not retry:
                run.cut_short(what, len(todo) - place, len(todo), "pairs")
            return None
        run.report(1.0 if retry else place / len(todo), label + (" again" if retry else ""))
        try:
            board.keep(home, board.ask(home))
        except ProbeFault as fault:
            faults += 1
            run.leave_out(fault.code, f"{what}, {label}: {fault}")
            if faults >= _MOST_FAULTS:
                rest = len(todo) - place - 1
                if rest and not retry:
                    run.leave_out(
                        "gave-up",
                        f"{what}: stopped after {faults} faults with {rest} pairs to go",
                    )
                return None
    return faults


def _rank(figure: Figure) -> tuple[bool, float]:
    return not figure.settled, figure.spread


def _lonely(run: Run, kind: Kind) -> None:
    run.leave_out("one-cpu", f"{kind}: a pair needs two CPUs, but only one may be used")


def _note_thinned(run: Run, pus: Sequence[int], what: str) -> None:
    if len(pus) < len(run.cpus):
        run.leave_out(
            "fewer-pus",
            f"{what}: paired {len(pus)} of {len(run.cpus)} CPUs to keep to the time of "
            f"{run.mode} mode; 'atoll measure --full' pairs all",
        )
