"""Runs of workloads and kernels as their programs would print them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from atoll.experiments.here import Can
from atoll.experiments.workload_settings import Setting
from atoll.schema.experiment import WorkloadRun
from atoll.schema.kernel import Kernel, KernelParameter, KernelResult, Kernels
from atoll.schema.workload import SettingRun, WorkloadResult, WorkloadRuns
from tests.parts.machines import NodeShape, build

LARGE = build([[NodeShape(chiplets=(8, 8), memory_gib=128)]] * 4)


def every_kernel(run: WorkloadRun) -> Can:
    """A machine that has all mallocs, and every kernel with every flag that the run gives it."""
    words = [word for axis in run.words.values() for each in axis.values() for word in each.split()]
    words += [
        word
        for scale in run.scales.values()
        for each in scale.flags.values()
        for word in each.split()
    ]
    flags = {word.removeprefix("--") for word in words if word.startswith("--")} | {*run.axes}
    named = tuple(KernelParameter(name=flag, default="", help="") for flag in flags)
    every = tuple(Kernel(name=name, what="", unit="", parameters=named) for name in run.workloads)
    schedulers = "atoll, arcas-printed, os, async, openmp, tbb"
    known = Kernels(schedulers=schedulers, parameters=(), workloads=every)
    return Can(("jemalloc", "tcmalloc", "tbbmalloc"), kernels=known)


def kernel(seconds: float = 1, **more: object) -> KernelResult:
    fields = {
        "workload": "bfs",
        "scheduler": "atoll",
        "approach": None,
        "workers": 2,
        "arrays": "partitioned",
        "pages": "transparent",
        "seed": 1,
        "parameters": {"scale": "12"},
        "make_s": 0,
        "runs_s": (seconds,),
        "work": 1,
        "unit": "edges",
        "per_s": 1,
        "traffic_bytes": None,
        "peak_bytes": 1,
        "figures": {},
    }
    return KernelResult.model_validate(fields | more)


def runs(
    settings: Sequence[Setting], of: Callable[[Setting, int], WorkloadResult | KernelResult]
) -> WorkloadRuns:
    return WorkloadRuns(
        machine=LARGE,
        emulated=False,
        settings=tuple(map(dict, settings)),
        runs=tuple(
            SettingRun(block=block, setting=dict(one), result=of(one, block))
            for block in range(6)
            for one in settings
        ),
    )
