"""The terms of a claim over what `atoll measure` found. Pure.

latency(pairs=P)      ns one way, bandwidth(pairs=P) GB/s between cores: the median over the
                      pairs within a chiplet, else within a package, else within the machine
stream(per=W)         GB/s of STREAM copy with one process per W, at its best array size
sharing(op=, place=, size=)  GB/s of cores that are local or distributed, with the largest array of
                      at most half an L3 (within), or the least of at least 1.5 L3s (beyond)
churn(malloc=, threads=)  seconds of the allocators' microbenchmark, with `all`: the most threads
relative_latency(place=)  of the nearest or the farthest remote memory over local memory, the median
                      over the nodes
chiplets(), cores()   what was found
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median

from atoll.experiments.claims import Reading, Term
from atoll.schema.confidence import LEAST_CONFIDENCE
from atoll.schema.profile import Figure, PairMatrix, Profile, StreamKernel
from atoll.schema.size import gib
from atoll.schema.text import plural
from atoll.stats.paired import Estimate, Interval

NAMES = frozenset(
    {
        *("latency", "bandwidth", "stream", "sharing", "chiplets", "cores"),
        *("churn", "relative_latency"),
    }
)
_LEAST_ARRAY = 800_000  # the paper's
_CLASSES = ("chiplet", "package", "machine")


class ProfileReadings:
    def __init__(self, profile: Profile) -> None:
        self._profile = profile

    def __call__(self, term: Term) -> Reading | str:
        read: dict[str, Callable[[Term], Reading | str]] = {
            "latency": lambda term: self._pairs(self._profile.core_latency_cas_ns, term),
            "bandwidth": lambda term: self._pairs(self._profile.core_bandwidth_gbs, term),
            "stream": self._stream,
            "sharing": self._sharing,
            "churn": self._churn,
            "relative_latency": self._relative_latency,
            "chiplets": lambda term: (
                self._unsure() or self._count(len(self._groups("chiplet")) or 1)
            ),
            "cores": lambda term: self._count(self._cores()),
        }
        if term.name not in read:
            return f"a profile has no {term.name}(...)"
        found = read[term.name](term)
        if isinstance(found, Reading) and not found.estimate.value:
            return f"{term} was measured as 0"
        return found

    def _unsure(self) -> str:
        """Why the profile cannot tell the chiplets; empty if it can."""
        found = self._profile.inference
        if found is None:
            return "no pairs of cores were measured"
        if found.confidence >= LEAST_CONFIDENCE:
            return ""
        return f"the profile cannot tell the chiplets (confidence {found.confidence:.2g})"

    def _pairs(self, matrix: PairMatrix | None, term: Term) -> Reading | str:
        if matrix is None:
            return f"{term.name} was not measured"
        if why := self._unsure():
            return why
        wanted = term.values.get("pairs", "")
        found = list(self._of_class(matrix, wanted))
        if not found:
            return f"no pair of cores has a {wanted} as its smallest common group"
        value, spread = (median(column) for column in zip(*found, strict=True))
        return Reading(_estimate(value, value * (1 - spread), value * (1 + spread)))

    def _of_class(self, matrix: PairMatrix, wanted: str) -> Iterator[tuple[float, float]]:
        """(value, spread) of each pair whose smallest common group is of that class."""
        where = [self._place(pu) for pu in matrix.pus]
        for i, one in enumerate(where):
            for j, other in enumerate(where):
                value, spread = matrix.values[i][j], matrix.spreads[i][j]
                if value is None or spread is None or one[0] == other[0]:
                    continue
                same = [a is not None and a == b for a, b in zip(one[1:], other[1:], strict=True)]
                if _CLASSES[same.index(True)] == wanted:
                    yield value, spread

    def _place(self, pu: int) -> tuple[object, int | None, int | None, int]:
        """Core, chiplet, package, machine: a number that those in the same one share."""
        core = _group(self._groups("smt"), pu)
        packages = self._groups("package")
        package = _group(packages, pu) if packages else 0
        own = ("pu", pu) if core is None else ("core", core)
        return own, _group(self._groups("chiplet"), pu), package, 0

    def _stream(self, term: Term) -> Reading | str:
        per = term.values.get("per", "")
        runs = [
            one
            for one in self._profile.stream
            if one.per == per and one.kernel is StreamKernel.COPY
        ]
        if not runs:
            return f"STREAM copy was not measured with one process per {per}"
        return _figure(max((one.bandwidth_gbs for one in runs), key=lambda one: one.value))

    def _sharing(self, term: Term) -> Reading | str:
        wanted = term.values.get("op")
        runs = [one for one in self._profile.sharing if one.operation == wanted]
        if not runs:
            return f"sharing was not measured with op={wanted}"
        l3 = self._l3_bytes()
        if l3 is None:
            return "the size of an L3 was not measured"
        by_size = {one.vector_bytes: one for one in runs[0].points}
        within = term.values.get("size") == "within"
        if within:
            sizes = [-size for size in by_size if _LEAST_ARRAY <= size <= l3 / 2]
        else:
            sizes = [size for size in by_size if size >= max(_LEAST_ARRAY, 1.5 * l3)]
        if not sizes:
            return f"no array {'within' if within else 'beyond'} an L3 of {gib(l3)} was measured"
        point = by_size[abs(min(sizes))]
        local = term.values.get("place") == "local"
        return _figure(point.local_gbs if local else point.distributed_gbs)

    def _churn(self, term: Term) -> Reading | str:
        malloc, wanted = term.values.get("malloc"), term.values.get("threads")
        most = max((one.threads for one in self._profile.churn), default=0)
        threads = most if wanted == "all" else int(wanted or 0)
        for one in self._profile.churn:
            if (one.allocator, one.threads) == (malloc, threads):
                return _figure(one.seconds)
        return f"churn was not measured with {malloc} and {plural(threads, 'thread')}"

    def _relative_latency(self, term: Term) -> Reading | str:
        found = self._profile.nodes
        if found is None:
            return "the memory of nodes was not measured"
        take = min if term.values.get("place") == "nearest" else max
        ratios: list[Estimate] = []
        for node, row in zip(found.cpu_nodes, found.latency_ns, strict=True):
            known = {
                memory: each
                for memory, each in zip(found.memory_nodes, row, strict=True)
                if each is not None
            }
            local = known.pop(node, None)
            if local is not None and known:
                far = take(known.values(), key=lambda one: one.value)
                low, high = far.low / local.high, far.high / local.low
                ratios.append(_estimate(far.value / local.value, low, high))
        if not ratios:
            return "no node has local and remote memory whose latency was measured"
        return Reading(sorted(ratios, key=lambda one: one.value)[len(ratios) // 2])

    def _l3_bytes(self) -> int | None:
        """As the system claims it, else as the latencies show it."""
        levels = [curve.levels[-1] for curve in self._profile.caches if curve.levels]
        return max((one.sysfs_bytes or one.capacity_bytes for one in levels), default=None)

    def _groups(self, kind: str) -> tuple[tuple[int, ...], ...]:
        found = self._profile.inference
        if found is None:
            return ()
        return {"chiplet": found.chiplets, "package": found.packages, "smt": found.smt}[kind]

    def _cores(self) -> int:
        return len(self._profile.cpus) - sum(len(one) - 1 for one in self._groups("smt"))

    def _count(self, value: int) -> Reading:
        return Reading(_estimate(value, value, value))


def _group(groups: tuple[tuple[int, ...], ...], pu: int) -> int | None:
    return next((index for index, one in enumerate(groups) if pu in one), None)


def _figure(found: Figure) -> Reading:
    return Reading(_estimate(found.value, found.low, found.high))


def _estimate(value: float, low: float, high: float) -> Estimate:
    """Without an interval if it reaches 0: nothing can be divided by that."""
    return Estimate(value, Interval(low, high) if low > 0 else None, 1)
