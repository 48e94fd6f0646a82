"""Every bench of one machine, as if a large machine had measured it: each claim finds its terms."""

from __future__ import annotations

from dataclasses import replace

import pytest

from atoll.bench.entrants import make_entrants
from atoll.bench.results import Results
from atoll.engines import registry
from atoll.errors import UsageError
from atoll.experiments.catalog import experiments, get
from atoll.experiments.claims import judge, parse_claim
from atoll.experiments.here import Can, possible
from atoll.experiments.ours import of_results, verdicts
from atoll.experiments.outlook import Outlook, outlook
from atoll.experiments.planned import unjudged
from atoll.plan import machine_id
from atoll.schema.experiment import Experiment
from atoll.schema.plan import EngineTraits
from atoll.schema.results import AxisValues, Entrant, QueryTime
from tests.parts.bench import header, lines, results
from tests.parts.machines import NodeShape, build

LARGE = build(
    [[NodeShape(chiplets=(4,) * 4, memory_gib=512)] for _ in range(2)], smt=2, l3_bytes=32 << 20
)
BENCHED = [one for one in experiments() if one.bench and one.bench.network is None]
COUNTED = {"numa-tab1", "olap-tab2"}  # counters of the machine; memory, which `lines` has not
SAME = {"numa-fig17", "numa-fig18"}  # no difference is what they claim
# By the papers, the fastest first; what is not named is one instance on all of the machine.
ORDER = ("wicp", "wicp-mixed", "win", "spmwin", "wic", "wim")


def seconds_of(entrant: Entrant, one: Experiment, *, reverse: bool) -> float:
    """Shorter in the papers' order, and with more cores; the best number is the paper's."""
    values = entrant.cells[0].values
    rank = ORDER.index(values.get("policy", "wim"))
    if "n" in values and entrant.plan:
        best = {"olap-fig12": 8, "numa-fig5": 2}[one.name]
        rank = 1 + abs(best.bit_length() - len(entrant.plan.slots).bit_length())
    rank += values.get("memory", "bind") != "bind"
    rank -= values.get("malloc") == "tbbmalloc"
    rank -= values.get("thp") == "never"
    rank -= values.get("scheduler") == "atoll"
    rank -= values.get("knob:numa-balancing") == "0"
    slow = 1 / 1.3**rank if reverse else 1.3**rank
    return slow * (32 if values.get("cores") == "1" else 1)


def measured(one: Experiment, engines: list[EngineTraits], *, reverse: bool = False) -> Results:
    """Every deployment takes a time in the papers' order, or in the reverse one."""
    assert one.bench
    grid = possible(one.bench, LARGE, engines).grid
    knobs = {"numa-balancing": "1"} if "knob:numa-balancing" in one.bench.axes else {}
    entrants, _ = make_entrants(LARGE, engines, (), grid, knobs=knobs)
    same = one.name in SAME
    seconds = {
        each.label: 1.0 if same else seconds_of(each, one, reverse=reverse) for each in entrants
    }
    head = header(
        *entrants,
        suite=one.bench.suite,
        machine=LARGE,
        machine_id=machine_id(LARGE),
        axes=tuple(AxisValues(name=axis.name, values=axis.values) for axis in grid.varied),
    )
    found = lines(entrants, 6, seconds)
    if one.name == "numa-fig10":  # its Q6 gains nothing
        found = [
            each.model_copy(update={"seconds": 1.0})
            if isinstance(each, QueryTime) and each.query == "q6"
            else each
            for each in found
        ]
    named = {"tuning-fig9": {"q1": "q5", "q6": "q18"}, "arcas-fig12": {"q1": "q1", "q6": "q21"}}
    if of_it := named.get(one.name):  # it names queries
        head = head.model_copy(update={"queries": tuple(of_it.values())})
        found = [
            each.model_copy(update={"query": of_it[each.query]})
            if isinstance(each, QueryTime)
            else each
            for each in found
        ]
    return results(found, head)


@pytest.mark.parametrize("one", BENCHED, ids=lambda one: one.name)
def test_each_claim_holds_in_the_papers_order_and_not_in_the_reverse(one: Experiment) -> None:
    assert one.bench
    for scale in one.bench.scales.values():
        engines = [registry.get(name).traits for name in scale.engines or one.bench.engines]
        can = possible(one.bench, LARGE, engines)
        assert unjudged(one, one.bench, scale, LARGE, can, {}) == []
        for reverse, outcome in ((False, "held"), (True, "did not hold")):
            results = measured(one, engines, reverse=reverse)
            found = verdicts(one, of_results(one, results, "r.jsonl"))
            assert [*found] == [each.name for each in engines]
            if one.name in COUNTED:
                outcome = "could not be judged"
            elif one.name in SAME:
                outcome = "held"
            for engine, verdict in found.items():
                assert verdict.outcome == outcome, (engine, verdict.reasons)


def test_what_no_times_could_decide_is_said_before() -> None:
    node = build([[NodeShape(chiplets=(4, 4))]])  # WIN is WIM, WICP is not
    spark = [registry.get("spark").traits]

    uncounted: dict[str, str] = {}

    def lost(name: str, without: str = "-") -> list[str]:
        one = get(name)
        assert one.bench
        can = possible(one.bench, node, spark)
        kept = tuple(each for each in can.entrants if without not in each.label)
        can = replace(can, entrants=kept)
        return unjudged(one, one.bench, one.bench.scales["smoke"], node, can, uncounted)

    assert lost("olap-fig9") == lost("olap-tab2") == lost("numa-tab1") == []
    assert lost("olap-fig12", without="n=8") == [
        "spark: speedup(n=chiplets) > speedup(n=cores): no deployment has n=8"
    ]
    uncounted["remote"] = "nothing counts it"
    with pytest.raises(UsageError, match=r"spark: remote\(\) > 50: nothing counts it"):
        lost("numa-tab1")
    with pytest.raises(UsageError, match="numa-fig9 cannot be judged here: spark: "):
        lost("numa-fig9")


def test_a_claim_of_what_is_not_recorded_says_so() -> None:
    one = next(one for one in BENCHED if one.name == "numa-tab1")
    ours = of_results(one, measured(one, [registry.get("spark").traits]), "r.jsonl")
    verdict = judge(parse_claim(one.check.shape), ours.readings["spark"])
    assert "was not counted" in verdict.reasons[0]


def test_a_list_says_what_a_machine_makes_of_each_and_what_it_costs() -> None:
    one_node = build([[NodeShape(chiplets=(4, 4), memory_gib=64)]])

    def of(one: Experiment, **uncounted: str) -> Outlook:
        return outlook(
            one,
            one_node,
            lambda engine: registry.get(engine).traits,
            uncounted,
            lambda run: {"smoke": 2.0},
            Can(()),
        )

    assert of(get("numa-fig7")) == Outlook("no", ("it needs 2 NUMA nodes, and this machine has 1",))
    blocks, engines, deployments = 5, 3, 4  # n=1 is WIM; 2, 4 and 8
    assert of(get("olap-fig12")) == Outlook(
        "yes",
        (),
        {
            "smoke": deployments * blocks * 3,
            "small": engines * deployments * blocks * 150,
            "paper": None,
        },
    )
    bench = get("olap-fig12").bench
    assert bench
    more = bench.model_copy(update={"axes": {"n": ("2", "16")}})
    part = of(get("olap-fig12").model_copy(update={"bench": more}))
    assert part.here == "in part" and part.why[0].startswith("n=16: ") and part.cost_s
    assert of(get("olap-fig3")) == Outlook("yes", (), {"smoke": 2.0})
    assert of(get("olap-fig9"), remote="nothing counts it").here == "yes"
    assert "nothing counts it" in of(get("numa-tab1"), remote="nothing counts it").why
