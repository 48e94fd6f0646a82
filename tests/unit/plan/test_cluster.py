"""One engine over several machines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from atoll.errors import UsageError
from atoll.plan import make_plan
from atoll.plan.cluster import over_machines
from atoll.plan.network import Place
from atoll.schema.base import parse
from atoll.schema.plan import Plan
from tests.parts.faults import fails
from tests.parts.machines import NodeShape, build
from tests.parts.plan import DISTRIBUTED

LISTENING = DISTRIBUTED.model_copy(update={"listens": True, "shuffles": True})


def planned(place: str | None, chiplets: tuple[int, ...] = (2, 2), policy: str = "wicp") -> Plan:
    listen = (Place(place, None),) if place else ()
    return make_plan(build([[NodeShape(chiplets)]]), LISTENING, policy, listen=listen)


@given(shapes=st.lists(st.lists(st.sampled_from([1, 2, 4]), min_size=1, max_size=4), min_size=2,
                       max_size=5))  # fmt: skip
def test_the_parts_of_a_cluster_agree_and_have_one_head(shapes: list[list[int]]) -> None:
    alone = {
        f"host{number}": planned(f"10.0.0.{number + 1}", tuple(shape))
        for number, shape in enumerate(shapes)
    }
    parts = over_machines(alone, 7077)
    assert list(parts) == list(alone)
    clusters = [part.cluster for part in parts.values()]
    assert all(clusters)
    assert [one.leads for one in clusters if one] == [True] + [False] * (len(shapes) - 1)
    shared = {one.model_copy(update={"leads": True}) for one in clusters if one}
    (cluster,) = shared
    slots = [slot for plan in alone.values() for slot in plan.slots]
    assert cluster.head == "10.0.0.1:7077"
    assert (cluster.machines, cluster.instances) == (len(shapes), len(slots))
    assert cluster.threads == sum(slot.threads for slot in slots)
    assert cluster.heap_bytes == min(slot.heap_bytes for slot in slots)
    for name, part in parts.items():
        assert part.slots == alone[name].slots
        assert part.shuffle_partitions == 2 * cluster.threads
        assert (part.all_instances, part.all_threads) == (len(slots), cluster.threads)
        assert part.all_heap_bytes == len(slots) * cluster.heap_bytes
        assert alone[name].all_heap_bytes == alone[name].total_heap_bytes
        assert part.joining == (len(slots) if name == "host0" else 0)
        assert (part.coordinator is None) == (name != "host0")
        assert parse(Plan, part.model_dump_json(), where="itself") == part


def test_what_cannot_be_one_cluster_is_refused() -> None:
    first, second = planned("10.0.0.1"), planned("10.0.0.2")
    other = second.model_copy(update={"engine": "other"})
    headless = first.model_copy(update={"coordinator": None})
    with fails(UsageError):
        over_machines({"alpha": first}, 1)
    with fails(UsageError, host="beta", engine="other", head="alpha"):
        over_machines({"alpha": first, "beta": other}, 1)
    with fails(UsageError, host="beta"):
        over_machines({"alpha": first, "beta": planned(None)}, 1)
    with fails(UsageError, host="alpha"):
        over_machines({"alpha": headless, "beta": second}, 1)
    with fails(UsageError, masked="beta", other="alpha"):
        over_machines({"alpha": planned("10.0.0.1", policy="wim"), "beta": second}, 1)
    with fails(UsageError):
        over_machines(over_machines({"alpha": first, "beta": second}, 1), 1)


def test_an_edited_part_that_contradicts_itself_is_refused() -> None:
    head, other = over_machines({"a": planned("10.0.0.1"), "b": planned("10.0.0.2")}, 7077).values()
    on_loopback = tuple(slot.model_copy(update={"address": None}) for slot in other.slots)
    cluster = head.cluster
    assert cluster
    edits: list[tuple[Plan, str, object]] = [
        (head, "coordinator", None),
        (other, "coordinator", head.coordinator),
        (other, "slots", on_loopback),
        (other, "cluster", cluster.model_copy(update={"leads": False, "address": "999.1.1.1"})),
        (other, "cluster", cluster.model_copy(update={"leads": False, "heap_bytes": 1 << 50})),
    ]
    for part, field, value in edits:
        text = part.model_copy(update={field: value}).model_dump_json()
        with fails(UsageError, file="plan.json"):
            parse(Plan, text, where="plan.json")
