"""Summarises a results file: medians, speed-ups, verdicts and warnings. Pure.

Only finished measured passes count (with a `PassDone` for the block and the entrant); warm-ups and
broken passes stay in the file. With several streams, a query's time in a block is the geometric
mean over the streams. Entrants with unequal streams ran unequal numbers of queries in a pass, so
their passes are compared by throughput. atoll.stats.paired has the statistics; docs/statistics.md
explains them. The times of an emulated CPU mean nothing, so none are compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from atoll.bench.axis_effects import Load, axis_summaries
from atoll.bench.cautions import cautions
from atoll.bench.decompose import decomposition
from atoll.bench.engine_work import work_summary
from atoll.bench.estimates import GEOMEAN, THROUGHPUT, interval_of, speedup_of
from atoll.bench.fills import fills_summary
from atoll.bench.places import places_summary
from atoll.bench.results import Results
from atoll.bench.spreads import courses, spread_summary
from atoll.bench.why import explanations
from atoll.schema.machine import Machine
from atoll.schema.results import (
    BlockFailed,
    ClusterLook,
    Entrant,
    PassDone,
    QueryFailed,
    QueryTime,
)
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
from atoll.stats.tails import percentile

PASS = "pass"

# label -> query (or PASS) -> block -> seconds of each stream
Runs = dict[str, dict[str, dict[int, list[float]]]]
# label -> query (or PASS) -> block -> seconds
Times = dict[str, dict[str, dict[int, float]]]


def summarise(results: Results) -> BenchSummary:
    """The summary of a run, finished or not."""
    header, end = results.header, results.end
    runs = measured_runs(results)
    times = block_times(runs)
    labels = {entrant.label for entrant in header.entrants}
    checked = [line.answer for line in results.lines if isinstance(line, QueryTime)]
    entrants = tuple(_entrant(entrant, runs, times, results) for entrant in header.entrants)
    by_label = {entrant.label: entrant for entrant in header.entrants}
    emulated = header.fingerprint.emulated
    return BenchSummary(
        basis="emulated" if emulated else "emulated network" if header.rates_scaled else "measured",
        run_id=header.run_id,
        started_unix_s=header.started_unix_s,
        status=end.status if end else "unfinished",
        reason=end.reason
        if end
        else "the file has no end: the bench was interrupted or is still running",
        suite=header.suite,
        suite_checksum=header.suite_checksum,
        scale_factor=header.scale_factor,
        answers_known=header.answers_known and not header.entrants[0].url,
        queries=results.queries,
        left_out=tuple(results.left_out),
        blocks_asked=header.blocks_asked,
        blocks_done=sum(done >= labels for done in results.ended_in(PassDone).values()),
        blocks_failed=len(results.ended_in(BlockFailed)),
        warmups=header.warmups,
        answers=len(checked),
        answers_differing=len(checked) - checked.count("ok"),
        confidence=paired.CONFIDENCE,
        machine=machine_line(header.machine),
        machine_id=header.machine_id,
        command=header.command,
        entrants=entrants,
        axes=()
        if emulated
        else axis_summaries(
            header,
            {label: _means(one, results.queries) for label, one in times.items()},
            {label: _load(by_label[label], one, results.queries) for label, one in runs.items()},
        ),
        decompositions=() if emulated else _decompositions(results, times),
        why=() if emulated else explanations(results),
        notes=header.notes,
        warnings=cautions(results, entrants),
        fingerprint=header.fingerprint,
    )


def measured_runs(results: Results) -> Runs:
    """The runs of the finished passes, without the queries that failed.

    A whole pass counts only if none of these queries ran in it: it would be longer than others.
    """
    done = {(line.label, line.block) for line in results.lines if isinstance(line, PassDone)}
    runs: Runs = {
        entrant.label: {query: defaultdict(list) for query in (*results.queries, PASS)}
        for entrant in results.header.entrants
    }
    longer = set()
    for line in results.lines:
        if isinstance(line, QueryTime | QueryFailed) and line.phase == "measured":
            if line.query not in runs[line.label]:
                longer.add((line.label, line.block))
            elif isinstance(line, QueryTime) and (line.label, line.block) in done:
                runs[line.label][line.query][line.block].append(line.seconds)
        elif isinstance(line, PassDone) and (line.label, line.block) not in longer:
            runs[line.label][PASS][line.block].append(line.seconds)
    return runs


def block_times(runs: Runs) -> Times:
    return {
        label: {
            query: {block: paired.geometric_mean(seconds) for block, seconds in blocks.items()}
            for query, blocks in queries.items()
        }
        for label, queries in runs.items()
    }


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


def _entrant(entrant: Entrant, runs: Runs, times: Times, results: Results) -> EntrantSummary:
    plan, mine = entrant.plan, times[entrant.label]
    base = times.get(entrant.baseline) if entrant.baseline else None
    streams = {one.label: one.streams for one in results.header.entrants}
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
        instances=plan.all_instances if plan else None,
        threads=plan.all_threads if plan else None,
        heap_bytes=plan.all_heap_bytes if plan else None,
        shuffle_partitions=plan.shuffle_partitions if plan else None,
        malloc=plan.malloc if plan else None,
        thp=plan.thp if plan else None,
        streams=entrant.streams,
        coincides_with=plan.coincides_with if plan else (),
        cells=entrant.cells,
        blocks_done=_ended(results, PassDone, entrant.label),
        blocks_failed=_ended(results, BlockFailed, entrant.label),
        times=tuple(
            _measured(query, by_block, runs[entrant.label][query])
            for query, by_block in mine.items()
            if by_block
        ),
        speedups=_speedups(
            base,
            mine,
            results.queries,
            (streams[entrant.baseline or entrant.label], entrant.streams),
        )
        if base and not results.header.fingerprint.emulated
        else (),
        work=work_summary(results.lines, entrant.label),
        places=places_summary(results.lines, entrant.label),
        fills=fills_summary(results.lines, entrant.label),
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
            {label: _means(times[label], results.queries) for label in chain},
        )
        for chain in results.header.chains
    )
    return tuple(one for one in found if one is not None)


def _ended(results: Results, kind: type[PassDone | BlockFailed], label: str) -> int:
    """The number of blocks that the entrant ended in this way."""
    return sum(label in labels for labels in results.ended_in(kind).values())


def _measured(
    query: str, by_block: Mapping[int, float], runs: Mapping[int, Sequence[float]]
) -> Measured:
    blocks = sorted(by_block)
    seconds = [by_block[block] for block in blocks]
    estimate = paired.median_estimate(seconds)
    each = [one for block in blocks for one in runs[block]]
    return Measured(
        query=query,
        median_s=estimate.value,
        interval=interval_of(estimate.interval),
        min_s=min(seconds),
        max_s=max(seconds),
        blocks=len(blocks),
        runs=len(each),
        p95_s=percentile(each, 95),
        p99_s=percentile(each, 99),
        outlier_blocks=tuple(blocks[index] for index in outliers(seconds)),
    )


def _speedups(
    base: Mapping[str, Mapping[int, float]],
    mine: Mapping[str, Mapping[int, float]],
    queries: tuple[str, ...],
    streams: tuple[int, int],  # of the baseline, of the entrant
) -> tuple[Speedup, ...]:
    found = {GEOMEAN: paired.speedup(_means(base, queries), _means(mine, queries))}
    for query in queries:
        found[query] = paired.speedup(base[query], mine[query])
    before, now = (
        {block: seconds / count for block, seconds in passes.items()}
        for passes, count in zip((base[PASS], mine[PASS]), streams, strict=True)
    )
    found[PASS if streams[0] == streams[1] else THROUGHPUT] = paired.speedup(before, now)
    return tuple(
        speedup_of(query, estimate) for query, estimate in found.items() if estimate is not None
    )


def _load(
    entrant: Entrant, runs: Mapping[str, Mapping[int, Sequence[float]]], queries: tuple[str, ...]
) -> Load:
    """Of the whole passes, and of all runs of all queries."""
    count = entrant.streams * len(queries)
    latencies = [seconds for query in queries for each in runs[query].values() for seconds in each]
    return Load(
        pass_s={block: seconds[0] / count for block, seconds in runs[PASS].items()},
        p50_s=percentile(latencies, 50),
        p90_s=percentile(latencies, 90),
        p99_s=percentile(latencies, 99),
    )


def _means(side: Mapping[str, Mapping[int, float]], queries: tuple[str, ...]) -> dict[int, float]:
    """Per block, over the queries."""
    return paired.geometric_means({query: side[query] for query in queries})
