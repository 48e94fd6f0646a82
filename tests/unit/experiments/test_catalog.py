"""The files: complete, in order, and true to themselves."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from atoll.bench.axes import make_axis
from atoll.engines import registry
from atoll.engines.transactions import TransactionalEngine
from atoll.errors import UsageError
from atoll.experiments import (
    oltp_readings,
    operator_readings,
    profile_readings,
    readings,
    workload_readings,
)
from atoll.experiments.catalog import FOLDER, experiments, get, read_experiment
from atoll.experiments.claims import (
    Outcome,
    Reading,
    Term,
    judge,
    parse_claim,
    parse_term,
    terms_of,
)
from atoll.experiments.here import Can, Counts
from atoll.experiments.workload_settings import make_settings
from atoll.host.local import LocalHost
from atoll.probing.workload import kernels
from atoll.schema.experiment import Experiment
from atoll.schema.placement import Deployment
from atoll.stats.paired import Estimate, Interval
from atoll.suites import registry as suites
from atoll.suites.selection import select_queries
from tests.parts.kernels import every_kernel
from tests.parts.machines import NodeShape, build

ALL = experiments()
NAMES = [one.name for one in ALL]
NO_ENGINES_OF_OURS = {"singlestore", "greenplum"}
# The papers only draw a number that these claims need.
NOT_BORNE_OUT = {
    *("olap-fig5", "olap-fig7", "olap-fig8", "olap-fig9", "olap-fig10", "olap-fig12", "olap-fig13"),
    *("numa-fig5", "numa-fig6", "numa-fig18"),
    *("tuning-fig2", "tuning-fig3", "tuning-fig4", "tuning-fig5a", "tuning-fig5b", "tuning-fig5c"),
    *("tuning-fig5d", "tuning-fig6", "tuning-fig6j", "tuning-fig7", "tuning-fig8", "tuning-fig9"),
    *("arcas-fig9", "arcas-fig13"),
}
BENCHED = [one for one in ALL if one.bench]


def all_terms(one: Experiment) -> list[Term]:
    return [*(parse_term(each.term) for each in one.published), *claimed(one)]


def claimed(one: Experiment) -> list[Term]:
    return terms_of(parse_claim(one.check.shape))


def test_no_figure_is_there_twice() -> None:
    figures = [(one.paper, one.figure) for one in ALL]
    assert len({*figures}) == len(figures)


@pytest.mark.parametrize("one", BENCHED, ids=lambda one: one.name)
def test_a_bench_has_known_axes_engines_queries_and_terms(one: Experiment) -> None:
    assert one.bench
    counts = Counts(nodes=2, chiplets=4, cores=8)
    for name, words in one.bench.axes.items():
        make_axis(name, counts.numbers(words), option="--axis")
    engines = {*one.bench.engines, *(e for s in one.bench.scales.values() for e in s.engines)}
    assert engines <= {*registry.names()}
    suite = suites.get(one.bench.suite)
    for scale in one.bench.scales.values():
        assert select_queries(scale.queries, suite.query_names)
    for term in all_terms(one):
        assert term.name in readings.NAMES
        elsewhere = {"policy", "machines", "nic"} if one.bench.network else set()
        assert term.values.keys() <= {*one.bench.axes, "query", "over", *elsewhere}, str(term)


@pytest.mark.parametrize("one", [one for one in ALL if one.workload], ids=lambda one: one.name)
def test_workloads_have_known_axes_and_terms(one: Experiment) -> None:
    assert one.workload
    machine = build([[NodeShape(chiplets=(16, 16))]] * 2)
    settings = make_settings(one.workload, machine, every_kernel(one.workload))
    assert len(settings.all) > 1 and not settings.cannot
    for term in all_terms(one):
        assert term.name in workload_readings.NAMES
        assert term.values.keys() <= {*one.workload.axes, "over", "of"}, str(term)


OF_KERNELS = [one for one in ALL if one.workload and one.paper == "arcas-runtime"]


@pytest.mark.parametrize("one", OF_KERNELS, ids=lambda one: one.name)
def test_flags_of_kernels_are_those_of_the_program(one: Experiment) -> None:
    """Of the kernels that this build has."""
    assert one.workload
    known = kernels(LocalHost())
    built = {each.name for each in known.workloads}
    own = tuple(name for name in one.workload.workloads if name in built)
    machine = build([[NodeShape(chiplets=(16, 16))]] * 2)
    for name in own:
        run = one.workload.model_copy(update={"workloads": (name,)})
        settings = make_settings(run, machine, Can(kernels=known))
        for scale in run.scales.values():
            assert scale.flags.get(name) or "size" in run.axes, name
            sized = run.model_copy(
                update={
                    "axes": {**run.axes, "of": ("it",)},
                    "words": {**run.words, "of": {"it": scale.flags.get(name, "")}},
                }
            )
            assert len(make_settings(sized, machine, Can(kernels=known)).pairs) == len(
                settings.pairs
            )


@pytest.mark.parametrize("one", [one for one in ALL if one.oltp], ids=lambda one: one.name)
def test_transactions_have_known_workloads_and_terms(one: Experiment) -> None:
    assert one.oltp
    engine = registry.get(one.oltp.engine)
    assert isinstance(engine, TransactionalEngine)
    assert {*one.oltp.workloads} <= {*engine.workloads}
    for term in all_terms(one):
        assert term.name in oltp_readings.NAMES
        assert term.values.keys() <= {"placement", "cores"}


@pytest.mark.parametrize("one", [one for one in ALL if one.operators], ids=lambda one: one.name)
def test_operators_have_a_known_program_and_terms(one: Experiment) -> None:
    assert one.operators
    assert one.operators.program in registry.placeable_names()
    for term in all_terms(one):
        assert term.name in operator_readings.NAMES
        assert term.values["deployment"] in get_args(Deployment)
        assert ("of" in term.values) == (term.name == "percentile")
        assert term.values.get("of", "50") in operator_readings.PERCENTILES


@pytest.mark.parametrize("one", [one for one in ALL if one.measure], ids=lambda one: one.name)
def test_what_is_measured_has_known_terms(one: Experiment) -> None:
    assert {term.name for term in all_terms(one)} <= profile_readings.NAMES


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.name)
def test_every_engine_of_the_paper_is_ours_or_has_a_word_on_it(one: Experiment) -> None:
    engines = {each.engine for each in one.published if each.engine}
    assert engines & NO_ENGINES_OF_OURS <= one.stands_for.keys()
    ours: set[str] = {*one.bench.engines} if one.bench else set()
    ours |= {*one.workload.workloads} if one.workload else set()
    assert engines - NO_ENGINES_OF_OURS - one.stands_for.keys() <= ours


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.name)
def test_the_papers_own_numbers_bear_its_claim_out(one: Experiment) -> None:
    """As far as the text prints them: a comparison that has no number is passed over."""
    groups = {(each.machine, each.engine) for each in one.published}
    outcomes: set[Outcome] = set()
    for machine, engine in groups:
        shape = one.machines[machine]
        counts = Counts(shape.nodes, shape.chiplets, shape.cores)

        def key(term: Term, counts: Counts = counts) -> tuple[object, ...]:
            values = {name: counts.number(value) for name, value in term.values.items()}
            return term.name, *sorted(values.items())

        known = {
            key(parse_term(each.term)): each.value
            for each in one.published
            if (each.machine, each.engine) == (machine, engine)
        }

        def read(term: Term) -> Reading | str:
            value = known.get(key(term))  # noqa: B023 - called within this turn of the loop
            return (
                "not printed"
                if value is None
                else Reading(Estimate(value, Interval(value, value), 5))
            )

        verdict = judge(parse_claim(one.check.shape), read)
        assert verdict.outcome != "did not hold", (machine, engine, verdict.reasons)
        outcomes.add(verdict.outcome)
    assert (outcomes == {Outcome.UNJUDGED} or not groups) == (one.name in NOT_BORNE_OUT)


@pytest.mark.parametrize("name", ["nothing", "", "../claims", "olap-fig9.toml", 300 * "x", "\0"])
def test_an_unknown_name_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="atoll experiment list"):
        get(name)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('name = "olap-fig9"', 'name = "olap-fig8"', "named 'olap-fig8'"),
        (
            "scaling(policy=wicp, cores=cores) >",
            "scaling(policy=wicp, cores=cores) =",
            "comparison",
        ),
        ("[check]", "[check]\nbogus = 1", "unknown"),
        ('machine = "milan"', 'machine = "rome"', "rome"),
        ("[bench]", "[bench", "line"),
        ("[bench]", "[measure]\nkinds = []\n[bench]", "measure.kinds"),
    ],
)
def test_a_wrong_file_is_named_with_its_fault(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    text = (FOLDER / "olap-fig9.toml").read_text()
    assert old in text
    wrong = tmp_path / "olap-fig9.toml"
    wrong.write_text(text.replace(old, new))
    with pytest.raises(UsageError, match=f"olap-fig9.toml: .*{words}"):
        read_experiment(wrong)


def test_the_order_is_that_of_the_papers() -> None:
    papers = [name.partition("-")[0] for name in NAMES]
    order = ["olap", "numa", "tuning", "arcas", "poster"]
    assert [*dict.fromkeys(papers)] == order
    assert papers == sorted(papers, key=order.index)


def test_the_page_lists_every_experiment(root: Path) -> None:
    text = (root / "docs/experiments.md").read_text()
    rows = [f"| `{one.name}` | {one.figure} | {one.shows} |" for one in ALL]
    listed = [
        line
        for line in text.splitlines()
        if line.startswith(("| `olap-", "| `numa-", "| `tuning-", "| `arcas-", "| `poster-"))
    ]
    assert listed == rows, "\n".join(rows)
