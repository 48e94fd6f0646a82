"""What a bench will take, and the part of a grid that fits into a time."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.bench.axes import Grid, make_grid, parse_axis
from atoll.bench.cells import make_cells
from atoll.bench.cost import (
    Known,
    budget_for,
    earlier_results,
    in_words,
    known_costs,
    largest,
    outlook,
)
from atoll.errors import UsageError
from tests.parts.bench import WIC, WIM, Run, header, lines, results


def grid(*texts: str, product: bool = False) -> Grid:
    return make_grid(map(parse_axis, texts), product=product)


def count(grid: Grid) -> int:
    return len(make_cells("spark", grid))


BIG = grid("n=2,4,8,16", "memory=bind,interleave", "malloc=system,jemalloc")


def test_a_deployments_cost_is_its_start_its_passes_and_a_rest() -> None:
    known = known_costs(header(), [results(lines(blocks=1))])
    # A start of 5 s, a measured pass of 2.5 and 1.25 s, 3 s of rest.
    assert known.by_label == {"spark/wim": 10.5, "spark/wic": 9.25}
    assert known.passes == 2
    assert known.block_s(header()) == 19.75
    new = WIC.model_copy(update={"label": "spark/n=2"})
    assert known.block_s(header(WIM, new)) == 10.5 + 9.875, "the engine's mean"
    other = new.model_copy(update={"engine": "trino", "label": "trino/n=2"})
    assert known.block_s(header(WIM, other)) is None


def test_what_ran_elsewhere_or_something_else_says_nothing() -> None:
    for more in ({"machine_id": "m2"}, {"queries": ("q1",)}, {"scale_factor": 1.0}):
        assert known_costs(header(), [results(lines(blocks=1), header(**more))]).passes == 0


def test_earlier_results_are_those_that_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "broken.jsonl").write_text("{}\n")
    given = results(lines(blocks=1))
    text = "".join(f"{line.model_dump_json()}\n" for line in (given.header, *given.lines))
    (tmp_path / "good.jsonl").write_text(text)
    assert [one.header for one in earlier_results([tmp_path, tmp_path / "none"])] == [given.header]


def test_the_outlook_before_the_first_start() -> None:
    known, nothing = Known({}, {"spark": 60.0}, 3), Known({}, {}, 0)
    five = header(blocks_asked=5)
    assert outlook(five, 0, None, known) == (
        "10 deployments (2 in each of 5 blocks), about 10 min (by 3 earlier passes)"
    )
    assert outlook(five, 3, None, nothing) == (
        "4 deployments (2 in each of 2 blocks); how long they take is known after the first block"
    )
    limited = header(blocks_asked=None)
    assert outlook(limited, 0, 3600.0, known) == (
        "2 deployments a block, as many blocks as fit into 60 min: about 30 (by 3 earlier passes)"
    )
    assert outlook(limited, 0, 60.0, nothing) == (
        "2 deployments a block, as many blocks as fit into 60 s; the first block shows how many"
    )


@given(st.integers(0, 20), st.booleans())
def test_the_largest_grid_that_fits(most: int, product: bool) -> None:
    asked = Grid(BIG.axes, product)
    found = largest(asked, most, count)
    if found is None:
        assert count(grid("n=2,4")) > most or most < 3
        return
    assert count(found) <= most or found == asked
    for axis in found.axes:
        assert set(axis.values) <= set(asked.values(axis.name))
        assert axis.varied, "one value alone would hold for all"


def test_the_longest_axis_is_cut_first() -> None:
    assert count(BIG) == 9
    fitting = largest(BIG, 7, count)
    assert fitting and in_words(fitting) == (
        "--axis n=2,4 --axis memory=bind,interleave --axis malloc=system,jemalloc"
    )
    assert largest(BIG, 2, count) is None


def test_a_grid_without_time_for_five_blocks_is_refused_with_one_that_has() -> None:
    budget = budget_for(BIG, 9, 3600.0, count)
    assert budget is not None
    budget.check(9, 700.0)
    with pytest.raises(UsageError) as caught:
        budget.check(9, 900.0)
    assert "9 deployments take about 15 min a block" in str(caught.value)
    assert "5 blocks, the least for an interval, need 75 min" in str(caught.value)
    assert "the largest grid that fits is --axis n=2,4 --axis memory=bind" in str(caught.value)
    budget.check(3, 330.0)  # the first deployments may be the slow ones
    with pytest.raises(UsageError, match="no grid fits"):
        budget.check(1, 3600.0)


def test_only_a_grid_has_a_budget() -> None:
    assert budget_for(BIG, 9, None, count) is None
    assert budget_for(grid("policy=wim,wic"), 2, 60.0, count) is None


def test_the_runner_reports_each_deployment_of_its_first_block() -> None:
    heard: list[int] = []
    run = Run()
    run.bench.check_time = lambda done, elapsed_s: heard.append(done)
    run.bench.run()
    assert heard == [1, 2]

    def refuse(done: int, elapsed_s: float) -> None:
        raise UsageError("too long")

    run = Run()
    run.bench.check_time = refuse
    with pytest.raises(UsageError, match="too long"):
        run.bench.run()
    assert run.engines.log == ["up spark/wim", "down spark/wim"]
