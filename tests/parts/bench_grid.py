"""A grid that was measured: Spark on two chiplets, with axes of numbers and of words."""

from __future__ import annotations

from collections.abc import Sequence

from atoll.bench.axes import Grid, make_grid, parse_axis
from atoll.bench.entrants import make_entrants
from atoll.bench.results import Results
from atoll.schema.plan import EngineTraits
from atoll.schema.results import AxisValues
from tests.parts.bench import SPARK_TRAITS, header, lines, results
from tests.parts.bench_plans import machine


def grid(*texts: str, product: bool = False) -> Grid:
    return make_grid(map(parse_axis, texts), product=product)


def measured(
    given: Grid,
    seconds: dict[str, float],
    blocks: int = 6,
    engines: Sequence[EngineTraits] = (SPARK_TRAITS,),
) -> Results:
    """`seconds`: label -> time of its q1; others take 1 s."""
    entrants, notes = make_entrants(machine(), list(engines), (), given, knobs={"swappiness": "60"})
    axes = tuple(AxisValues(name=axis.name, values=axis.values) for axis in given.varied)
    head = header(*entrants, axes=axes, notes=notes)
    base = {one.label: seconds.get(one.label, 1.0) for one in entrants}
    return results(lines(entrants, blocks, base), head)


CORES = "spark/wim, masked/cores="
MEASURED = measured(
    grid("cores=1,2,4", "memory=bind,interleave", "n=2,4", "malloc=system,jemalloc"),
    {
        "spark/wim": 1.0,
        f"{CORES}1": 3.6,
        f"{CORES}2": 1.8,
        "spark/wim/memory=bind": 0.5,
        "spark/wim/memory=interleave": 1.25,
        "spark/n=2": 0.8,
        "spark/n=4": 0.5,
    },
)
