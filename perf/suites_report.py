"""`atoll report` of 5,000 results: whole processes, html beside the summary alone (json).

The results are invented, those of a bench with three axes on a machine of two packages. They have
every kind of record that `atoll bench` writes of Spark.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from math import ceil
from pathlib import Path

import numpy as np

from atoll.bench.axes import make_grid, parse_axis
from atoll.bench.entrants import make_entrants
from atoll.bench.fingerprint import fingerprint
from atoll.bench.results import read_results
from atoll.bench.runner import Phase
from atoll.engines import registry
from atoll.engines.operators import Node, listed
from atoll.host.local import LocalHost
from atoll.host.topology import read_machine
from atoll.plan import machine_id
from atoll.schema.operators import Kind, QueryProfile
from atoll.schema.results import (
    AxisValues,
    DeploymentUp,
    EngineWork,
    Entrant,
    Line,
    PassDone,
    PassPlaces,
    QueryProfiled,
    QueryTime,
    QueryWork,
    RunEnd,
    RunHeader,
    VerifyResult,
)
from atoll.schema.whereabouts import Whereabouts
from atoll.suites.tpch_schema import SCHEMAS
from perf.harness import WrongAnswer, at_most, interleave, median, note, spawn

RESULTS = 5000  # measured times of queries
ROUNDS = 15
TARGET_S, TARGET_MB = 5.0, 5.0
MACHINE = "Package:2 NUMANode:1(memory=256GB) L3Cache:8(size=32MB) L2Cache:8 Core:1 PU:1"
AXES = ("policy=wim,win,wicp,wic", "n=2,4,8,16", "memory=bind,interleave")
QUERIES = tuple(f"q{number}" for number in range(1, 23))
JOINS = 15  # of each query


def compare_report() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "results.jsonl")
        records = invented()
        path.write_text("".join(f"{one.model_dump_json()}\n" for one in records))
        times = [line for line in read_results(path).lines if isinstance(line, QueryTime)]
        measured = sum(line.phase == "measured" for line in times)
        if measured < RESULTS:
            raise WrongAnswer(f"{measured} results were read, fewer than {RESULTS}")

        def report(kind: str) -> float:
            output = str(path.with_suffix(f".{kind}"))
            return spawn([sys.executable, "-m", "atoll", "report", str(path), "-o", output])

        seconds = interleave(
            {kind: partial(report, kind) for kind in ("html", "json")},
            rounds=ROUNDS,
            warmup=1,
        )
        megabytes = path.with_suffix(".html").stat().st_size / 1e6
    for kind, own in seconds.items():
        note(f"report of {measured} results, {len(records)} records, {kind}: {median(own)} s")
    at_most("suites-report-5000-s", median(seconds["html"]).value, TARGET_S)
    at_most("suites-report-5000-mb", megabytes, TARGET_MB)


def invented() -> list[RunHeader | Line]:
    machine, traits = read_machine(synthetic=MACHINE), registry.get("spark").traits
    grid = make_grid([parse_axis(text) for text in AXES])
    entrants, notes = make_entrants(machine, [traits], (), grid)
    blocks = ceil(RESULTS / len(QUERIES) / len(entrants))
    header = RunHeader(
        run_id="perf",
        started_unix_s=0,
        suite="tpch",
        scale_factor=1,
        queries=QUERIES,
        blocks_asked=blocks,
        query_limit_s=300,
        machine=machine,
        machine_id=machine_id(machine),
        entrants=entrants,
        axes=tuple(AxisValues(name=axis.name, values=axis.values) for axis in grid.varied),
        notes=notes,
        fingerprint=fingerprint(LocalHost(), machine, {}, data_checksum=""),
        command="python -m perf.suites report",
    )
    rng = np.random.default_rng(1)
    lines = [
        line
        for block in range(blocks)
        for position, entrant in enumerate(entrants)
        for line in _of_a_block(block, position, entrant, rng)
    ]
    return [header, *lines, RunEnd(ended_unix_s=1, status="complete")]


def _of_a_block(
    block: int, position: int, entrant: Entrant, rng: np.random.Generator
) -> Iterator[Line]:
    label = entrant.label
    seconds: Sequence[float] = rng.lognormal(0.01 * position, 0.1, len(QUERIES)).tolist()
    asked = list(zip(QUERIES, seconds, strict=True))

    def time(query: str, spent: float, phase: Phase) -> QueryTime:
        return QueryTime(
            block=block,
            label=label,
            phase=phase,
            query=query,
            seconds=spent,
            engine_seconds=spent,
            rows=10,
            answer="ok",
        )

    yield DeploymentUp(
        block=block, label=label, position=position, up_s=10, cached_share=0, idle_share=1
    )
    yield from (time(*one, "warm-up") for one in asked)
    yield VerifyResult(block=block, label=label, threads=100, drifted=0)
    yield from (time(*one, "measured") for one in asked)
    yield PassPlaces(
        block=block,
        label=label,
        places=Whereabouts(
            processes=8,
            threads=100,
            elsewhere=0,
            migrations=1000,
            cpu_s_by_node={0: sum(seconds), 1: sum(seconds)},
            bytes_by_node={0: 1 << 33, 1: 1 << 33},
            local_pages=0.9,
            local_resctrl=None,
            read_bytes=1 << 20,
            written_bytes=1 << 20,
        ),
    )
    for query, spent in asked:
        work = EngineWork(
            tasks=64,
            run_s=16 * spent,
            gc_s=0.1 * spent,
            shuffle_bytes=1 << 24,
            spilled_bytes=0,
            read_bytes=1 << 28,
            peak_bytes=round(spent * (1 << 28)),
            peak_source="perf",
        )
        yield QueryWork(block=block, label=label, query=query, work=work)
    yield PassDone(block=block, label=label, seconds=sum(seconds))
    if block == 0:
        for query, spent in asked:
            yield QueryProfiled(block=block, label=label, query=query, profile=_profile(spent, rng))


def _profile(seconds: float, rng: np.random.Generator) -> QueryProfile:
    """A chain of joins, each with a scan."""
    tables = rng.choice(list(SCHEMAS), JOINS + 1)
    shares = rng.dirichlet(np.ones(2 * JOINS + 1)) * seconds
    scans = [
        Node("Scan parquet", Kind.SCAN, share, 1000, table=str(table))
        for table, share in zip(tables, shares, strict=False)
    ]
    root = scans[0]
    for scan, share in zip(scans[1:], shares[JOINS + 1 :], strict=True):
        how = "broadcast" if share > seconds / JOINS / 2 else "partitioned"
        root = Node("Join", Kind.JOIN, share, 1000, (root, scan), join="inner", distribution=how)
    return QueryProfile(operators=listed(root))
