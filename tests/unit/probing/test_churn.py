"""Allocator churn: one probe per figure, and no figure for a malloc that was not called."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from atoll.host.local import LocalHost
from atoll.host.processes import Finished
from atoll.probing.allocators import Malloc, loadable_mallocs
from atoll.probing.churn import is_reached, measure_churn, thread_counts
from atoll.schema.profile import ChurnRun, Kind, Mode
from tests.parts.exec import EXEC
from tests.parts.fake_host import FakeHost
from tests.parts.machines import plain
from tests.parts.probing import World

JEMALLOC = "/usr/lib/libjemalloc.so.2"
LISTED = f"jemalloc\t{JEMALLOC}\n"


def listing(text: str, status: int = 0) -> Callable[[Sequence[str]], Finished]:
    return lambda argv: Finished(status, text, "no list")


def churn(
    world: World, text: str = LISTED, mode: Mode = Mode.QUICK
) -> tuple[tuple[ChurnRun, ...], list[str]]:
    world.host._on_run = listing(text)
    with world.run([Kind.CHURN], mode) as run, run.measuring(Kind.CHURN):
        found = measure_churn(run, launcher="/bin/atoll-exec")
    assert all(probe.closed for probe in world.probes)
    return found, [notice.code for notice in (*run.left_out, *run.notices)]


def reaching(world: World) -> World:
    """As the loader does: each probe's malloc is what was preloaded into it."""

    def script(request: dict[str, object]) -> dict[str, object]:
        library = world.probes[-1].env.get("LD_PRELOAD", "/lib/libc.so.6") if world.probes else ""
        return {"allocator_reached": library} if request["do"] == "churn" else {}

    world.script = script
    return world


def test_each_malloc_by_one_and_all_threads_each_in_a_fresh_probe() -> None:
    world = reaching(World(plain(4)))
    found, codes = churn(world)
    assert [(run.allocator, run.library, run.threads) for run in found] == [
        ("system", "", 1),
        ("system", "", 4),
        ("jemalloc", JEMALLOC, 1),
        ("jemalloc", JEMALLOC, 4),
    ]
    assert codes == []
    assert len(world.probes) == 1 + len(found)
    assert found[1].operations == 4 * found[0].operations
    assert all(run.overhead == pytest.approx(1.25) for run in found)
    assert all(run.seconds.value == pytest.approx(1e-3) for run in found)


def test_a_preload_that_did_not_take_is_told_and_not_counted() -> None:
    found, codes = churn(World(plain(2)))
    assert {run.allocator for run in found} == {"system"}
    assert codes == ["preload-failed"]


def test_no_other_malloc_is_said() -> None:
    found, codes = churn(World(plain(2)), "")
    assert {run.allocator for run in found} == {"system"}
    assert codes == ["system-malloc-only"]


def test_without_atoll_exec_it_is_left_out() -> None:
    world = World(plain(2))
    with world.run([Kind.CHURN]) as run, run.measuring(Kind.CHURN):
        assert measure_churn(run, launcher="/nowhere/atoll-exec") == ()
    assert [notice.code for notice in run.left_out] == ["no-launcher"]


def test_a_probe_that_dies_of_a_malloc_leaves_the_others() -> None:
    world = World(plain(2))

    def script(request: dict[str, object]) -> dict[str, object] | str:
        if request["do"] == "churn" and "LD_PRELOAD" in world.probes[-1].env:
            return "die"
        return {}

    world.script = script
    found, codes = churn(world)
    assert {run.allocator for run in found} == {"system"} and codes == ["died"]


def test_time_is_kept() -> None:
    world = reaching(World(plain(8), slowness=100))
    _, codes = churn(world, mode=Mode.QUICK)
    assert "no-time" in codes or world.host.now_s < 30
    assert world.host.now_s < 40


@pytest.mark.parametrize(("cores", "full"), [(1, [1]), (6, [1, 2, 4, 6]), (8, [1, 2, 4, 8])])
def test_thread_counts(cores: int, full: list[int]) -> None:
    assert thread_counts(cores, Mode.FULL) == full
    assert thread_counts(cores, Mode.QUICK) == sorted({1, cores})


@pytest.mark.parametrize(
    ("library", "reached", "right"),
    [
        ("", "/lib/x86_64-linux-gnu/libc.so.6", True),
        ("", JEMALLOC, False),
        ("", "", False),
        (JEMALLOC, JEMALLOC, True),
        (JEMALLOC, "/lib/x86_64-linux-gnu/libc.so.6", False),
    ],
)
def test_what_is_reached(library: str, reached: str, right: bool) -> None:
    assert is_reached(Malloc("it", library), reached) is right


def test_a_launcher_that_fails_or_hangs_is_an_os_error() -> None:
    with pytest.raises(OSError, match="no list"):
        loadable_mallocs(FakeHost({}, on_run=listing("", 125)), "/bin/atoll-exec")

    def hangs(argv: Sequence[str]) -> Finished:
        raise TimeoutError

    with pytest.raises(OSError, match="did not answer"):
        loadable_mallocs(FakeHost({}, on_run=hangs), "/bin/atoll-exec")


def test_the_real_list_begins_with_the_c_librarys_own() -> None:
    found = loadable_mallocs(LocalHost(), EXEC)
    assert found[0] == Malloc("system", "")
    assert all(each.library.startswith("/") for each in found[1:])
