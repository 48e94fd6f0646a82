"""The paper's numbers beside ours: text, table, page."""

from __future__ import annotations

import re
from dataclasses import replace

from atoll.bench.analysis import summarise
from atoll.experiments.catalog import experiments, get
from atoll.experiments.ours import Ours, of_profile, of_results
from atoll.report.bench.page import html
from atoll.report.experiment import tables
from atoll.report.experiment.chart import side_charts
from atoll.report.experiment.page import experiment_page
from atoll.report.experiment.text import comparison_text, whys
from atoll.report.svg.elements import inline
from atoll.report.terminal.grid import printed
from atoll.schema.operators import Kind, Operator, QueryProfile
from atoll.schema.results import QueryProfiled
from tests.parts.bench_grid import grid, measured
from tests.parts.profiles import epyc

FIG8 = get("olap-fig8")
EVIL = '<script>alert("x")</script>'


def two_machines() -> list[Ours]:
    one = measured(grid("policy=win,wicp,wic"), {"spark/wicp": 0.4, "spark/wic": 0.8})
    two = measured(grid("policy=wicp"), {"spark/wicp": 0.5}, blocks=2)
    return [of_results(FIG8, one, "a.jsonl"), of_results(FIG8, two, EVIL)]


def test_results_of_several_machines_are_joined_in_one_table() -> None:
    table = tables.side_by_side(FIG8, two_machines())
    assert table.columns == ("figure", "engine", "published", "A measured", "B measured")
    rows = {row[:2]: row[2:] for row in table.rows}
    spark = rows["speedup(policy=wicp)", "spark"]
    assert spark[0] == "3.41× milan, 6.97× spr, 1.36× g3"
    assert spark[1] == "2.5× (2.5 to 2.5), mean 2.5×"
    assert spark[2] == "~2×, mean 2×"  # two blocks have no interval
    assert rows["speedup(policy=wic)", "spark"][2] == "–"
    assert rows["speedup(policy=wicp)", "singlestore"] == ("3.4× milan, 2.7× spr", "–", "–")


def test_joined_results_of_two_clocks_say_so() -> None:
    older = measured(grid("policy=wicp"), {})
    mark = older.header.fingerprint.model_copy(update={"clock": "client"})
    now = replace(older, header=older.header.model_copy(update={"fingerprint": mark}))
    found = [of_results(FIG8, one, "a.jsonl") for one in (older, now)]
    warned = [line for line in tables.machines(FIG8, found) if "timed by the bench" in line]
    assert [line[0] for line in warned] == ["A"]


def test_a_figure_is_named_once_above_its_engines() -> None:
    table = tables.side_by_side(FIG8, two_machines())
    once = [row[0] for row in tables.without_repeats(table).rows]
    assert [one for one in once if one] == [*dict.fromkeys(row[0] for row in table.rows)]


def test_bars_of_one_figure_stand_together() -> None:
    [picture] = side_charts(FIG8, two_machines())
    words = re.findall(">([^<>]+)</text>", inline(picture))
    assert len([one for one in words if one == "speedup(policy=wicp)"]) == 1
    first = words.index("speedup(policy=wicp)")
    bars = words[first + 1 : words.index("speedup(policy=wic)")]
    assert "spark published, milan" in bars and "spark measured, A" in bars


def test_the_operators_of_each_machine_are_as_in_the_benchs_own_report() -> None:
    silent = measured(grid("policy=wicp"), {"spark/wicp": 0.5})
    profiled = [
        QueryProfiled(
            block=0,
            label=label,
            query="q1",
            profile=QueryProfile(
                operators=(
                    Operator(
                        node="0", operator="SCAN", kind=Kind.SCAN, tables=(), own_s=own_s, rows=1
                    ),
                )
            ),
        )
        for label, own_s in (("spark/wim", 4.0), ("spark/wicp", 1.0))
    ]
    told = replace(silent, lines=(*silent.lines[:-1], *profiled, silent.lines[-1]))
    ours = [of_results(FIG8, one, "a.jsonl") for one in (silent, told)]
    page = experiment_page(FIG8, ours)
    assert "<h2>B: Why: " in page and "<h2>A: Why: " not in page
    assert html(told.header, summarise(told)).count("<td>SCAN</td>") == 1
    assert page.count("<td>SCAN</td>") == 1
    text = printed(*whys(ours), width=80, colour=False)
    assert "B, operator by operator" in text and "SCAN" in text and "A, " not in text


def test_an_emulated_cpu_is_marked_and_decides_nothing() -> None:
    real = measured(grid("policy=win,wicp,wic"), {"spark/wicp": 0.4, "spark/wic": 0.8})
    mark = real.header.fingerprint.model_copy(update={"emulated": True})
    guest = replace(real, header=real.header.model_copy(update={"fingerprint": mark}))
    ours = [of_results(FIG8, one, "a.jsonl") for one in (real, guest)]
    assert tables.side_by_side(FIG8, ours).columns[3:] == ("A measured", "B emulated")
    assert [one for one, _ in tables.judged(FIG8, ours)] == [
        "A, spark: held",
        "B, spark: could not be judged",
    ]
    page = experiment_page(FIG8, ours)
    assert "B: EMULATED CPU" in page and 'data-basis="emulated"' in page
    assert "EMULATED CPU" not in experiment_page(FIG8, ours[:1])


def test_numbers_of_the_paper_are_not_rounded() -> None:
    published = [row[2] for row in tables.side_by_side(get("olap-tab2"), []).rows]
    assert "17.65 GB" in published
    assert "30564" in [row[2] for row in tables.side_by_side(get("numa-tab1"), []).rows]


def test_what_is_its_own_baseline_here_is_no_figure() -> None:
    one = measured(grid("policy=win,wicp"), {"spark/wicp": 0.5})  # on one node WIN is WIM
    ours = [of_results(FIG8, one, "a.jsonl")]
    rows = {row[:2]: row[3] for row in tables.side_by_side(FIG8, ours).rows}
    assert rows["speedup(policy=win)", "spark"] == "its own baseline"
    [picture] = side_charts(FIG8, ours)
    assert inline(picture).count('data-basis="measured"') == 1


def test_each_machine_is_named_with_what_its_figures_are() -> None:
    lines = tables.machines(FIG8, two_machines())
    assert [line.split(":")[0] for line in lines if "before you trust" not in line] == [
        *("milan (published)", "spr (published)", "g3 (published)"),
        *("A (measured)", "B (measured)"),
    ]
    assert "a.jsonl" in lines[3] and "SF " in lines[3]


def test_what_the_bench_warns_of_stands_beside_the_machine() -> None:
    lines = tables.machines(FIG8, two_machines())
    assert any(line.startswith("B, before you trust a figure: ") for line in lines), lines


def test_each_engine_on_each_machine_has_its_verdict() -> None:
    (one, reasons), (two, _) = tables.judged(FIG8, two_machines())
    assert one == "A, spark: held" and two == "B, spark: could not be judged"
    assert reasons[0].startswith("speedup(policy=wicp) > 1: left over right is 2.50, interval ")
    assert max(map(len, comparison_text(FIG8, two_machines()).splitlines())) <= 80


def test_the_page_has_both_sides_and_escapes_all_text() -> None:
    page = experiment_page(FIG8, two_machines())
    assert EVIL not in page and "<script" not in page
    assert "The paper is silent" in page and "exchanges the two names" in page
    assert len(re.findall('data-basis="published"', page)) == len(FIG8.published)
    assert 'data-basis="measured"' in page


def test_units_do_not_share_a_scale() -> None:
    ours = [of_profile(epyc(2, 4, 4), "p.json")]
    [picture] = side_charts(get("olap-fig3"), ours)
    assert "latency(pairs=chiplet)" in inline(picture)
    assert [one.name.rpartition(" ")[2] for one in side_charts(get("numa-tab1"), [])] == [
        "count",
        "%",
    ]


def test_every_experiment_has_a_page() -> None:
    for one in experiments():
        assert one.figure in experiment_page(one, [])
