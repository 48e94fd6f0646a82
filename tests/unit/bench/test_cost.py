"""What a bench will take, and the part of a grid that fits into a time."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.bench.axes import Axis, Grid, make_grid, parse_axis
from atoll.bench.cells import Cell, make_cells
from atoll.bench.cost import (
    Known,
    budget_for,
    earlier_results,
    in_words,
    known_costs,
    largest,
    outlook,
)
from atoll.bench.results import Results
from atoll.errors import UsageError
from atoll.schema.plan import Policy
from tests.parts.bench import WIC, WIM, Run, entrant, header, lines, results


def grid(*texts: str, product: bool = False) -> Grid:
    return make_grid(map(parse_axis, texts), product=product)


def enter(grid: Grid) -> list[Cell]:
    return make_cells("spark", grid)


def count(grid: Grid) -> int:
    return len(enter(grid))


def equal(grid: Grid, seconds: float = 1.0) -> dict[str, float]:
    return {cell.label: seconds for cell in enter(grid)}


def earlier(blocks: int = 1, **more: Any) -> list[tuple[Path, Results]]:
    return [(Path("r.jsonl"), results(lines(blocks=blocks), header(**more)))]


BIG = grid("n=2,4,8,16", "memory=bind,interleave", "malloc=system,jemalloc")


def test_a_deployments_cost_is_its_start_its_passes_and_a_rest() -> None:
    known = known_costs(header(), earlier())
    # A start of 5 s, a measured pass of 2.5 and 1.25 s, 3 s of rest.
    assert known.by_label == {"spark/wim": 10.5, "spark/wic": 9.25}
    assert known.passes == 2
    assert known.block_s(header()) == 19.75
    new = entrant("spark", Policy.WIN, 2)
    assert known.block_s(header(WIM, new)) == 10.5 + 9.875, "the engine's mean"
    other = new.model_copy(update={"engine": "trino", "label": "trino/n=2"})
    assert known.block_s(header(WIM, other)) is None


def test_what_ran_elsewhere_or_something_else_says_nothing() -> None:
    for more in ({"machine_id": "m2"}, {"queries": ("q1",)}, {"scale_factor": 1.0}):
        assert known_costs(header(), earlier(**more)).passes == 0


def test_a_deployment_is_known_by_what_it_is_and_not_by_its_label() -> None:
    """Labels leave out what holds for all deployments of a run."""
    renamed = WIM.model_copy(update={"label": "spark/wim/malloc=system"})
    assert known_costs(header(renamed), earlier()).by_label == {renamed.label: 10.5}
    assert WIM.plan and WIC.plan
    small = WIM.plan.model_copy(update={"total_heap_bytes": 1, "slots": WIC.plan.slots[:1]})
    for more in ({"streams": 16}, {"knobs": {"swappiness": "10"}}, {"plan": small}):
        changed = WIM.model_copy(update=more)
        assert known_costs(header(changed), earlier()).by_label == {}, more
    loaded = header(WIM.model_copy(update={"streams": 16}))
    assert known_costs(loaded, earlier()).block_s(loaded) is None, "nor by the engine's mean"


def test_earlier_results_are_those_that_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "broken.jsonl").write_text("{}\n")
    given = results(lines(blocks=1))
    text = "".join(f"{line.model_dump_json()}\n" for line in (given.header, *given.lines))
    (tmp_path / "good.jsonl").write_text(text)
    found = list(earlier_results([tmp_path, tmp_path / "none"]))
    assert [(path.name, one.header) for path, one in found] == [("good.jsonl", given.header)]


def test_the_outlook_before_the_first_start() -> None:
    files = tuple(f"{name}.jsonl" for name in "abcd")
    known, nothing = Known({}, {("spark", 1): 60.0}, 3, files[:1]), Known({}, {}, 0)
    assert Known({}, {}, 7, files).source == (
        "by 7 earlier passes in a.jsonl, b.jsonl, c.jsonl and 1 more"
    )
    five = header(blocks_asked=5)
    assert outlook(five, 0, None, known) == (
        "10 deployments (2 in each of 5 blocks), about 10 min (by 3 earlier passes in a.jsonl)"
    )
    assert outlook(five, 3, None, nothing) == (
        "4 deployments (2 in each of 2 blocks); how long they take is known after the first block"
    )
    assert outlook(five, 5, None, known) == "the file has its 5 blocks; nothing is left to measure"
    limited = header(blocks_asked=None)
    assert outlook(limited, 0, 3600.0, known) == (
        "2 deployments a block, as many blocks as fit into 60 min: about 30 (by 3 earlier passes "
        "in a.jsonl)"
    )
    assert outlook(limited, 0, 60.0, nothing) == (
        "2 deployments a block, as many blocks as fit into 60 s; the first block shows how many"
    )


@given(st.integers(0, 20), st.booleans())
def test_the_largest_grid_that_fits(most: int, product: bool) -> None:
    asked = Grid(BIG.axes, product)
    found = largest(asked, most, equal(asked), enter)
    if found is None:
        assert most < 3 or (product and most < 5)
        return
    assert count(found) <= most
    assert (found == asked) == (count(asked) <= most)
    for axis in found.axes:
        assert set(axis.values) <= set(asked.values(axis.name))
        assert axis.varied, "one value alone would hold for all"


def test_the_longest_axis_is_cut_first() -> None:
    assert count(BIG) == 9
    fitting = largest(BIG, 7, equal(BIG), enter)
    assert fitting and in_words(fitting) == (
        "--axis n=2,4 --axis memory=bind,interleave --axis malloc=system,jemalloc"
    )
    assert largest(BIG, 2, equal(BIG), enter) is None


def test_the_costliest_value_is_cut() -> None:
    cores = grid("cores=1,2,4,8,16")
    costs = {cell.label: 64 / int(cell.values.get("cores", 64)) for cell in enter(cores)}
    fitting = largest(cores, 32, costs, enter)
    assert fitting and in_words(fitting) == "--axis cores=4,8,16"
    del costs["spark/wim, masked/cores=2"]  # unknown: the mean of the others, 18.6 s
    fitting = largest(cores, 32, costs, enter)
    assert fitting and in_words(fitting) == "--axis cores=4,8,16"


def test_values_that_fit_no_deployment_any_more_are_cut_too() -> None:
    def strict(grid: Grid) -> list[Cell]:
        if "16" in grid.values("n"):
            raise UsageError("spark/n=16: 8 cores")
        return enter(grid)

    fitting = largest(BIG, 8, equal(BIG), strict)
    assert fitting and fitting.values("n") == ("2", "4", "8")


def test_a_grid_in_words_is_what_the_command_line_takes() -> None:
    texts = ("knob:irq-affinity=24=0-3,25=4;24=4-7", "knob:x=a,b;", "n=2,4", "policy=wim, wic")
    given = Grid(tuple(map(_axis, texts)), product=True)
    found = shlex.split(in_words(given))
    assert found[-1] == "--product"
    assert [_axis(text) for text in found[1:-1:2]] == list(given.axes)


def _axis(text: str) -> Axis:
    try:
        return parse_axis(text)
    except UsageError:  # a knob of no machine
        return Axis("knob:x", ("a,b",))


def test_a_grid_without_time_for_five_blocks_is_refused_with_one_that_has() -> None:
    budget = budget_for(BIG, 9, 3600.0, enter)
    assert budget is not None
    budget.check(equal(BIG, 80.0))
    with pytest.raises(UsageError) as caught:
        budget.check(equal(BIG, 100.0), source="by 9 earlier passes in r.jsonl")
    assert str(caught.value) == (
        "--within 60 min: 9 deployments take about 15 min a block (by 9 earlier passes in "
        "r.jsonl), and 5 blocks, the least for an interval, need 75 min; the largest grid that "
        "fits is --axis n=2,4 --axis memory=bind,interleave --axis malloc=system,jemalloc"
    )


def test_only_what_cannot_fit_is_refused_before_the_block_ends() -> None:
    """The first deployments are the slow ones here, and the grid fits: 1 + 16 + 8 + ... + 1 s."""
    cores = grid("cores=1,2,4,8,16")
    costs = {cell.label: 16 / int(cell.values.get("cores", 16)) for cell in enter(cores)}
    budget = budget_for(cores, len(costs), 5 * 32.0, enter)
    assert budget is not None
    for done in range(1, len(costs) + 1):
        budget.check(dict(list(costs.items())[:done]))
    budget = budget_for(cores, len(costs), 5 * 20.0, enter)
    assert budget is not None
    with pytest.raises(UsageError) as caught:
        budget.check(dict(list(costs.items())[:3]), kept="grid.jsonl")
    assert "3 of 6 deployments already take about 25 s a block" in str(caught.value)
    assert "need more than 2.1 min; a grid that fits by these is" in str(caught.value)
    assert "grid.jsonl keeps what was measured, so choose another -o" in str(caught.value)


def test_only_a_grid_has_a_budget() -> None:
    assert budget_for(BIG, 9, None, enter) is None
    assert budget_for(grid("policy=wim,wic"), 2, 60.0, enter) is None


def test_the_runner_reports_each_deployment_of_its_first_block() -> None:
    heard: list[str] = []
    run = Run()
    run.bench.check_time = lambda label, elapsed_s: heard.append(label)
    run.bench.run()
    assert heard == ["spark/wim", "spark/wic"]

    def refuse(label: str, elapsed_s: float) -> None:
        raise UsageError("too long")

    run = Run()
    run.bench.check_time = refuse
    with pytest.raises(UsageError, match="too long"):
        run.bench.run()
    assert run.engines.log == ["up spark/wim", "down spark/wim"]
