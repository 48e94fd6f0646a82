"""Local and distributed cache: the same threads twice, sizes where caches end, the crossing."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from atoll.probing.sharing import FIRST_BYTES, measure_sharing, spread_over
from atoll.schema.profile import Kind, Mode, Sharing
from tests.parts.machines import milan, plain
from tests.parts.probing import Fields, World, spread


def sharing(world: World, mode: Mode = Mode.QUICK) -> tuple[tuple[Sharing, ...], list[str]]:
    with world.run([Kind.SHARING], mode) as run, run.measuring(Kind.SHARING):
        run.chiplets = tuple(chiplet.pus for chiplet in world.machine.chiplets)
        found = measure_sharing(run)
    return found, [notice.code for notice in (*run.left_out, *run.notices)]


def papers_machine(request: Fields) -> Fields:
    """0.6 of the local rate until one L3 is full, then 2.5 of it."""
    if request["do"] != "vector":
        return {}
    local = max(request["cpus"]) < 4
    if request["bytes"] <= 32 << 20:
        return {"gbs": spread(100.0 if local else 60.0)}
    return {"gbs": spread(20.0 if local else 50.0)}


def test_the_same_threads_on_one_chiplet_and_on_all_of_the_node() -> None:
    world = World(milan(2, 4, 4), script=papers_machine)
    found, codes = sharing(world)
    assert [each.operation for each in found] == ["write", "read"] and codes == []
    for each in found:
        assert each.threads == 4
        assert each.local_pus == (0, 1, 2, 3) and each.distributed_pus == (0, 4, 8, 12)
        sizes = [point.vector_bytes for point in each.points]
        assert sizes[0] == FIRST_BYTES and sizes == sorted(sizes) and sizes[-1] > 256 << 20
        assert each.crossing_bytes is not None and 15 << 20 < each.crossing_bytes < 70 << 20


def test_full_mode_goes_on_to_memory() -> None:
    found, _ = sharing(World(milan(1, 2, 4)), Mode.FULL)
    assert found[0].points[-1].vector_bytes > 1 << 30


def test_the_two_take_turns() -> None:
    world = World(milan(1, 2, 2))
    sharing(world)
    turns = [tuple(each["cpus"]) for each in world.asked("vector")]
    assert turns == [(0, 1), (0, 2)] * (len(turns) // 2)


def test_one_chiplet_a_node_is_spread_over_the_package() -> None:
    found, _ = sharing(World(milan(1, 4, 2, nodes_per_package=4)))
    assert found and set(found[0].distributed_pus) == {0, 2}


def test_without_two_chiplets_it_is_left_out() -> None:
    found, codes = sharing(World(plain(4)))
    assert found == () and codes == ["few-chiplets"]


def test_wrong_data_are_no_figure() -> None:
    world = World(
        milan(1, 2, 2), script=lambda each: {"verified": False} if each["do"] == "vector" else {}
    )
    found, codes = sharing(world)
    assert found == () and set(codes) == {"unverified"}


def test_time_is_kept() -> None:
    world = World(milan(1, 2, 2), script=lambda each: {"wall_ns": 10**9})
    found, codes = sharing(world)
    assert codes == ["no-time"] and world.host.now_s < 40
    sizes = [point.vector_bytes for point in found[0].points]
    assert sizes[0] == FIRST_BYTES


@given(st.lists(st.integers(1, 8), min_size=2, max_size=8))
def test_spread_is_even_and_as_many(sizes: list[int]) -> None:
    """Chiplets can be unequal."""
    bounds = [sum(sizes[:index]) for index in range(len(sizes) + 1)]
    chiplets = [tuple(range(a, b)) for a, b in pairwise(bounds)]
    found = spread_over([chiplets])
    assert found is not None
    assert len(found.local) == len(found.distributed) == max(sizes)
    assert found.local in chiplets
    held = [len(set(chiplet).intersection(found.distributed)) for chiplet in chiplets]
    # As even as the smaller ones let it be.
    assert all(
        count >= max(held) - 1 or count == size for count, size in zip(held, sizes, strict=True)
    )
