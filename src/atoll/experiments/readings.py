"""The terms of a claim over the results of a bench. Pure.

    time(...)       seconds of a query, geometric mean over the queries
    speedup(...)    over WIM without a place of its own (n, memory, placement), all else equal
    gain(over=P)    over the policy P, or with over=A: the default of the axis A, all else equal
    scaling(...)    over WIM with the fewest cores
    best(over=A)    the largest speed-up over the values of the axis A
    least_query(...), most_query(...)  the smallest, the largest speed-up of a query
    peak(...)       the most bytes that a query held while no other ran, in 1e9 bytes
    remote(...)     the part of a pass's memory traffic that was counted as remote, in percent, at
                    least 0.01 so that it has ratios; never estimated
    dram(...), link(...)  of Tab. I: not recorded

The keys are axes of the bench (`policy`, `n`, `memory`, ...); an axis that is absent has its
default. `query=q6` takes one query, `machines=all` the most machines.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Self

from atoll.bench.analysis import Times, block_times, measured_runs
from atoll.bench.axes import ALL
from atoll.bench.cells import policy_of
from atoll.bench.engine_work import peaks
from atoll.bench.results import Results
from atoll.experiments.claims import Reading, Term, without_knobs
from atoll.experiments.here import counts
from atoll.schema.machine import Machine
from atoll.schema.results import Entrant, Line, PassPlaces, QueryWork
from atoll.stats.paired import geometric_mean, geometric_means

_WIM = "wim"
_PLACE = frozenset({"policy", "n", "memory", "placement"})
_NOT_RECORDED = frozenset({"dram", "link"})
_LEAST_REMOTE = 0.01
COUNTED = frozenset({"peak", "remote"})  # not by Atoll's clock: whether they are there shows after
NAMES = (
    _NOT_RECORDED
    | COUNTED
    | {"time", "speedup", "gain", "scaling", "best", "least_query", "most_query"}
)


class BenchReadings:
    """The terms of one engine: of what was measured, or of what would be."""

    def __init__(
        self,
        entrants: Iterable[Entrant],
        engine: str,
        machine: Machine,
        varied: Iterable[str],
        times: Times,
        queries: Sequence[str],
        lines: Sequence[Line] = (),
    ) -> None:
        self._entrants = [one for one in entrants if one.engine == engine]
        self._counts = counts(machine)
        self._varied = frozenset(varied)
        self._times = times
        self._queries = queries
        self._lines = lines

    @classmethod
    def of(cls, results: Results, engine: str) -> Self:
        header = results.header
        return cls(
            header.entrants,
            engine,
            header.machine,
            (axis.name for axis in header.axes),
            block_times(measured_runs(results)),
            results.queries,
            results.lines,
        )

    def __call__(self, term: Term) -> Reading | str:
        known = {key for one in self._entrants for cell in one.cells for key in cell.values}
        values = {
            key: self._counts.number(value) for key, value in without_knobs(term, known).items()
        }
        if values.get("machines") == ALL:
            values["machines"] = self._most_machines()
        query = values.pop("query", None)
        if term.name in _NOT_RECORDED:
            return f"a bench does not record {term.name}(...)"
        if term.name == "best":
            return self._best(values)
        over = values.pop("over", None)
        found = self._entrant(values)
        if found is None:
            return f"no deployment has {_listed(values)}"
        match term.name:
            case "time":
                return self._time(found.label, query)
            case "speedup":
                return self._speedup(found, values, query)
            case "gain":
                axis, is_axis, _ = (over or _WIM).partition(":")
                if is_axis:
                    rest = {key: value for key, value in values.items() if key != axis}
                    return self._gain(found, rest, query)
                return self._gain(found, {**values, "policy": axis}, query)
            case "scaling":
                return self._scaling(found, query)
            case "least_query" | "most_query":
                return self._extreme(found, values, largest=term.name == "most_query")
            case "peak":
                return self._peak(found, query)
            case "remote":
                return self._remote(found)
        return f"a bench has no {term.name}(...)"

    def _most_machines(self) -> str:
        values = (cell.values for one in self._entrants for cell in one.cells)
        return max((each.get("machines", "1") for each in values), key=int, default="1")

    def _entrant(self, values: Mapping[str, str]) -> Entrant | None:
        for entrant in self._entrants:
            for cell in entrant.cells:
                mine = {key: value for key, value in cell.values.items() if key != "policy"}
                asked = {key: value for key, value in values.items() if key != "policy"}
                same = all(mine.get(key) == value for key, value in asked.items())
                others = self._varied & (mine.keys() - asked.keys())
                if same and not others and policy_of(cell.values) == policy_of(values):
                    return entrant
        return None

    def _seconds(self, label: str, query: str | None) -> Mapping[int, float]:
        times = self._times[label]
        if query is not None:
            return times.get(query, {})
        return geometric_means({name: times[name] for name in self._queries})

    def _time(self, label: str, query: str | None) -> Reading | str:
        found = _reading(self._seconds(label, query), _of(label, query))
        if isinstance(found, str):
            return found
        queries = self._queries if query is None else (query,)
        return replace(
            found, mean=geometric_mean([fmean(self._times[label][one].values()) for one in queries])
        )

    def _speedup(
        self, entrant: Entrant, values: Mapping[str, str], query: str | None
    ) -> Reading | str:
        rest = {key: value for key, value in values.items() if key not in _PLACE}
        return self._gain(entrant, rest, query)

    def _gain(self, entrant: Entrant, base: Mapping[str, str], query: str | None) -> Reading | str:
        other = self._entrant(base)
        if other is None:
            return f"no deployment has {_listed(base)}"
        found = self._ratio(other.label, entrant.label, query)
        if isinstance(found, Reading) and other is entrant:
            return replace(found, by_name=True)
        return found

    def _ratio(self, base: str, mine: str, query: str | None) -> Reading | str:
        """How many times faster `mine` is: by blocks, and by the paper's statistic, the geometric
        mean over the queries of the ratios of mean times."""
        before, after = self._seconds(base, query), self._seconds(mine, query)
        both = before.keys() & after.keys()
        found = _reading({block: before[block] / after[block] for block in both}, _of(mine, query))
        if isinstance(found, str):
            return found
        queries = self._queries if query is None else (query,)

        def mean(label: str, name: str) -> float:
            return fmean(self._times[label][name][block] for block in both)

        means = [mean(base, one) / mean(mine, one) for one in queries]
        return replace(found, mean=geometric_mean(means))

    def _scaling(self, entrant: Entrant, query: str | None) -> Reading | str:
        fewest = [
            (int(cell.values["cores"]), one.label)
            for one in self._entrants
            for cell in one.cells
            if policy_of(cell.values) == _WIM and cell.values.get("cores", "all") != "all"
        ]
        if not fewest:
            return "WIM was not measured with fewer cores"
        return self._ratio(min(fewest)[1], entrant.label, query)

    def _best(self, values: Mapping[str, str]) -> Reading | str:
        axis = values.get("over", "")
        found = [
            reading
            for entrant in self._entrants
            for cell in entrant.cells
            if axis in cell.values
            and not isinstance(reading := self._speedup(entrant, cell.values, None), str)
        ]
        if not found:
            return f"the axis {axis} was not measured"
        return max(found, key=lambda one: one.estimate.value)

    def _extreme(
        self, entrant: Entrant, values: Mapping[str, str], *, largest: bool
    ) -> Reading | str:
        found: list[Reading] = []
        for query in self._queries:
            reading = self._speedup(entrant, values, query)
            if isinstance(reading, str):
                return f"{query}: {reading}"
            found.append(reading)
        if not found:
            return "no query was measured"
        found.sort(key=lambda one: one.estimate.value)
        return found[-1] if largest else replace(found[0], each=tuple(found))

    def _peak(self, entrant: Entrant, query: str | None) -> Reading | str:
        # Profiles are of a query alone; the engine's count in a pass may be of its whole server.
        several = entrant.streams > 1
        alone = [one for one in self._lines if not (several and isinstance(one, QueryWork))]
        most: dict[int, float] = {}
        for one in peaks(alone):
            if one.label == entrant.label and query in (None, one.query) and one.size_bytes:
                most[one.block] = max(one.size_bytes / 1e9, most.get(one.block, 0.0))
        if not most:
            why = f" of a query alone, but of {entrant.streams} at a time" if several else ""
            return f"the engine did not report its peak memory{why}"
        return Reading.over(most, _of(entrant.label, query))

    def _remote(self, entrant: Entrant) -> Reading | str:
        shares = {
            line.block: 100 * (1 - line.places.local_resctrl)
            for line in self._lines
            if isinstance(line, PassPlaces) and line.label == entrant.label
            if line.places.local_resctrl is not None
        }
        if not shares:
            return "remote memory traffic was not counted (resctrl)"
        return Reading.over(
            {block: max(share, _LEAST_REMOTE) for block, share in shares.items()},
            _of(entrant.label, None),
        )


def _of(label: str, query: str | None) -> str:
    return f"{label} {query or ''}"


def _reading(blocks: Mapping[int, float], of: str) -> Reading | str:
    return Reading.over(blocks, of) if blocks else "no block has it"


def _listed(values: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in values.items()) or "the defaults"
