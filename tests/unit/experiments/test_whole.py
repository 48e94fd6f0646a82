"""Every bench of one machine, as if a large machine had measured it: each claim finds its terms."""

from __future__ import annotations

import pytest

from atoll.bench.entrants import make_entrants
from atoll.bench.results import Results
from atoll.engines import registry
from atoll.experiments.catalog import experiments
from atoll.experiments.claims import judge, parse_claim
from atoll.experiments.here import possible
from atoll.experiments.ours import of_results, verdicts
from atoll.plan import machine_id
from atoll.schema.experiment import Experiment
from atoll.schema.plan import EngineTraits
from atoll.schema.results import AxisValues
from tests.parts.bench import header, lines, results
from tests.parts.machines import NodeShape, build

LARGE = build(
    [[NodeShape(chiplets=(4,) * 4, memory_gib=512)] for _ in range(2)], smt=2, l3_bytes=32 << 20
)
BENCHED = [one for one in experiments() if one.bench and one.needs.machines == 1]
NOT_RECORDED = {"numa-tab1", "olap-tab2"}  # counters of the machine; memory, which `lines` has not


def measured(one: Experiment, engines: list[EngineTraits]) -> Results:
    """Every deployment takes a second, WIM two."""
    assert one.bench
    grid = possible(one.bench, LARGE, engines).grid
    knobs = {"numa-balancing": "1"} if "knob:numa-balancing" in one.bench.axes else {}
    entrants, _ = make_entrants(LARGE, engines, (), grid, knobs=knobs)
    seconds = {one.label: 2.0 for one in entrants if "/wim" in one.label}
    head = header(
        *entrants,
        suite=one.bench.suite,
        machine=LARGE,
        machine_id=machine_id(LARGE),
        axes=tuple(AxisValues(name=axis.name, values=axis.values) for axis in grid.varied),
    )
    return results(lines(entrants, 6, seconds), head)


@pytest.mark.parametrize("one", BENCHED, ids=lambda one: one.name)
def test_each_claim_is_judged_for_each_engine(one: Experiment) -> None:
    assert one.bench
    for scale in one.bench.scales.values():
        engines = [registry.get(name).traits for name in scale.engines or one.bench.engines]
        found = verdicts(one, of_results(one, measured(one, engines), "r.jsonl"))
        assert [*found] == [each.name for each in engines]
        if one.name in NOT_RECORDED:
            continue
        for engine, verdict in found.items():
            assert verdict.outcome != "could not be judged", (engine, verdict.reasons)


def test_a_claim_of_what_is_not_recorded_says_so() -> None:
    one = next(one for one in BENCHED if one.name == "numa-tab1")
    ours = of_results(one, measured(one, [registry.get("spark").traits]), "r.jsonl")
    verdict = judge(parse_claim(one.check.shape), ours.readings["spark"])
    assert "does not record remote" in verdict.reasons[0]
