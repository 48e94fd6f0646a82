"""How long a bench will take, and which part of a grid fits into a time.

Only `earlier_results` reads files. A deployment's cost comes from earlier passes of the same
deployment with the same queries and data on this machine, or else from the first block. A grid is
refused only by costs that are known: what is unknown counts as nothing.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from atoll.bench.axes import KNOB, Axis, Grid
from atoll.bench.cells import Cell
from atoll.bench.results import Results, read_results
from atoll.bench.sameness import coincide
from atoll.errors import AtollError, UsageError
from atoll.schema.results import DeploymentUp, PassDone, QueryTime, RunHeader
from atoll.schema.span import span
from atoll.schema.text import first_of, plural
from atoll.stats.paired import MIN_BLOCKS

_REST_S = 3.0  # of a deployment: dropping the page cache, waiting for a quiet machine, stopping
_MOST_FILES = 20
_MOST_NAMED = 3
_Key = TypeVar("_Key")


@dataclass(frozen=True, slots=True)
class Known:
    """What deployments took on this machine: by label, and the mean of an engine's by load."""

    by_label: Mapping[str, float]
    by_load: Mapping[tuple[str, int], float]  # (engine, streams)
    passes: int
    files: tuple[str, ...] = ()

    def block_s(self, header: RunHeader) -> float | None:
        """Of one block; None if an engine is unknown."""
        found = [
            self.by_label.get(one.label, self.by_load.get((one.engine, one.streams)))
            for one in header.entrants
        ]
        known = [seconds for seconds in found if seconds is not None]
        return sum(known) if len(known) == len(found) else None

    @property
    def source(self) -> str:
        """'by 3 earlier passes in r.jsonl'"""
        named = first_of(self.files, _MOST_NAMED)
        return f"by {plural(self.passes, 'earlier pass')} in {named}"


def known_costs(header: RunHeader, earlier: Iterable[tuple[Path, Results]]) -> Known:
    """What the same deployments took, with the same queries on the same data and machine.

    A label does not tell: it leaves out what holds for all deployments of its run.
    """
    labels: dict[str, list[float]] = {}
    loads: dict[tuple[str, int], list[float]] = {}
    files: dict[str, int] = {}  # name -> passes
    for path, results in earlier:
        then = results.header
        same = all(
            getattr(then, name) == getattr(header, name)
            for name in ("machine_id", "suite", "suite_checksum", "scale_factor", "warmups")
        )
        if not same or set(then.queries) != set(header.queries):
            continue
        ran = {one.label: one for one in then.entrants}
        now = {
            label: [one.label for one in header.entrants if coincide(one, other, header.machine)]
            for label, other in ran.items()
        }
        for label, seconds in _deployments(results):
            for mine in now[label]:
                labels.setdefault(mine, []).append(seconds)
            loads.setdefault((ran[label].engine, ran[label].streams), []).append(seconds)
            files[path.name] = files.get(path.name, 0) + 1
    return Known(_means(labels), _means(loads), sum(files.values()), tuple(files))


def earlier_results(folders: Iterable[Path]) -> Iterator[tuple[Path, Results]]:
    """The newest results files in the folders, without those that cannot be read."""
    found = {path for folder in folders for path in folder.glob("*.jsonl")}
    newest = sorted(found, key=_age, reverse=True)[:_MOST_FILES]
    for path in newest:
        try:
            yield path, read_results(path)
        except AtollError:
            continue  # no results, or of another version


def outlook(header: RunHeader, first: int, time_s: float | None, known: Known) -> str:
    """What is to be measured and how long that takes, in one line."""
    deployments = len(header.entrants)
    each = known.block_s(header)
    if header.blocks_asked is None:
        assert time_s is not None
        what = f"{plural(deployments, 'deployment')} a block, as many blocks as fit into "
        what += span(time_s)
        if each is None:
            return f"{what}; the first block shows how many"
        return f"{what}: about {max(1, int(time_s / each))} ({known.source})"
    blocks = max(0, header.blocks_asked - first)
    if not blocks:
        return f"the file has its {plural(first, 'block')}; nothing is left to measure"
    what = f"{plural(deployments * blocks, 'deployment')} ({deployments} in each of "
    what += f"{plural(blocks, 'block')})"
    if each is None:
        return f"{what}; how long they take is known after the first block"
    return f"{what}, about {span(each * blocks)} ({known.source})"


@dataclass(frozen=True, slots=True)
class Budget:
    """The time for the least blocks of a grid."""

    time_s: float
    deployments: int  # in a block
    blocks: int  # at least
    # (costs, seconds for a block) -> the largest grid that fits
    shrink: Callable[[Mapping[str, float], float], Grid | None]

    def check(
        self, costs: Mapping[str, float], *, done: int = 0, source: str = "", kept: str = ""
    ) -> None:
        """Raises UsageError if the deployments with these costs (label -> seconds) alone do not
        fit. `done`: blocks of a resumed run. `source`: of the costs. `kept`: the file that has the
        measurements."""
        block_s, blocks = sum(costs.values()), self.blocks - done
        if block_s * blocks <= self.time_s:
            return
        fitting = self.shrink(costs, self.time_s / self.blocks)  # in a file of its own
        all_known = len(costs) == self.deployments
        if all_known:
            what = f"{plural(self.deployments, 'deployment')} take"
            need, instead = "need", "the largest grid that fits is"
        else:
            what = f"{len(costs)} of {plural(self.deployments, 'deployment')} already take"
            need, instead = "need more than", "a grid that fits by these is"
        instead = (
            f"{instead} {in_words(fitting)}"
            if fitting
            else "no grid fits; measure fewer queries or less data"
        )
        raise UsageError(
            f"--within {span(self.time_s)}: {what} about {span(block_s)} a block"
            f"{f' ({source})' if source else ''}, and {blocks}{' more' if done else ''} blocks, "
            f"the least for an interval, {need} {span(block_s * blocks)}; "
            f"{instead}{f'; {kept} keeps what was measured, so choose another -o' if kept else ''}"
        )


def is_grid(grid: Grid) -> bool:
    """Whether more than policies and schedulers are varied: a run of fewer than MIN_BLOCKS blocks
    would then show nothing."""
    return any(axis.name not in ("policy", "scheduler") for axis in grid.varied)


def largest(
    grid: Grid,
    most_s: float,
    costs: Mapping[str, float],
    enter: Callable[[Grid], Sequence[Cell]],
) -> Grid | None:
    """The grid without values of its longest axes, the costliest first (of equal ones the last),
    until a block takes at most `most_s`; None if no axis would be left.

    `enter`: the deployments of a grid; UsageError if a value fits none. `costs`: label -> seconds;
    a deployment without costs gets the mean.
    """
    mean = sum(costs.values()) / len(costs)
    while varied := grid.varied:
        try:
            cells = enter(grid)
        except UsageError:
            cells = ()  # with fewer values, what is left may fit
        each = {cell.label: costs.get(cell.label, mean) for cell in cells}
        if cells and sum(each.values()) <= most_s:
            return grid
        axis = max(varied, key=lambda axis: len(axis.values))
        spent = dict.fromkeys(reversed(axis.values), 0.0)
        for cell in cells:
            if (value := cell.values.get(axis.name)) in spent:
                spent[value] += each[cell.label]
        costliest = max(spent, key=lambda value: spent[value])
        # One value alone would hold for all deployments.
        kept = tuple(one for one in axis.values if one != costliest) if len(spent) > 2 else ()
        grid = grid.having(Axis(axis.name, kept))
    return None


def in_words(grid: Grid) -> str:
    """As options for a shell."""
    options = [f"--axis {shlex.quote(f'{axis.name}={_listed(axis)}')}" for axis in grid.axes]
    return " ".join([*options, *["--product"] * grid.product])


def _listed(axis: Axis) -> str:
    """As `parse_axis` reads it."""
    if axis.name.startswith(KNOB) and any("," in value for value in axis.values):
        return ";".join(axis.values) + ";" * (len(axis.values) == 1)
    return ",".join(axis.values)


def budget_for(
    grid: Grid, deployments: int, time_s: float | None, enter: Callable[[Grid], Sequence[Cell]]
) -> Budget | None:
    """None if there is no limit, or nothing that could be removed."""
    if time_s is None or not is_grid(grid):
        return None

    def shrink(costs: Mapping[str, float], most_s: float) -> Grid | None:
        return largest(grid, most_s, costs, enter)

    return Budget(time_s, deployments, MIN_BLOCKS, shrink)


def _deployments(results: Results) -> Iterator[tuple[str, float]]:
    """(label, seconds) of each deployment that finished its block."""
    streams = {one.label: one.streams for one in results.header.entrants}
    seconds: dict[tuple[str, int], float] = {}
    for line in results.lines:
        if isinstance(line, QueryTime) and line.phase == "warm-up":
            key = line.label, line.block
            seconds[key] = seconds.get(key, 0.0) + line.seconds / streams[line.label]
        elif isinstance(line, DeploymentUp):
            key = line.label, line.block
            seconds[key] = seconds.get(key, 0.0) + line.up_s
        elif isinstance(line, PassDone):
            before = seconds.get((line.label, line.block), 0.0)
            yield line.label, before + line.seconds + _REST_S


def _means(found: Mapping[_Key, list[float]]) -> dict[_Key, float]:
    return {name: sum(values) / len(values) for name, values in found.items()}


def _age(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
