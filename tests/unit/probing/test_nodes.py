"""Node matrix and loaded latency: the nodes, the memory used, the parts left out."""

from __future__ import annotations

from atoll.probing.nodes import GAPS, measure_nodes
from atoll.schema.machine import Machine, NumaNode
from atoll.schema.profile import Kind, LoadedCurve, Mode, NodeMatrix
from tests.parts.machines import milan, plain
from tests.parts.probing import GIB, Fields, Script, World
from tests.parts.probing_machines import with_caches


def meminfo(nodes: int, free: int = 64 * GIB) -> dict[str, str]:
    return {
        f"/sys/devices/system/node/node{node}/meminfo": f"Node {node} MemFree: {free // 1024} kB\n"
        for node in range(nodes)
    }


def with_cxl(machine: Machine) -> Machine:
    """A node more, without CPUs."""
    number = len(machine.nodes)
    node = NumaNode(
        index=number, os_index=number, package=None, pus=(), memory_bytes=64 * GIB, subtype="CXL"
    )
    allowed = machine.allowed.model_copy(update={"nodes": (*machine.allowed.nodes, number)})
    return machine.model_copy(update={"nodes": (*machine.nodes, node), "allowed": allowed})


def nodes(
    world: World, mode: Mode = Mode.QUICK
) -> tuple[NodeMatrix | None, tuple[LoadedCurve, ...], set[str], set[str]]:
    with world.run([Kind.NODES], mode) as run, run.measuring(Kind.NODES):
        matrix, loaded = measure_nodes(run)
    codes = {notice.code for notice in run.left_out}
    return matrix, loaded, codes, {notice.code for notice in run.notices}


def test_every_cpu_node_against_every_memory_node_and_memory_without_cpus() -> None:
    world = World(with_cxl(milan(2, 2, 4)), files=meminfo(3))
    matrix, loaded, left_out, notices = nodes(world)
    assert matrix is not None
    assert (matrix.cpu_nodes, matrix.memory_nodes) == ((0, 1), (0, 1, 2))
    assert all(figure is not None for row in matrix.latency_ns for figure in row)
    assert all(figure is not None for row in matrix.bandwidth_gbs for figure in row)
    assert matrix.huge_pages
    assert not left_out and not notices
    # One PU walks, one of each core reads; own memory comes first.
    assert [(each["cpu"], each["node"]) for each in world.asked("chase")][:2] == [(0, 0), (8, 1)]
    assert {tuple(each["cpus"]) for each in world.asked("move")} == {
        tuple(range(8)),
        tuple(range(8, 16)),
    }
    assert [(curve.cpu_node, curve.memory_node, curve.loaders) for curve in loaded] == [
        (0, 0, 7),
        (1, 1, 7),
    ]


def test_siblings_do_not_read_beside_each_other() -> None:
    world = World(plain(4, smt=2))
    nodes(world)
    assert all(len(each["cpus"]) == 4 for each in world.asked("move"))


def test_the_loaded_curve_begins_idle_and_rises() -> None:
    world = World(plain(4))
    _, (curve,), _, _ = nodes(world)
    assert len(curve.points) == len(GAPS[Mode.QUICK])
    moved = [point.bandwidth_gbs for point in curve.points]
    assert moved[0] == 0 and moved == sorted(moved)


def test_full_mode_loads_other_nodes_memory_too() -> None:
    world = World(plain(4, nodes=2), files=meminfo(2))
    _, loaded, _, _ = nodes(world, Mode.FULL)
    assert {(curve.cpu_node, curve.memory_node) for curve in loaded} == {
        (0, 0),
        (1, 1),
        (0, 1),
        (1, 0),
    }


def test_little_memory_is_measured_and_said() -> None:
    world = World(with_caches(milan(1, 2, 4)), files=meminfo(1, 128 << 20))
    matrix, _, _, notices = nodes(world)
    assert matrix is not None and matrix.working_set_bytes <= 48 << 20
    assert notices == {"little-memory"}


def test_a_node_without_memory_to_spare_is_left_out() -> None:
    files = meminfo(2) | {"/sys/devices/system/node/node1/meminfo": "Node 1 MemFree: 1024 kB\n"}
    matrix, _, left_out, _ = nodes(World(plain(2, nodes=2), files=files))
    assert matrix is not None and matrix.memory_nodes == (0,)
    assert left_out == {"memory"}


def test_one_core_has_nobody_to_load_the_memory() -> None:
    matrix, loaded, left_out, _ = nodes(World(plain(1)))
    assert matrix is not None and loaded == ()
    assert left_out == {"one-core"}


def refusing(do: str) -> Script:
    def script(request: Fields) -> Fields | str:
        return {"ok": False, "code": "kernel", "error": "no"} if request["do"] == do else {}

    return script


def test_a_kernel_that_fails_leaves_the_other_figures() -> None:
    matrix, _, left_out, _ = nodes(World(plain(2), script=refusing("chase")))
    assert matrix is not None
    assert matrix.latency_ns == ((None,),) and matrix.bandwidth_gbs[0][0] is not None
    assert left_out == {"kernel"}


def test_what_was_read_wrongly_is_no_figure() -> None:
    world = World(plain(2), script=lambda each: {"verified": False} if each["do"] == "move" else {})
    matrix, _, left_out, _ = nodes(world)
    assert matrix is not None and matrix.bandwidth_gbs == ((None,),)
    assert left_out == {"unverified"}


def test_time_is_kept_on_a_slow_machine() -> None:
    world = World(milan(2, 2, 4), files=meminfo(2), slowness=50)
    _, _, left_out, _ = nodes(world)
    assert "no-time" in left_out
    assert world.host.now_s < 40


def test_no_huge_pages_is_said() -> None:
    small = World(plain(2), script=lambda request: {"huge": False})
    matrix, _, _, notices = nodes(small)
    assert matrix is not None and not matrix.huge_pages
    assert notices == {"no-huge-pages"}
