"""Atoll's scheduler in a bench: when the measured pass was, what was true in it, how it looks."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from atoll.bench.analysis import summarise
from atoll.bench.results import Results
from atoll.bench.spreads import courses, spread_summary
from atoll.report.bench import tables, verdicts
from atoll.report.bench.charts import entrant_colours
from atoll.report.bench.render import render
from atoll.report.bench.spread_chart import spread_charts, staircase
from atoll.report.bench.text import bench_text
from atoll.schema.plan import Policy
from atoll.schema.results import Line, PassDone, SchedulerState
from atoll.schema.summary import SpreadSummary
from tests.parts.bench import (
    ATOLL,
    DUCKDB,
    entrant,
    header,
    lines,
    ran,
    results,
    scheduler_state,
)

# Opened at 0, measured from 6 to 10: on one chiplet, from 5 on two, from 7 on one.
STATE = scheduler_state((0.0, 1), (5.0, 2), (7.0, 1))


def done(block: int, seconds: float = 4.0) -> PassDone:
    return PassDone(block=block, label=ATOLL.label, seconds=seconds)


def compared(blocks: int = 6, *states: SchedulerState) -> Results:
    """DuckDB's scheduler against Atoll's, and what the servers of the latter told."""
    given: list[Line] = list(lines((DUCKDB, ATOLL), blocks, {ATOLL.label: 3.2})[:-1])
    given += [
        ran(block, ATOLL.label, state, slot)
        for block in range(blocks)
        for slot, state in enumerate(states or (STATE,))
    ]
    return results(given, header(DUCKDB, ATOLL, blocks_asked=blocks))


def test_time_runs_from_the_start_of_the_measured_pass() -> None:
    (course,) = courses([ran(3, ATOLL.label, STATE, 1), done(3)])
    assert (course.label, course.block, course.slot, course.chiplets) == (ATOLL.label, 3, 1, 2)
    assert [(one.begin_s, one.end_s, one.spread, one.reason) for one in course.spells] == [
        (-6.0, -1.0, 1, "reason 0"),
        (-1.0, 1.0, 2, "reason 1"),
        (1.0, 4.0, 1, "reason 2"),
    ]


def test_a_pass_that_did_not_end_has_no_course() -> None:
    assert courses([ran(0, ATOLL.label, STATE)]) == []
    assert courses([ran(0, ATOLL.label, STATE), done(1)]) == []
    assert spread_summary([]) is None


def test_the_summary_is_of_the_measured_passes() -> None:
    found = courses([ran(0, ATOLL.label, STATE), done(0)])
    # A second of two chiplets, three of one; the change at 5 s was before the pass.
    assert spread_summary(found) == SpreadSummary(
        chiplets=2, lowest=1, highest=2, mean=1.25, changes=1
    )
    early = courses([ran(0, ATOLL.label, scheduler_state((0.0, 2), (5.0, 1))), done(0)])
    assert spread_summary(early) == SpreadSummary(
        chiplets=2, lowest=1, highest=1, mean=1.0, changes=0
    )


def test_a_change_at_the_very_end_lies_within_the_pass() -> None:
    at_the_end = scheduler_state((0.0, 1), (10.0, 2))
    (course,) = courses([ran(0, ATOLL.label, at_the_end), done(0, 0.999)])
    assert [(one.begin_s, one.end_s) for one in course.spells][1] == (0.999, 0.999)
    assert spread_summary([course]) == SpreadSummary(
        chiplets=2, lowest=1, highest=2, mean=1.0, changes=1
    )


def test_servers_count_by_their_time() -> None:
    eight = scheduler_state((0.0, 8), chiplets=8)
    found = courses([ran(0, ATOLL.label, STATE), ran(0, ATOLL.label, eight, 1), done(0)])
    summary = spread_summary(found)
    assert summary is not None
    assert (summary.chiplets, summary.lowest, summary.highest) == (8, 1, 8)
    assert summary.mean == pytest.approx((1.25 + 8) / 2)


@given(
    st.lists(st.tuples(st.floats(0, 10), st.integers(1, 8)), min_size=1, max_size=20),
    st.floats(0.01, 10),
)
def test_the_mean_lies_between(changes: list[tuple[float, int]], pass_s: float) -> None:
    state = scheduler_state(*sorted(changes), chiplets=8)
    summary = spread_summary(courses([ran(0, ATOLL.label, state), done(0, pass_s)]))
    assert summary is not None
    assert summary.lowest - 1e-6 <= summary.mean <= summary.highest + 1e-6
    assert summary.changes < len(changes) + 1


def test_the_summary_says_whose_scheduler_ran() -> None:
    own, atoll = summarise(compared()).entrants
    assert (own.scheduler, own.spread) == ("duckdb", None)
    assert atoll.scheduler == "atoll" and atoll.spread is not None
    assert [one.query for one in atoll.speedups] == ["geomean", "q1", "q6", "pass"]


def test_two_schedulers_of_one_plan_are_not_the_same_deployment() -> None:
    codes = {warning.code for warning in summarise(compared()).warnings}
    assert "coincide" not in codes and "not-comparable" not in codes


# ---- How it looks --------------------------------------------------------------------------


def test_every_format_tells_scheduler_and_spread() -> None:
    found = compared()
    sentence = "duckdb/wim/atoll: 1 to 2 of 2 chiplets, mean 1.3, 9 changes"
    page = render(found, "html")
    assert "Spread over time" in page and sentence in page
    assert "Speed-up over the baseline" in page and "faster than the baseline →" in page
    assert page.count('class="step l1"') == 6
    assert "reason 2" in page
    text = render(found, "md")
    assert sentence in text.replace("\\", "") and "## Speed-up over the baseline" in text
    assert "| duckdb/wim/atoll | Atoll's |" in text
    rows = render(found, "csv").splitlines()
    assert {row.split(",")[8] for row in rows} == {"scheduler", "duckdb", "atoll"}


def test_without_atolls_scheduler_nothing_is_said_of_it() -> None:
    page = render(results(), "html")
    assert "Spread over time" not in page and "Speed-up over WIM" in page
    assert "Chiplets in use" not in render(results(), "md")
    assert verdicts.spreads(summarise(results())) == []


def test_what_speedups_are_over() -> None:
    assert verdicts.baseline(summarise(compared())) == "the baseline"
    alone = [entrant("duckdb", policy, scheduler="atoll") for policy in (Policy.WIM, Policy.WIC)]
    assert verdicts.baseline(summarise(results(lines(alone), header(*alone)))) == "WIM"


def test_the_terminal_has_one_line_of_it_within_80_columns() -> None:
    out = io.StringIO()
    Console(file=out, width=80).print(bench_text(summarise(compared())))
    text = out.getvalue()
    spread = "duckdb/wim/atoll: 1 to 2 of 2 chiplets, mean 1.3, 9 changes"
    assert len([line for line in text.splitlines() if line.endswith(spread)]) == 1
    assert max(map(len, text.splitlines())) <= 80
    assert "speed-up" in text and "over WIM" not in text


def test_a_line_per_server_and_block() -> None:
    single = scheduler_state((0.0, 1), chiplets=1)
    found = compared(2, STATE, single)
    summary = summarise(found)
    colours = entrant_colours(summary)
    assert colours == {"duckdb/wim": 0, "duckdb/wim/atoll": 1}
    [picture] = spread_charts(ATOLL.label, 1, courses(found.lines))
    root = ElementTree.fromstring(f"<svg>{picture.body}</svg>")
    groups = [one for one in root.iter("g") if one.get("class") == "spread"]
    assert [(one.get("data-slot"), one.get("data-block")) for one in groups] == [
        ("0", "0"),
        ("0", "1"),
        ("1", "0"),
        ("1", "1"),
    ]
    heights = [set(re.findall(r"V([\d.]+)", one[1].get("d", ""))) for one in groups]
    assert [len(one) for one in heights] == [2, 2, 1, 1]


def test_text_of_a_file_is_escaped_in_it() -> None:
    state = scheduler_state(spreads=({"t_s": 0, "spread": 1, "reason": "<script>"},))
    assert "<script" not in render(compared(1, state), "html")
    evil = courses([ran(0, ATOLL.label, STATE), done(0)])
    assert "<i>" not in spread_charts("<i>", 1, evil)[0].body


def test_a_staircase_is_no_longer_than_the_picture_is_wide() -> None:
    assert staircase([(0.0, 9.0), (10.2, 5.0), (12.0, 7.0)], 20.0) == (
        "M0 9.0H0V9.0H10V5.0H12V7.0H20"
    )
    # Within one pixel: the lowest, the highest, and where it ended.
    assert staircase([(0.0, 9.0), (10.1, 5.0), (10.2, 1.0), (10.3, 7.0)], 20.0) == (
        "M0 9.0H0V9.0H10V1.0V7.0V7.0H20"
    )
    many = [(index / 100, float(index % 7)) for index in range(50_000)]
    assert len(staircase(many, 500.0)) < 500 * 30


def test_many_changes_are_cut_short() -> None:
    many = scheduler_state(*((index / 100, 1 + index % 2) for index in range(300)))
    rows = tables.change_table(courses([ran(0, ATOLL.label, many), done(0)])).rows
    assert len(rows) == tables.MOST_CHANGES + 1
    assert rows[0] == (ATOLL.label, "1", "0", "-6.000 s", "1", "reason 0")
    assert rows[-1][-1] == "and 100 more, in the results file"
