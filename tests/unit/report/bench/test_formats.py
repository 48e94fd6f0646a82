"""Renderers and `atoll report`: escaping, completeness, formats; no engine."""

from __future__ import annotations

import csv
import io
import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from atoll.bench.analysis import summarise
from atoll.bench.results import Results, ResultsWriter
from atoll.cli.report import command
from atoll.errors import UsageError
from atoll.report.bench.charts import LEFT, PLOT, speedup_charts, times_charts
from atoll.report.bench.markdown import markdown
from atoll.report.bench.page import html
from atoll.report.bench.render import render
from atoll.report.bench.text import bench_text
from atoll.report.svg.elements import LETTER, inline
from atoll.schema.base import parse
from atoll.schema.plan import Policy
from atoll.schema.profile import Profile
from atoll.schema.results import (
    BlockFailed,
    Entrant,
    Line,
    RunEnd,
)
from atoll.schema.summary import BenchSummary
from tests.parts.bench import WIC, WIM, entrant, header, lines, results, time
from tests.parts.bench_plans import plan
from tests.parts.faults import fails
from tests.parts.profiles import graviton, one_cpu

SVG = "{http://www.w3.org/2000/svg}"
EVIL = '<script>alert("x")</script>&|`*_=1+1'


def page_of(recorded: Results) -> str:
    return html(recorded.header, summarise(recorded))


def test_the_page_is_self_contained() -> None:
    page = page_of(results())
    assert "<script" not in page
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?!data:|#)""", page)
    assert not re.search(r"url\((?!data:)", page)
    assert "prefers-color-scheme:dark" in page
    assert "Content-Security-Policy" in page


def test_times_of_an_emulated_cpu_are_marked_as_such_in_every_format() -> None:
    mark = header().fingerprint.model_copy(update={"emulated": True})
    for emulated in (True, False):
        recorded = results(None, header(fingerprint=mark)) if emulated else results()
        summary = summarise(recorded)
        out = io.StringIO()
        Console(file=out, width=80).print(bench_text(summary))
        for text in (page_of(recorded), markdown(summary), out.getvalue()):
            assert ("EMULATED CPU" in text) == emulated
        assert ("Every figure here was measured" in page_of(recorded)) != emulated
        assert summary.basis == ("emulated" if emulated else "measured")


def test_no_format_compares_times_of_an_emulated_cpu() -> None:
    mark = header().fingerprint.model_copy(update={"emulated": True})
    recorded = results(None, header(fingerprint=mark))
    summary = summarise(recorded)
    assert not summary.axes and not summary.decompositions and not summary.why
    assert not any(one.speedups for one in summary.entrants)
    out = io.StringIO()
    Console(file=out, width=80).print(bench_text(summary))
    for text in (page_of(recorded).split("</style>")[1], markdown(summary), out.getvalue()):
        assert not re.search(r"faster|slower|speed-up|×|baseline", text.lower())


def test_the_page_shows_the_machines_profile_where_it_has_one() -> None:
    page = render(results(), "html", graviton(8))
    assert "What the machine can do" in page and "8 cores, no chiplets" in page
    assert "Distribution of core-to-core latency" in page and "<script" not in page
    assert "What the machine can do" not in page_of(results())
    nothing = render(results(), "html", one_cpu())
    assert "1 CPU measured" in nothing


def test_only_a_profile_of_the_same_machine_is_shown(tmp_path: Path) -> None:
    given = results()
    file = tmp_path / "r.jsonl"
    file.write_text("".join(f"{line.model_dump_json()}\n" for line in (given.header, *given.lines)))
    path, page = tmp_path / "p.json", tmp_path / "report.html"
    environment = {"hostname_hash": given.header.fingerprint.hostname_hash}
    own = graviton(8)
    own = own.model_copy(
        update={
            "machine_id": given.header.machine_id,
            "environment": own.environment.model_copy(update=environment),
        }
    )

    def report(profile: Profile, *more: str) -> None:
        path.write_text(profile.model_dump_json())
        arguments = [str(file), "--profile", str(path), "-o", str(page), *more]
        CliRunner().invoke(command, arguments, catch_exceptions=False)

    report(own)
    assert "What the machine can do" in page.read_text()
    other = graviton(8)
    titles = {"other": other.machine_title, "machine": given.header.machine.title}
    with fails(UsageError, where=path, **titles):
        report(other)
    with fails(UsageError, where=path):
        report(own.model_copy(update={"emulated": True}))
    with fails(UsageError, option="--profile", format="md"):
        report(own, "--format", "md")


def test_the_page_shows_everything() -> None:
    page = page_of(results())
    assert page.count('class="bar f') == 4  # two queries, two entrants
    for wanted in (
        'data-label="spark/wic"',
        'data-query="geomean"',
        'class="point f1"',
        'class="whisker l1"',
        "measured",
        "spark/wic is faster than spark/wim: 2.00×",
        "atoll bench spark --policies wim,wic",
        "Test &lt;CPU&gt; &amp; Co",
        "Transparent huge pages",
        "ab" * 32,
    ):
        assert wanted in page
    assert page.count('class="panel picture') == 3  # the machine and two plans


def test_bars_and_whiskers_stay_inside_the_plot() -> None:
    [chart] = times_charts(summarise(results()), "spark")
    root = ElementTree.fromstring(inline(chart))
    bars = [one.attrib for one in root.iter(f"{SVG}rect")]
    whiskers = [one.attrib for one in root.iter(f"{SVG}line") if one.get("class") == "whisker"]
    ends = [float(bar["x"]) + float(bar["width"]) for bar in bars]
    ends += [float(whisker["x2"]) for whisker in whiskers]
    assert len(bars) == 4 and whiskers
    assert LEFT + PLOT * 0.9 < max(ends) <= LEFT + PLOT


def test_the_labels_of_bars_end_inside_the_picture() -> None:
    """They keep their end, in which the cells of a grid differ."""
    labels = [f"spark/wim/malloc=tbbmalloc/knob:swappiness={n}/thp=never" for n in range(3)]
    cells = [WIM.model_copy(update={"label": label}) for label in labels]
    [chart] = times_charts(summarise(results(lines(cells), header(*cells))), "spark")
    root = ElementTree.fromstring(inline(chart))
    words = [(float(one.attrib["x"]), one.text or "") for one in root.iter(f"{SVG}text")]
    beside = [(x, text) for x, text in words if " · " in text]
    assert all(text.endswith("/thp=never") for _, text in beside) and len(beside) == 6
    assert all(x + LETTER * len(text) <= chart.width for x, text in beside)
    assert any("…" in text for _, text in beside) and not all("…" in text for _, text in beside)


def test_the_mean_is_set_off_once_after_all_its_rows() -> None:
    everyone = [
        WIM.model_copy(update={"label": f"spark/n={n}", "baseline": "spark/n=1" if n > 1 else None})
        for n in range(1, 41)
    ]
    charts = speedup_charts(summarise(results(lines(everyone), header(*everyone))))
    body = "".join(chart.body for chart in charts)
    assert body.count("grid dotted") == 1
    rows = body.partition("grid dotted")[0]
    assert rows.count('data-query="geomean"') == 39 and 'data-query="q1"' not in rows


def test_every_picture_is_well_formed_and_named() -> None:
    page = page_of(results())
    pictures = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(pictures) == 5
    for picture in pictures:
        ElementTree.fromstring(picture)
        assert "<title>" in picture


def test_text_from_a_file_is_escaped_everywhere() -> None:
    evil = Entrant(label=EVIL, engine="<i>engine</i>", plan=plan(), baseline=None)
    head = header(evil, command=EVIL, suite=EVIL, notes=(EVIL,), queries=("q1", "q6"))
    given: list[Line] = [
        *lines((evil,))[:-1],
        BlockFailed(block=9, label=EVIL, error=EVIL),
        RunEnd(ended_unix_s=1.0, status="stopped", reason=EVIL),
    ]
    recorded = results(given, head)
    page = page_of(recorded)
    assert "<script" not in page
    assert "<i>engine" not in page
    for picture in re.findall(r"<svg.*?</svg>", page, re.DOTALL):
        ElementTree.fromstring(picture)
    text = markdown(summarise(recorded))
    assert "<script" not in re.sub(r"`+ .*? `+", "", text)
    assert all(line.count(" | ") <= 8 for line in text.splitlines() if line.startswith("| "))
    rows = list(csv.DictReader(io.StringIO(render(recorded, "csv"))))
    assert {row["label"] for row in rows} == {EVIL}


def test_an_error_of_several_lines_keeps_them_and_nothing_else_unprintable() -> None:
    failed = BlockFailed(block=6, label="spark/wic", error="first line\nsecond \x1b[31mline")
    page = page_of(results([*lines()[:-1], failed]))
    assert "first line\nsecond \ufffd[31mline" in page


def test_csv_has_every_measurement_and_no_formula() -> None:
    given = [
        *lines()[:-1],
        time(0, "spark/wic", "q1", 9.0, "warm-up"),
        BlockFailed(block=6, label="spark/wic", error="=cmd()"),
    ]
    rows = list(csv.DictReader(io.StringIO(render(results(given), "csv"))))
    assert len(rows) == 6 * 2 * 2 + 2
    assert sum(row["used"] == "yes" for row in rows) == 24
    assert rows[-1]["phase"] == "failed"
    assert rows[-1]["detail"] == "'=cmd()"
    assert {row["policy"] for row in rows} == {"wim", "wic"}


def test_markdown_has_tables_of_equal_width() -> None:
    text = markdown(summarise(results()))
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
        assert len(widths) == 1
    for heading in ("Verdict", "Speed-up over WIM", "Times", "Deployments", "Environment"):
        assert f"## {heading}" in text


def test_a_replay_of_one_cluster_compares_nothing() -> None:
    """No table without rows, and no words of entrants and pairs."""
    one = Entrant(label="trino/h:8080", engine="trino", url="http://h:8080/hive")
    failed = BlockFailed(block=6, label=one.label, error="1 worker instance left")
    recorded = results([*lines((one,))[:-1], failed], header(one, scale_factor=None))
    for kind in ("md", "html"):
        text = render(recorded, kind)
        assert "Speed-up" not in text
        assert not re.search(r"\b(entrant|pair)s?\b", text.lower().split("</style>")[-1]), kind
        assert "this block is left out: 1 worker instance left" in text
    assert not re.search(r"(?m)^\| --- .*\n\n", render(recorded, "md"))


def test_a_bench_that_ended_after_its_header_has_no_empty_table() -> None:
    recorded = Results(header(WIM, WIC, entrant("duckdb", Policy.WIM)), ())
    text = markdown(summarise(recorded))
    assert "interrupted or is still running" in text
    assert not re.search(r"(?m)^\| --- .*\n\n", text)
    assert not re.search(r"<tbody>\s*</tbody>", page_of(recorded))
    out = io.StringIO()
    Console(file=out, width=80).print(bench_text(summarise(recorded)))
    assert "median" not in out.getvalue()


def test_a_report_names_the_clock_of_its_times() -> None:
    mark = header().fingerprint.model_copy(update={"clock": "client"})
    page = " ".join(page_of(results(None, header(fingerprint=mark))).split())
    assert "timed by the engine's own client" in page.replace("&#39;", "'")
    assert "timed by the bench" in " ".join(page_of(results()).split())


def test_a_query_has_the_name_of_its_file() -> None:
    for kind in ("md", "html"):
        text = render(results(), kind)
        assert "q1" in text and "Q1" not in text


def test_rows_of_several_engines_have_their_label_and_colour() -> None:
    engines = ("spark", "duckdb", "trino")
    all_of = [
        entrant(engine, policy, slots)
        for engine in engines
        for policy, slots in ((Policy.WIM, 1), (Policy.WIC, 4))
    ]
    [chart] = speedup_charts(summarise(results(lines(all_of), header(*all_of))))
    root = ElementTree.fromstring(inline(chart))
    colours = {
        group.get("data-label"): [
            point.get("class") for point in group if point.tag == f"{SVG}circle"
        ]
        for group in root.iter(f"{SVG}g")
        if group.get("class") == "speedup" and group.get("data-query") == "q1"
    }
    assert len(set(map(str, colours.values()))) == 3
    labels = [one.text for one in root.iter(f"{SVG}text")]
    for engine in engines:
        assert labels.count(f"{engine}/wic") == 4  # the mean, two queries, the pass


def test_json_is_the_summary() -> None:
    text = render(results(), "json")
    assert parse(BenchSummary, text, where="x") == summarise(results())
    assert json.loads(text)["format"] == "atoll/summary"


@pytest.mark.parametrize("blocks", [0, 2, 6])
def test_the_terminal_summary_fits_80_columns(blocks: int) -> None:
    others = [entrant("spark", Policy.WICP_MIXED, 2), entrant("duckdb", Policy.WIM)]
    everyone = [WIM, WIC, *others]
    recorded = results(lines(everyone, blocks=blocks, idle=0.3), header(*everyone))
    out = io.StringIO()
    Console(file=out, width=80).print(bench_text(summarise(recorded)))
    text = out.getvalue()
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text
    if blocks == 6:
        assert "spark/wic is faster than spark/wim" in " ".join(text.split())


# ---- The command ---------------------------------------------------------------------------


def written(path: Path, recorded: Results) -> Path:
    with ResultsWriter.create(path, recorded.header) as writer:
        for line in recorded.lines:
            writer.append(line)
    return path


@pytest.mark.parametrize(
    ("output", "options", "begins"),
    [
        ("r.html", [], "<!doctype html>"),
        ("r.md", [], "# Atoll bench"),
        ("r.csv", [], "run_id,"),
        ("r.json", [], "{"),
        ("r.txt", ["--format", "md"], "# Atoll bench"),
        ("R.HTM", [], "<!doctype html>"),
    ],
)
def test_the_format_follows_the_ending(
    tmp_path: Path, output: str, options: list[str], begins: str
) -> None:
    source = written(tmp_path / "in.jsonl", results())
    target = tmp_path / output
    done = CliRunner().invoke(command, [str(source), "-o", str(target), *options])
    assert done.exit_code == 0, done.output
    assert target.read_text().startswith(begins)
    assert done.output.strip() == str(target)


@pytest.mark.parametrize("name", ["x.txt", "x", "x.html.gz"])
def test_a_suffix_that_names_no_format_is_refused(tmp_path: Path, name: str) -> None:
    source, target = written(tmp_path / "in.jsonl", results()), tmp_path / name
    with fails(UsageError, path=target, option="--format"):
        CliRunner().invoke(command, [str(source), "-o", str(target)], catch_exceptions=False)
    assert not target.exists()


def test_a_bad_file_leaves_no_report(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text('{"format": "atoll/results", "version": 99}\n')
    target = tmp_path / "out.html"
    with fails(UsageError, where=source, version=99):
        CliRunner().invoke(command, [str(source), "-o", str(target)], catch_exceptions=False)
    assert not target.exists()
