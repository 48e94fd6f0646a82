"""The poster's table: what a comparison of placements says of its claim."""

from __future__ import annotations

import pytest

from atoll.experiments.catalog import get
from atoll.experiments.claims import Outcome, Reading, parse_term
from atoll.experiments.here import unmet
from atoll.experiments.operator_readings import OperatorReadings
from atoll.experiments.ours import of_operators, verdicts
from atoll.schema.operator_runs import OperatorRound, OperatorRun, OperatorRuns
from atoll.schema.placement import Deployment
from tests.parts.machines import NodeShape, build
from tests.parts.placed import graph, placement
from tests.parts.profiles import profile

POSTER = get("poster-tab1")
LARGE, SMALL = build([[NodeShape(rest=48)]]), build([[NodeShape(rest=2)]])


def runs(rates: dict[Deployment, float], *, packed_p99_ms: float = 36) -> OperatorRuns:
    cores = {"os": 48, "per-core": 44, "packed": 6}
    return OperatorRuns(
        program="made-up",
        machine=LARGE,
        environment=profile("made-up", 48).environment,
        emulated=False,
        graph=graph({"a": 0.1}),
        unit="WIPS",
        warmup_s=1,
        measured_s=2,
        refused={} if "per-core" in rates else {"per-core": "too few cores"},
        rounds=(
            OperatorRound(
                headroom=0.2,
                placements=(placement({"a": 0}),),
                runs=tuple(
                    OperatorRun(
                        block=block,
                        deployment=name,
                        per_window=(rate - 2, rate + 2 + block / 100),
                        p50_ms=8,
                        p90_ms=20,
                        p99_ms=packed_p99_ms if name == "packed" else 36,
                        backlog=False,
                        cores_used=cores[name],
                        threads=1,
                        drifted=0,
                        idle_before=1,
                    )
                    for block in range(5)
                    for name, rate in rates.items()
                ),
            ),
        ),
    )


@pytest.mark.parametrize(
    ("packed", "p99_ms", "outcome"),
    [(428, 36, Outcome.HELD), (300, 36, Outcome.NOT), (428, 50, Outcome.NOT)],
)
def test_the_claim(packed: float, p99_ms: float, outcome: Outcome) -> None:
    found = runs({"os": 317, "per-core": 425, "packed": packed}, packed_p99_ms=p99_ms)
    assert verdicts(POSTER, of_operators(found, "x.json"))[""].outcome is outcome


def test_without_an_operator_per_core_it_cannot_be_judged() -> None:
    found = runs({"os": 317, "packed": 428})
    verdict = verdicts(POSTER, of_operators(found, "x.json"))[""]
    assert verdict.outcome is Outcome.UNJUDGED
    assert OperatorReadings(found)(parse_term("throughput(deployment=per-core)")) == "too few cores"


def test_the_terms() -> None:
    read = OperatorReadings(runs({"os": 317, "per-core": 425, "packed": 428}))
    found = {
        text: read(parse_term(text))
        for text in (
            "throughput(deployment=os)",
            "deviation(deployment=packed)",
            "percentile(deployment=os, of=50)",
            "cores_used(deployment=packed)",
        )
    }
    values = [one.estimate.value for one in found.values() if isinstance(one, Reading)]
    assert values == pytest.approx([317.01, 2.01, 8, 6])


def test_it_needs_as_many_cores_as_operators() -> None:
    assert unmet(POSTER.needs, LARGE) == []
    assert len(unmet(POSTER.needs, SMALL)) == 1
