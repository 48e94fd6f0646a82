"""Charts of rows: no picture is longer than a page, no row is divided or lost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from atoll.report.svg.rows import TALLEST, Row, Tick, fitting, row_charts

AXIS = [Tick(10, "0 s"), Tick(20, "1 s")]
HEIGHTS = st.lists(st.floats(1, TALLEST - 100), max_size=60)


@given(HEIGHTS, st.floats(0, 40))
def test_each_row_is_drawn_once_on_a_picture_with_the_axis(
    heights: list[float], foot: float
) -> None:
    rows = [Row(height, f"<row-{number}>") for number, height in enumerate(heights)]
    charts = row_charts("times", 100, AXIS, rows, Row(foot, "<foot>"))
    drawn = "".join(chart.body for chart in charts)
    assert [drawn.count(row.body) for row in rows] == [1] * len(rows)
    for chart in charts:
        assert chart.height <= TALLEST + 1e-6
        assert all(words in chart.body for words in ("0 s", "1 s", "<foot>"))
    assert sum(heights) <= sum(chart.height for chart in charts)


def test_only_a_chart_of_several_pictures_is_numbered() -> None:
    assert [one.name for one in row_charts("times", 100, AXIS, [Row(20, "")])] == ["times"]
    assert [one.name for one in row_charts("times", 100, AXIS, [Row(400, ""), Row(400, "")])] == [
        "times, part 1 of 2",
        "times, part 2 of 2",
    ]


@given(st.lists(st.integers(), max_size=200), st.floats(5, 60))
def test_a_run_of_items_is_one_row(items: list[int], height: float) -> None:
    runs = list(fitting(items, height))
    assert [item for run in runs for item in run] == items
    for run in runs:
        [_] = row_charts("x", 100, AXIS, [Row(len(run) * height + 30, "")], Row(24, ""))
        assert len(run) * height + 30 + 24 <= TALLEST
