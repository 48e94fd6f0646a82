"""Terms over profiles of made-up machines."""

from __future__ import annotations

import re

import pytest

from atoll.errors import UsageError
from atoll.experiments.catalog import get
from atoll.experiments.claims import Reading, parse_term
from atoll.experiments.ours import of_profile, verdicts
from atoll.experiments.profile_readings import ProfileReadings
from atoll.schema.profile import Profile
from tests.parts import profiles

EPYC = profiles.epyc(packages=2, chiplets=4, cores=4)


def churned(*, one_tc: float, all_tc: float, je: float = 0.3) -> Profile:
    """With tcmalloc's seconds of one thread and of all, and jemalloc's; the others take 0.3 s."""
    [made] = profiles.churn_runs(("system",), (1,))
    runs = [
        made.model_copy(
            update={"allocator": name, "threads": threads, "seconds": profiles.figure(seconds)}
        )
        for name in ("system", "jemalloc", "tcmalloc", "tbbmalloc")
        for threads, own in ((1, one_tc), (8, all_tc), (32, all_tc))
        for seconds in [{"tcmalloc": own, "jemalloc": je}.get(name, 0.3)]
    ]
    return EPYC.model_copy(update={"churn": tuple(runs)})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("latency(pairs=chiplet)", 22.7),  # 23 as made, siblings of a core aside
        ("bandwidth(pairs=chiplet)", 12),
        ("bandwidth(pairs=package)", 6),
        ("bandwidth(pairs=machine)", 3.4),
        ("chiplets()", 8),
        ("cores()", 32),
    ],
)
def test_pairs_are_classed_by_their_smallest_common_group(text: str, expected: float) -> None:
    found = ProfileReadings(EPYC)(parse_term(text))
    assert isinstance(found, Reading)
    assert found.estimate.value == pytest.approx(expected, rel=0.06)


def test_stream_and_sharing_are_figures_with_intervals() -> None:
    read = ProfileReadings(EPYC)
    for text in ("stream(per=chiplet)", "sharing(op=read, place=local, size=within)"):
        found = read(parse_term(text))
        assert isinstance(found, Reading) and found.estimate.interval
        assert found.estimate.interval.low < found.estimate.value < found.estimate.interval.high


@pytest.mark.parametrize(
    ("name", "profile", "outcome"),
    [
        ("olap-fig3", EPYC, "held"),
        ("olap-fig4", EPYC, "held"),
        ("olap-fig5", EPYC, "held"),
        ("olap-fig10", EPYC, "held"),
        ("olap-tab1", EPYC, "held"),
        ("olap-fig3", profiles.sapphire_rapids(), "did not hold"),
        ("olap-fig4", profiles.sapphire_rapids(), "held"),
        ("olap-fig3", profiles.graviton(), "could not be judged"),
        ("olap-tab1", profiles.graviton(), "did not hold"),
        ("olap-fig5", profiles.graviton(), "could not be judged"),
        ("tuning-tab2", EPYC, "held"),
        ("tuning-tab2", profiles.graviton(), "could not be judged"),
        ("tuning-fig2", churned(one_tc=0.1, all_tc=0.9), "held"),
        ("tuning-fig2", churned(one_tc=0.1, all_tc=0.2), "did not hold"),
        ("tuning-fig2", churned(one_tc=0.5, all_tc=0.9), "did not hold"),
        ("tuning-fig2", churned(one_tc=0.1, all_tc=0.9, je=0.05), "did not hold"),
        ("tuning-fig2", EPYC.model_copy(update={"churn": ()}), "could not be judged"),
    ],
)
def test_the_claims_on_machines_of_each_kind(name: str, profile: Profile, outcome: str) -> None:
    experiment = get(name)
    [verdict] = verdicts(experiment, of_profile(profile, "p.json")).values()
    assert verdict.outcome == outcome, verdict.reasons


def test_sharing_is_compared_on_either_side_of_an_l3() -> None:
    """28.8 MiB by the latencies: of powers of two 8 MiB is within it, and 64 MiB beyond."""
    [write, read] = EPYC.sharing
    assert (write.operation, read.operation) == ("write", "read")
    by_size = {one.vector_bytes: one for one in write.points}
    reads = ProfileReadings(EPYC)
    for size, mib in (("within", 8), ("beyond", 64)):
        found = reads(parse_term(f"sharing(op=write, place=local, size={size})"))
        assert isinstance(found, Reading)
        assert found.estimate.value == by_size[mib << 20].local_gbs.value
    small = write.model_copy(update={"points": write.points[:8]})  # up to 8 KiB
    found = ProfileReadings(EPYC.model_copy(update={"sharing": (small,)}))(
        parse_term("sharing(op=write, place=local, size=within)")
    )
    assert found == "no array within an L3 of 28.8 MiB was measured"
    blind = ProfileReadings(EPYC.model_copy(update={"caches": ()}))
    assert "L3 was not measured" in str(blind(parse_term("sharing(op=write, size=within)")))


@pytest.mark.parametrize("name", ["olap-fig3", "olap-fig4", "olap-tab1"])
@pytest.mark.parametrize("found", ["unsure", None])
def test_nothing_is_judged_by_chiplets_that_are_not_known(name: str, found: str | None) -> None:
    assert EPYC.inference
    unsure = EPYC.inference.model_copy(update={"chiplets": (), "confidence": 0.0})
    profile = EPYC.model_copy(update={"inference": found and unsure})
    [verdict] = verdicts(get(name), of_profile(profile, "p.json")).values()
    assert verdict.outcome == "could not be judged"
    assert re.search("cannot tell the chiplets|no pairs of cores", verdict.reasons[0])


@pytest.mark.parametrize("spread", [1.0, 1.5])
def test_a_spread_as_wide_as_its_figure_decides_nothing(spread: float) -> None:
    matrix = EPYC.core_latency_cas_ns
    assert matrix
    spreads = tuple(tuple(one and spread for one in row) for row in matrix.spreads)
    wide = EPYC.model_copy(
        update={"core_latency_cas_ns": matrix.model_copy(update={"spreads": spreads})}
    )
    [verdict] = verdicts(get("olap-fig3"), of_profile(wide, "p.json")).values()
    assert verdict.outcome == "could not be judged"
    assert verdict.reasons[0].endswith("without an interval")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("latency(pairs=package)", "no pair of cores has a package"),
        ("stream(per=node)", "was not measured"),
        ("sharing(op=write, place=local, size=within)", "was not measured"),
        ("speedup()", "a profile has no speedup"),
        ("churn(malloc=hoard, threads=1)", "was not measured with hoard and 1 thread"),
        ("relative_latency(place=nearest)", "the memory of nodes was not measured"),
    ],
)
def test_what_is_missing_is_said(text: str, words: str) -> None:
    found = ProfileReadings(profiles.graviton(8))(parse_term(text.replace("package", "chiplet")))
    assert isinstance(found, str)
    assert words.replace("package", "chiplet") in found


def test_an_emulated_cpu_means_nothing() -> None:
    with pytest.raises(UsageError, match="emulated"):
        of_profile(profiles.one_cpu(), "p.json")
