"""Axes in every format of the report: a table and a chart each, and the baseline's name."""

from __future__ import annotations

import io
import json
import re
import xml.etree.ElementTree as ElementTree

from rich.console import Console

from atoll.bench.analysis import summarise
from atoll.report.bench.axis_chart import axis_charts
from atoll.report.bench.charts import speedup_charts
from atoll.report.bench.markdown import markdown
from atoll.report.bench.render import render
from atoll.report.bench.text import bench_text
from atoll.report.svg.elements import inline
from atoll.schema.summary import BenchSummary
from tests.parts.bench import DUCKDB_TRAITS, SPARK_TRAITS, results
from tests.parts.bench_grid import MEASURED, grid, measured

SUMMARY = summarise(MEASURED)


def printed(width: int = 80, summary: BenchSummary = SUMMARY) -> str:
    out = io.StringIO()
    Console(file=out, width=width).print(bench_text(summary))
    return out.getvalue()


def test_every_format_has_each_axis() -> None:
    page, text, words = render(MEASURED, "html"), markdown(SUMMARY), printed()
    for name in ("cores", "memory", "n", "malloc"):
        assert f'data-axis="{name}"' in page
        assert f"## By {name}" in text
        assert f"By {name}, geometric mean" in words
    assert [one["name"] for one in json.loads(render(MEASURED, "json"))["axes"]] == [
        "n",
        "memory",
        "cores",
        "malloc",
    ]
    assert "<script" not in page and "Speed-up over WIM" in page


def test_tables_have_values_intervals_and_the_reference() -> None:
    table = markdown(SUMMARY).partition("## By cores")[2].partition("##")[0]
    assert "| 1 | spark/wim, masked/cores=1 | 1× (reference) |" in table
    assert re.search(r"\| 4 \| spark/wim \| 3\.60× \| .* \| 6 \| faster \|", table)
    crossed = measured(grid("policy=wim,wic", "malloc=system,jemalloc", product=True), {})
    table = markdown(summarise(crossed)).partition("## By malloc")[2].partition("##")[0]
    assert "| policy=wic | jemalloc | spark/wic/malloc=jemalloc |" in table


def test_streams_show_throughput_and_percentiles() -> None:
    loaded = measured(grid("streams=1,8"), {"spark/wim/streams=8": 4.0})
    summary = summarise(loaded)
    table = markdown(summary).partition("## By streams")[2].partition("##")[0]
    header, _, first, second = table.strip().splitlines()
    assert header.endswith(
        "| throughput | interval | blocks | verdict | queries/s | p50 | p90 | p99 |"
    )
    assert "1× (reference)" in first and "2.00×" in second
    words = printed(summary=summary).partition("By streams, queries per second")[2]
    assert re.search(r"^ *8 .*2\.00×.*faster", words, re.MULTILINE)
    page = render(loaded, "html")
    assert "Throughput by streams" in page and "queries per second</" in page
    assert "queries per second | spark/wim/streams=8" in markdown(summary)


def test_charts_are_curves_of_numbers_and_bars_of_words() -> None:
    for axis in SUMMARY.axes:
        [chart] = axis_charts(axis)
        drawn = ElementTree.fromstring(str(inline(chart)))
        bars = [one for one in drawn.iter() if one.get("data-value")]
        if axis.name in ("memory", "malloc"):
            assert [one.get("data-value") for one in bars] == [
                point.value for point in axis.series[0].points
            ]
        else:
            assert not bars
            tips = [one.text or "" for one in drawn.iter() if one.tag.endswith("title")]
            assert sum("the reference" in tip for tip in tips) == 1


def test_long_labels_keep_the_end_in_which_they_differ() -> None:
    body = "".join(chart.body for chart in speedup_charts(SUMMARY))
    assert "…k/wim, masked/cores=1</text>"[-22:] in body
    assert "cores=2</text>" in body and ">spark/n=2</text>" in body


def test_a_value_without_a_block_is_named() -> None:
    found = measured(grid("memory=bind,interleave"), {})
    without = [one for one in found.lines if getattr(one, "label", "") != "spark/wim/memory=bind"]
    summary = summarise(results(without, found.header))
    (axis,) = summary.axes
    [chart] = axis_charts(axis)
    assert "no block finished" in chart.body
    assert "| bind | spark/wim/memory=bind | – |" in markdown(summary)


def test_the_figures_of_long_labels_stay_in_80_columns() -> None:
    for line in printed().splitlines():
        assert len(line.rstrip()) <= 80
    assert re.search(
        r"spark/wim, masked/cor\S* +\S+ m?s +0\.28×  0\.28 to 0\.28 +slower", printed()
    )


def test_labels_are_cut_and_no_number_is() -> None:
    product = grid("malloc=system,tbbmalloc", "thp=system,never", product=True)
    summary = summarise(measured(product, {}))
    text = printed(summary=summary)
    figures = text.partition("A speed-up is")[0]
    assert re.search(r"^ +…\S*thp=never +\S+ m?s +\S+× +\S+ to \S+ ", figures, re.MULTILINE)
    assert "…" in figures and not re.search(r"\d…", text)
    assert "spark/wim/malloc=tbbmalloc/thp=never " in printed(width=130, summary=summary)


def test_of_two_engines_every_number_has_its_engine_in_80_columns() -> None:
    product = grid("malloc=system,tbbmalloc", "thp=system,never", product=True)
    both = measured(product, {}, engines=(SPARK_TRAITS, DUCKDB_TRAITS))
    text = printed(summary=summarise(both))
    by_malloc = text.partition("By malloc")[2]
    assert re.search(r"^duckdb, thp=never +tbbmalloc +\S+× +\S+ to \S+ ", by_malloc, re.MULTILINE)
    geomean = text.partition("\ngeomean ")[2].partition("A speed-up is")[0]
    assert geomean.index("spark/wim") < geomean.index("duckdb/wim")


def test_what_is_equal_in_a_series_breaks_and_is_never_cut() -> None:
    crossed = grid("policy=wim,wic", "malloc=system,tbbmalloc", "streams=1,64", product=True)
    both = measured(crossed, {}, engines=(SPARK_TRAITS, DUCKDB_TRAITS))
    table = printed(summary=summarise(both)).partition("By streams")[2].partition("\n\n")[0]
    names = " ".join(line[:20].strip() for line in table.splitlines()[2:])
    assert names.count("spark, malloc=tbbmalloc, policy=wic") == 2
    words = ("coordinator=shared,in-worker", "memory=bind,weighted-interleave", "thp=system,never")
    assert "in-work…" not in printed(summary=summarise(measured(grid(*words, product=True), {})))


def test_policies_alone_have_no_section_of_their_own() -> None:
    plain = measured(grid("policy=wim,wic"), {})
    assert "data-axis" not in render(plain, "html")
    assert "## By" not in markdown(summarise(plain))
