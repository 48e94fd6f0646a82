"""Fig. 13 of arcas-runtime: what a machine can vary, what runs say of its claim."""

from __future__ import annotations

import pytest

from atoll.engines.postgresql.engine import PostgreSQLEngine
from atoll.errors import UsageError
from atoll.experiments.catalog import get
from atoll.experiments.claims import Outcome, Reading, parse_term
from atoll.experiments.here import unmet
from atoll.experiments.oltp_readings import OltpReadings, transactions_here
from atoll.experiments.ours import of_oltp, verdicts
from atoll.report.experiment.text import comparison_text
from tests.parts.faults import fails
from tests.parts.machines import milan, plain
from tests.parts.oltp import Rates, oltp_runs

FIGURE = get("arcas-fig13")
TRAITS = PostgreSQLEngine().traits
CHIPLETS = milan(1, 8, 8)


def outcome(packed: Rates, spread: Rates) -> Outcome:
    ours = of_oltp(oltp_runs(CHIPLETS, 8, {"tpcc": (packed, spread)}), "x.json")
    return verdicts(FIGURE, ours)["tpcc"].outcome


def test_the_claim_is_an_equivalence_within_two_percent() -> None:
    packed = [100.0, 102.0, 99.0, 101.0, 100.0]
    assert outcome(packed, [1.01 * one for one in packed]) is Outcome.HELD
    assert outcome(packed, [0.9 * one for one in packed]) is Outcome.NOT
    assert outcome(packed, [80.0, 130.0, 99.0, 120.0, 90.0]) is Outcome.UNJUDGED
    assert outcome(packed[:4], packed[:4]) is Outcome.UNJUDGED  # too few blocks


def test_no_commit_in_any_block_is_not_judged() -> None:
    found = oltp_runs(CHIPLETS, 8, {"tpcc": ([100.0] * 5, [0.0] * 5)})
    verdict = verdicts(FIGURE, of_oltp(found, "x"))["tpcc"]
    assert verdict.outcome is Outcome.UNJUDGED and "nothing was committed" in verdict.reasons[0]


def test_an_emulated_machine_judges_nothing() -> None:
    alike = [100.0] * 5
    found = oltp_runs(CHIPLETS, 8, {"tpcc": (alike, alike)}, emulated=True)
    assert verdicts(FIGURE, of_oltp(found, "x"))["tpcc"].outcome is Outcome.UNJUDGED


def test_each_number_of_cores_is_judged() -> None:
    one = oltp_runs(CHIPLETS, 2, {"tpcc": ([100.0] * 5, [100.0] * 5)})
    other = oltp_runs(CHIPLETS, 8, {"tpcc": ([100.0] * 5, [50.0] * 5)})
    both = one.model_copy(
        update={"seats": (*one.seats, *other.seats), "runs": (*one.runs, *other.runs)}
    )
    verdict = verdicts(FIGURE, of_oltp(both, "x"))["tpcc"]
    assert verdict.outcome is Outcome.NOT and "cores=8" in verdict.reasons[0]
    reading = OltpReadings(both, "tpcc")(parse_term("spread_over_packed(cores=2)"))
    assert isinstance(reading, Reading) and reading.estimate.value == 1


@pytest.mark.parametrize(
    ("term", "words"),
    [
        ("commits(placement=spread, cores=3)", "nothing was run"),
        ("time()", "transactions have no"),
        ("spread_over_packed(cores=3)", "same deployment"),
    ],
)
def test_a_term_without_a_reading_says_why(term: str, words: str) -> None:
    found = oltp_runs(CHIPLETS, 8, {"tpcc": ([1.0] * 5, [1.0] * 5)})
    reading = OltpReadings(found, "tpcc")(parse_term(term))
    assert isinstance(reading, str) and words in reading


def test_the_report_has_rates_of_every_seat() -> None:
    found = oltp_runs(CHIPLETS, 8, {"tpcc": ([100.0] * 5, [101.0] * 5)})
    ours = of_oltp(found, "x.json")
    assert [str(term) for term in ours.more] == [
        "commits(placement=packed, cores=8)",
        "commits(placement=spread, cores=8)",
    ]
    assert "tpcc: held" in comparison_text(FIGURE, [ours])


def test_what_a_machine_can_vary() -> None:
    assert FIGURE.oltp
    can = transactions_here(FIGURE.oltp, CHIPLETS, TRAITS)
    assert can.cores == (2, 4, 8, 16, 32)  # 64 are all that there are
    assert len(can.seats) == 10 and len(can.cannot) == 1
    with fails(UsageError):
        transactions_here(FIGURE.oltp, plain(2), TRAITS)
    assert unmet(FIGURE.needs, plain(2)) and not unmet(FIGURE.needs, CHIPLETS)
