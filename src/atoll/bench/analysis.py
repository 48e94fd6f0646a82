"""Summarises a results file: medians, speed-ups, verdicts and warnings. Pure.

Only finished measured passes count (with a `PassDone` for the block and the entrant); warm-ups and
broken passes stay in the file. With several streams, a query's time in a block is the geometric
mean over the streams. atoll.stats.paired has the statistics; docs/statistics.md explains them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from atoll.bench.cautions import cautions
from atoll.bench.decompose import decomposition
from atoll.bench.engine_work import work_summary
from atoll.bench.estimates import GEOMEAN, interval_of, speedup_of
from atoll.bench.results import Results
from atoll.bench.spreads import courses, spread_summary
from atoll.schema.machine import Machine
from atoll.schema.results import BlockFailed, ClusterLook, Entrant, PassDone, QueryTime
from atoll.schema.size import gib
from atoll.schema.summary import (
    BenchSummary,
    Decomposition,
    EntrantSummary,
    Measured,
    Speedup,
)
from atoll.schema.text import plural
from atoll.stats import paired
from atoll.stats.outliers import outliers

PASS = "pass"

# label -> query (or PASS) -> block -> seconds
Times = dict[str, dict[str, dict[int, float]]]


def summarise(results: Results) -> BenchSummary:
    """The summary of a run, finished or not."""
    header, end = results.header, results.end
    times = block_times(results)
    entrants = tuple(_entrant(entrant, times, results) for entrant in header.entrants)
    return BenchSummary(
        run_id=header.run_id,
        started_unix_s=header.started_unix_s,
        status=end.status if end else "unfinished",
        reason=end.reason
        if end
        else "the file has no end: the bench was interrupted or is still running",
        suite=header.suite,
        suite_checksum=header.suite_checksum,
        scale_factor=header.scale_factor,
        queries=header.queries,
        blocks_asked=header.blocks_asked,
        blocks_done=results.whole_blocks,
        confidence=paired.CONFIDENCE,
        machine=machine_line(header.machine),
        machine_id=header.machine_id,
        command=header.command,
        entrants=entrants,
        decompositions=_decompositions(results, times),
        notes=header.notes,
        warnings=cautions(results, entrants),
        fingerprint=header.fingerprint,
    )


def block_times(results: Results) -> Times:
    """Seconds per entrant, query and block, of the finished passes."""
    done = {(line.label, line.block) for line in results.lines if isinstance(line, PassDone)}
    streams: dict[tuple[str, str, int], list[float]] = defaultdict(list)
    for line in results.lines:
        if isinstance(line, QueryTime) and line.phase == "measured":
            if (line.label, line.block) in done:
                streams[line.label, line.query, line.block].append(line.seconds)
        elif isinstance(line, PassDone):
            streams[line.label, PASS, line.block].append(line.seconds)
    times: Times = {
        entrant.label: {query: {} for query in (*results.header.queries, PASS)}
        for entrant in results.header.entrants
    }
    for (label, query, block), seconds in streams.items():
        times[label].setdefault(query, {})[block] = paired.geometric_mean(seconds)
    return times


def machine_line(machine: Machine) -> str:
    """The machine in one line, by hwloc's counts."""
    summary = machine.summary
    counts = (
        (summary.packages, "package"),
        (summary.numa_nodes, "NUMA node"),
        (summary.chiplets, "chiplet"),
        (summary.cores, "core"),
        (summary.pus, "PU"),
    )
    words = [plural(count, word) for count, word in counts]
    return ", ".join([machine.title, *words, gib(machine.memory_bytes)])


def _entrant(entrant: Entrant, times: Times, results: Results) -> EntrantSummary:
    plan, mine = entrant.plan, times[entrant.label]
    base = times.get(entrant.baseline) if entrant.baseline else None
    failed = {
        line.block
        for line in results.lines
        if isinstance(line, BlockFailed) and line.label == entrant.label
    }
    looks = [
        line
        for line in results.lines
        if isinstance(line, ClusterLook) and line.label == entrant.label
    ]
    return EntrantSummary(
        label=entrant.label,
        engine=entrant.engine,
        url=entrant.url,
        policy=plan.policy if plan else None,
        scheduler=entrant.scheduler,
        baseline=entrant.baseline,
        instances=len(plan.slots) if plan else None,
        threads=plan.total_threads if plan else None,
        heap_bytes=plan.total_heap_bytes if plan else None,
        shuffle_partitions=plan.shuffle_partitions if plan else None,
        streams=entrant.streams,
        coincides_with=plan.coincides_with if plan else (),
        blocks_done=len(mine[PASS]),
        blocks_failed=len(failed),
        times=tuple(_measured(query, by_block) for query, by_block in mine.items() if by_block),
        speedups=_speedups(base, mine, results.header.queries) if base else (),
        work=work_summary(results.lines, entrant.label),
        spread=spread_summary(
            [course for course in courses(results.lines) if course.label == entrant.label]
        ),
        processes=looks[-1].processes if looks else (),
    )


def _decompositions(results: Results, times: Times) -> tuple[Decomposition, ...]:
    engines = {entrant.label: entrant.engine for entrant in results.header.entrants}
    found = (
        decomposition(
            engines[chain[0]],
            chain,
            {label: _means(times[label], results.header.queries) for label in chain},
        )
        for chain in results.header.chains
    )
    return tuple(one for one in found if one is not None)


def _measured(query: str, by_block: Mapping[int, float]) -> Measured:
    blocks = sorted(by_block)
    seconds = [by_block[block] for block in blocks]
    estimate = paired.median_estimate(seconds)
    return Measured(
        query=query,
        median_s=estimate.value,
        interval=interval_of(estimate.interval),
        min_s=min(seconds),
        max_s=max(seconds),
        blocks=len(blocks),
        outlier_blocks=tuple(blocks[index] for index in outliers(seconds)),
    )


def _speedups(
    base: Mapping[str, Mapping[int, float]],
    mine: Mapping[str, Mapping[int, float]],
    queries: tuple[str, ...],
) -> tuple[Speedup, ...]:
    found = {GEOMEAN: paired.speedup(_means(base, queries), _means(mine, queries))}
    for query in (*queries, PASS):
        found[query] = paired.speedup(base[query], mine[query])
    return tuple(
        speedup_of(query, estimate) for query, estimate in found.items() if estimate is not None
    )


def _means(side: Mapping[str, Mapping[int, float]], queries: tuple[str, ...]) -> dict[int, float]:
    """Per block, over the queries."""
    return paired.geometric_means({query: side[query] for query in queries})
