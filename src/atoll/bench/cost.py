"""How long a bench will take, and which part of a grid fits into a time.

Only `earlier_results` reads files. A deployment's cost comes from earlier passes of the same
queries and data on this machine, or else from the first block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from atoll.bench.axes import Axis, Grid
from atoll.bench.results import Results, read_results
from atoll.errors import AtollError, UsageError
from atoll.schema.results import DeploymentUp, PassDone, QueryTime, RunHeader
from atoll.schema.span import span
from atoll.schema.text import plural
from atoll.stats.paired import MIN_BLOCKS

_REST_S = 3.0  # of a deployment: dropping the page cache, waiting for a quiet machine, stopping
_MOST_FILES = 20
# Before the first block is over, its deployments may be its slow ones.
_DOUBT = 1.5


@dataclass(frozen=True, slots=True)
class Known:
    """What deployments took on this machine: by label, and the mean by engine."""

    by_label: Mapping[str, float]
    by_engine: Mapping[str, float]
    passes: int

    def block_s(self, header: RunHeader) -> float | None:
        """Of one block; None if an engine is unknown."""
        found = [
            self.by_label.get(one.label, self.by_engine.get(one.engine)) for one in header.entrants
        ]
        known = [seconds for seconds in found if seconds is not None]
        return sum(known) if len(known) == len(found) else None


def known_costs(header: RunHeader, earlier: Iterable[Results]) -> Known:
    """The costs of deployments that ran the same queries on the same data and machine."""
    labels: dict[str, list[float]] = {}
    engines: dict[str, list[float]] = {}
    for results in earlier:
        then = results.header
        same = all(
            getattr(then, name) == getattr(header, name)
            for name in ("machine_id", "suite", "suite_checksum", "scale_factor", "warmups")
        )
        if not same or set(then.queries) != set(header.queries):
            continue
        engine_of = {one.label: one.engine for one in then.entrants}
        for label, seconds in _deployments(results):
            labels.setdefault(label, []).append(seconds)
            engines.setdefault(engine_of[label], []).append(seconds)
    return Known(_means(labels), _means(engines), sum(map(len, labels.values())))


def earlier_results(folders: Iterable[Path]) -> Iterator[Results]:
    """The newest results files in the folders, without those that cannot be read."""
    found = {path for folder in folders for path in folder.glob("*.jsonl")}
    newest = sorted(found, key=_age, reverse=True)[:_MOST_FILES]
    for path in newest:
        try:
            yield read_results(path)
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
        return f"{what}: about {max(1, int(time_s / each))} ({_source(known)})"
    blocks = max(0, header.blocks_asked - first)
    what = f"{plural(deployments * blocks, 'deployment')} ({deployments} in each of "
    what += f"{plural(blocks, 'block')})"
    if each is None:
        return f"{what}; how long they take is known after the first block"
    return f"{what}, about {span(each * blocks)} ({_source(known)})"


@dataclass(frozen=True, slots=True)
class Budget:
    """The time for the least blocks of a grid."""

    time_s: float
    deployments: int  # in a block
    blocks: int  # at least
    shrink: Callable[[int], Grid | None]  # the largest grid with at most that many deployments

    def check(self, done: int, elapsed_s: float) -> None:
        """Raises UsageError if the grid cannot fit, by `done` deployments that took `elapsed_s`."""
        doubt = 1.0 if done >= self.deployments else _DOUBT
        each = elapsed_s / done
        if each * self.deployments * self.blocks <= doubt * self.time_s:
            return
        fitting = self.shrink(int(self.time_s / (each * self.blocks)))
        instead = (
            f"the largest grid that fits is {in_words(fitting)}"
            if fitting
            else "no grid fits; measure fewer queries or less data"
        )
        raise UsageError(
            f"--within {span(self.time_s)}: {plural(self.deployments, 'deployment')} take about "
            f"{span(each * self.deployments)} a block, and {self.blocks} blocks, the least for an "
            f"interval, need {span(each * self.deployments * self.blocks)}; {instead}"
        )


def is_grid(grid: Grid) -> bool:
    """Whether more than policies and schedulers are varied: a run of fewer than MIN_BLOCKS blocks
    would then show nothing."""
    return any(axis.name not in ("policy", "scheduler") for axis in grid.varied)


def largest(grid: Grid, most: int, count: Callable[[Grid], int]) -> Grid | None:
    """The grid with its last values removed, those of the longest axis first, until it has at most
    `most` deployments; None if no axis would be left. `count`: deployments of a grid."""
    while count(grid) > most:
        varied = grid.varied
        if not varied:
            return None
        longest = max(varied, key=lambda axis: len(axis.values))
        # One value alone would hold for all deployments.
        kept = longest.values[:-1] if len(longest.values) > 2 else ()
        grid = grid.having(Axis(longest.name, kept))
    return grid if grid.varied else None


def in_words(grid: Grid) -> str:
    """As options, with the number of values that each axis keeps."""
    options = [f"--axis {axis.name}={','.join(axis.values)}" for axis in grid.axes]
    return " ".join([*options, *["--product"] * grid.product])


def budget_for(
    grid: Grid, deployments: int, time_s: float | None, count: Callable[[Grid], int]
) -> Budget | None:
    """None if there is no limit, or nothing that could be removed."""
    if time_s is None or not is_grid(grid):
        return None
    return Budget(time_s, deployments, MIN_BLOCKS, lambda most: largest(grid, most, count))


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


def _means(found: Mapping[str, list[float]]) -> dict[str, float]:
    return {name: sum(values) / len(values) for name, values in found.items()}


def _age(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _source(known: Known) -> str:
    return f"by {plural(known.passes, 'earlier pass')}"
