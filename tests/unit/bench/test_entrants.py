"""Who is measured: baselines, coinciding policies, plans from files, streams, what is equal."""

from __future__ import annotations

import pytest

from atoll.bench.axes import Axis, Grid, axes_of, make_axis, make_grid
from atoll.bench.entrants import make_entrants
from atoll.bench.job import schedulers_of
from atoll.bench.sameness import same_deployment, same_place
from atoll.engines.duckdb.engine import DuckDBEngine
from atoll.engines.spark.engine import SparkEngine
from atoll.errors import UsageError
from atoll.plan import make_plan
from atoll.plan.request import Choices
from atoll.schema.plan import HugePages, Malloc, MemoryPolicy, Placement, Policy
from atoll.schema.results import Scheduler
from tests.parts.bench import DUCKDB_TRAITS as DUCKDB
from tests.parts.bench import SPARK_TRAITS as SPARK
from tests.parts.bench_plans import machine
from tests.parts.faults import fails
from tests.parts.machines import GIB, NodeShape, build

BOTH = {"duckdb": ("duckdb", "atoll")}


def grid(product: bool = False, **axes: str) -> Grid:
    """`grid(policy='wim,wic')`."""
    listed = (make_axis(name, text.split(","), option=name) for name, text in axes.items())
    return make_grid(listed, product=product)


def labels(policies: str) -> list[str]:
    found, _ = make_entrants(machine(), [SPARK], (), grid(policy=policies))
    return [entrant.label for entrant in found]


def test_by_default_each_policy_that_differs_is_measured_once() -> None:
    # One node: WIN is WIM with a mask of everything. Two chiplets, four cores: both differ.
    found, notes = make_entrants(machine(), [SPARK], ())
    assert [entrant.label for entrant in found] == ["spark/wim", "spark/wicp", "spark/wic"]
    assert any("spark/win is measured as spark/wim" in note for note in notes)


def test_named_policies_are_measured_as_named() -> None:
    assert labels("wic,wic,wim") == ["spark/wim", "spark/wic"]
    assert labels("wim,wicp,wicp-mixed") == ["spark/wim", "spark/wicp", "spark/wicp-mixed"]


def test_policies_that_coincide_are_one_with_both_names() -> None:
    found, notes = make_entrants(machine(), [SPARK], (), grid(policy="wim,win"))
    assert [entrant.label for entrant in found] == ["spark/wim"]
    assert [cell.label for cell in found[0].cells] == ["spark/wim", "spark/win"]
    assert "spark/win is measured as spark/wim" in notes[-1]


def test_the_baseline_is_added() -> None:
    found, notes = make_entrants(machine(), [SPARK], (), grid(policy="wic"))
    assert [(entrant.label, entrant.baseline) for entrant in found] == [
        ("spark/wim", None),
        ("spark/wic", "spark/wim"),
    ]
    assert any("spark/wim was added" in note for note in notes)


def test_baselines_are_of_the_same_engine() -> None:
    found, _ = make_entrants(machine(), [SPARK, DUCKDB], (), grid(policy="wim,wic"))
    assert {entrant.label: entrant.baseline for entrant in found} == {
        "spark/wim": None,
        "spark/wic": "spark/wim",
        "duckdb/wim": None,
        "duckdb/wic": "duckdb/wim",
    }


def test_what_must_be_equal_is_equal() -> None:
    found, _ = make_entrants(machine(), [SPARK], (), grid(policy="wim,win,wicp,wic,wicp-mixed"))
    for name in ("total_threads", "total_heap_bytes", "shuffle_partitions"):
        assert len({getattr(entrant.plan, name) for entrant in found}) == 1, name
    assert {entrant.streams for entrant in found} == {1}


def test_chosen_settings_are_of_all_and_places_not_of_the_baseline() -> None:
    choices = Choices(
        placement=Placement.DENSE,
        memory=MemoryPolicy.LOCAL,
        malloc=Malloc.JEMALLOC,
        thp=HugePages.NEVER,
        heap_bytes=GIB,
    )
    traits = SPARK.model_copy(update={"task_threads": SparkEngine().traits.task_threads})
    axes, rest = axes_of(choices)
    assert rest == {"heap_bytes": GIB}
    given = make_grid([Axis("policy", ("wic",)), *axes])
    found, _ = make_entrants(machine(), [traits], (), given, choices=rest)
    assert [one.label for one in found] == [
        "spark/wim",
        "spark/wic/memory=local/placement=dense",
    ]
    wim, wic = (entrant.plan for entrant in found)
    assert wim is not None and wic is not None
    for plan in (wim, wic):
        assert (plan.malloc, plan.thp) == (Malloc.JEMALLOC, HugePages.NEVER)
        assert {slot.heap_bytes for slot in plan.slots} == {GIB}
    assert (wim.placement, wic.placement) == (Placement.NONE, Placement.DENSE)
    memory = [plan.slots[0].memory_policy for plan in (wim, wic)]
    assert memory == [MemoryPolicy.FIRST_TOUCH, MemoryPolicy.LOCAL]
    found, _ = make_entrants(machine(), (), [(wic, traits)])
    base = found[0].plan
    assert base is not None and (base.malloc, base.thp) == (wic.malloc, wic.thp)
    assert not same_deployment(base, base.model_copy(update={"malloc": Malloc.SYSTEM}), machine())


def test_several_servers_get_as_many_streams_everywhere() -> None:
    found, notes = make_entrants(machine(), [DUCKDB], (), grid(policy="wim,wic"))
    assert {entrant.streams for entrant in found} == {4}
    assert any("4 concurrent query streams" in note for note in notes)


def test_an_engine_with_one_thread_per_query_gets_as_many_streams_as_threads() -> None:
    # Else WIM, one server of four threads, would be measured with threads that nobody uses.
    one_thread = DUCKDB.model_copy(update={"name": "mariadb", "parallel_query": False})
    for policies in ("wim", "wim,wicp", "wim,wic"):
        found, notes = make_entrants(machine(), [one_thread], (), grid(policy=policies))
        assert {entrant.streams for entrant in found} == {4}
        assert any("a query runs on one thread" in note for note in notes)
        assert any("a full copy" in note for note in notes) == (policies != "wim")


def test_as_many_streams_as_are_asked_for() -> None:
    found, notes = make_entrants(machine(), [SPARK], (), grid(policy="wim,wic", streams="3"))
    assert {entrant.streams for entrant in found} == {3}
    assert any("3 concurrent query streams in every deployment" in note for note in notes)
    found, notes = make_entrants(machine(), [SPARK], (), grid(policy="wim", streams="1"))
    assert notes == ()
    one_thread = DUCKDB.model_copy(update={"name": "mariadb", "parallel_query": False})
    found, notes = make_entrants(machine(), [one_thread], (), grid(policy="wim", streams="2"))
    assert {entrant.streams for entrant in found} == {2}
    assert any("2 streams leave some of 4 threads idle" in note for note in notes)
    with fails(UsageError, option="--streams 2", engine="duckdb", servers=4):
        make_entrants(machine(), [DUCKDB], (), grid(policy="wim,wic", streams="2"))


def test_a_plan_from_a_file_brings_its_baseline() -> None:
    plan = make_plan(machine(), SPARK, "wicp", count=3)
    found, notes = make_entrants(machine(), (), [(plan, SPARK)])
    assert [entrant.label for entrant in found] == ["spark/wim", "spark/wicp"]
    assert found[0].plan is not None
    assert found[0].plan.total_heap_bytes <= plan.total_heap_bytes
    assert any("was added" in note for note in notes)


def test_a_plan_beside_its_engine_gets_a_label_of_its_own() -> None:
    plan = make_plan(machine(), SPARK, "wic")
    found, _ = make_entrants(
        machine(), [SPARK], [(plan, SPARK), (plan, SPARK)], grid(policy="wim,wic")
    )
    assert [entrant.label for entrant in found] == [
        "spark/wim",
        "spark/wic",
        "spark/wic-2",
        "spark/wic-3",
    ]
    other = make_plan(machine(), SPARK, "wic", malloc=Malloc.JEMALLOC, thp=HugePages.NEVER)
    found, notes = make_entrants(machine(), (), [(other, SPARK), (plan, SPARK)])
    labels = ["spark/wim/jemalloc/no-thp", "spark/wic/jemalloc/no-thp", "spark/wic"]
    assert [entrant.label for entrant in found] == labels
    assert notes[0].startswith("spark/wim/jemalloc/no-thp was added")


def test_what_plans_warn_of_is_said_once_with_their_names() -> None:
    plan = make_plan(machine(), SPARK, "wic")
    warned = plan.model_copy(update={"warnings": ("one heap was cut",)})
    _, notes = make_entrants(
        machine(), [SPARK], [(warned, SPARK), (warned, SPARK)], grid(policy="wim")
    )
    assert [note for note in notes if "heap was cut" in note] == [
        "spark/wic, spark/wic-2: one heap was cut"
    ]


def test_nothing_is_warned_of_that_the_comparison_has_made_equal() -> None:
    heavy = SPARK.model_copy(update={"overhead_bytes": 3 << 30})
    small = build([[NodeShape((), 4, 17)]])
    assert "total heap is smaller" in " ".join(make_plan(small, heavy, "wic").warnings)
    found, notes = make_entrants(small, [heavy], (), grid(policy="wim,wic"))
    assert len({entrant.plan.total_heap_bytes for entrant in found if entrant.plan}) == 1
    assert not [note for note in notes if "total heap" in note]


def test_a_plan_of_the_baseline_alone() -> None:
    plan = make_plan(machine(), SPARK, "wim")
    found, _ = make_entrants(machine(), (), [(plan, SPARK)])
    assert [(entrant.label, entrant.baseline) for entrant in found] == [("spark/wim", None)]


def test_an_engine_twice_or_an_unknown_policy_is_refused() -> None:
    with fails(UsageError, engine="spark"):
        make_entrants(machine(), [SPARK, SPARK], ())
    with fails(UsageError, option="policy", value="nonsense"):
        make_entrants(machine(), [SPARK], (), grid(policy="nonsense"))


def test_both_schedulers_stand_side_by_side_and_differ_in_nothing_else() -> None:
    found, notes = make_entrants(
        machine(),
        [DUCKDB],
        (),
        grid(True, policy="wim,wic", scheduler="duckdb,atoll"),
        schedulers=BOTH,
    )
    assert [(one.label, one.scheduler, one.baseline) for one in found] == [
        ("duckdb/wim", "duckdb", None),
        ("duckdb/wim/atoll", "atoll", "duckdb/wim"),
        ("duckdb/wic", "duckdb", "duckdb/wim"),
        ("duckdb/wic/atoll", "atoll", "duckdb/wic"),
    ]
    assert found[0].plan == found[1].plan and found[2].plan == found[3].plan
    assert {one.streams for one in found} == {4}
    assert any("is the same policy under the engine's own" in note for note in notes)


@pytest.mark.parametrize(("scheduler", "end"), [("duckdb", ""), ("atoll", "/atoll")])
def test_one_scheduler_has_its_baseline_under_itself(scheduler: Scheduler, end: str) -> None:
    found, notes = make_entrants(
        machine(), [DUCKDB], (), grid(policy="wim,wic", scheduler=scheduler), schedulers=BOTH
    )
    assert [(one.label, one.scheduler, one.baseline) for one in found] == [
        (f"duckdb/wim{end}", scheduler, None),
        (f"duckdb/wic{end}", scheduler, f"duckdb/wim{end}"),
    ]
    assert not any("scheduler" in note for note in notes)


def test_a_plan_from_a_file_is_measured_under_every_scheduler() -> None:
    plan = make_plan(machine(), DUCKDB, "wic")
    found, _ = make_entrants(
        machine(), (), [(plan, DUCKDB)], grid(scheduler="duckdb,atoll"), schedulers=BOTH
    )
    assert [one.baseline for one in found] == [
        None,
        "duckdb/wim",
        "duckdb/wim",
        "duckdb/wic",
    ]
    assert [one.label for one in found] == [
        "duckdb/wim",
        "duckdb/wim/atoll",
        "duckdb/wic",
        "duckdb/wic/atoll",
    ]


def test_which_schedulers_an_engine_is_measured_under() -> None:
    duckdb, spark = DuckDBEngine(), SparkEngine()
    assert schedulers_of(duckdb, ()) == ("duckdb", "atoll")
    assert schedulers_of(duckdb, ("atoll",)) == ("duckdb", "atoll")
    assert schedulers_of(spark, ()) == ()
    with fails(UsageError, engine="spark", option="--scheduler"):
        schedulers_of(spark, ("atoll",))
    with fails(UsageError, name="cfs", known="duckdb, atoll"):
        schedulers_of(duckdb, ("atoll", "cfs"))


def test_a_choice_that_no_policy_can_carry_out_is_refused() -> None:
    traits = SPARK.model_copy(update={"task_threads": "nothing shows which run queries"})
    with pytest.raises(UsageError, match="nothing shows which run queries"):
        make_entrants(machine(), [traits], (), grid(placement="dense"))


def test_same_deployment() -> None:
    plans = {policy: make_plan(machine(), SPARK, policy.value) for policy in Policy}
    assert same_deployment(plans[Policy.WIM], plans[Policy.WIN], machine())
    assert not same_deployment(plans[Policy.WIM], plans[Policy.WIC], machine())
    assert not same_deployment(plans[Policy.WICP], plans[Policy.WICP_MIXED], machine())
    smaller = make_plan(machine(), SPARK, "wicp", heap_bytes=GIB)
    assert same_place(plans[Policy.WICP], smaller, machine())
    assert not same_deployment(plans[Policy.WICP], smaller, machine())
