"""For the tests of real benches: a small job, and running it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from atoll.bench.axes import Axis, Grid
from atoll.bench.job import BenchRequest, Job, Length, make_job
from atoll.bench.runner import Tick
from atoll.host.local import LocalHost
from atoll.host.topology import read_machine


def small_job(engine: str, queries: str) -> Job:
    """One block of WIM and WIC at scale factor 0.01."""
    request = BenchRequest(
        targets=(engine,),
        suite="tpch",
        scale_factor=0.01,
        grid=Grid((Axis("policy", ("wim", "wic")),)),
        queries=queries,
        length=Length(1),
        query_limit_s=120.0,
        command=f"atoll bench {engine}",
    )
    return make_job(
        request, host=LocalHost(), machine=read_machine(), progress=lambda doing, share: None
    )


def run(job: Job, path: Path, tick: Callable[[Tick], None] = lambda tick: None) -> None:
    job.run(path, host=LocalHost(), resume=False, tick=tick, say=lambda line: None)
