"""Simulated fills: means over the finished passes, in tables of their own in every format."""

from __future__ import annotations

import re

from atoll.bench.analysis import summarise
from atoll.bench.fills import fills_summary
from atoll.report.bench.fills import elsewhere_ratio, fills_sentences, fills_tables
from atoll.report.bench.markdown import markdown
from atoll.report.bench.page import html
from atoll.report.bench.text import bench_text
from atoll.schema.fills import FillCounts
from atoll.schema.results import Line, PassFills
from tests.parts.bench import WIC, WIM, header, lines, results
from tests.parts.fills import counted_run, counts, of_machine, row
from tests.parts.terminal import printed


def filled(block: int, fills: FillCounts | None, label: str = WIC.label) -> PassFills:
    return PassFills(block=block, label=label, fills=fills, fault="" if fills else "no board")


def test_a_mean_is_over_the_finished_passes_that_were_counted() -> None:
    run: list[Line] = [*lines((WIM, WIC), 3)[:-1]]
    found = fills_summary(
        [
            *run,
            filled(0, counts(row((5, 10, 0), (0, 8)), 1_000_000)),
            filled(1, counts(row((8, 20, 0), (0, 2)), 3_000_000)),
            filled(2, None),
            filled(7, counts(row((99, 99, 99)))),  # broke off
        ],
        WIC.label,
    )
    assert found is not None
    assert found.passes == 2
    assert (found.user.sources.own_l3, found.user.sources.other_chiplet) == (6, 15)
    assert found.user.crossings.chiplet_bytes == 15 * 64
    assert found.user.crossings.package_bytes == 5 * 64
    assert found.simulated_s == 0.001
    assert found.user.lines_per_1000_instructions == 1000 * 26 / 3
    assert found.user.queue_share == 1
    assert fills_summary(run, WIC.label) is None
    assert fills_summary([*run, filled(0, None)], WIC.label) is None


def test_passes_with_another_quantum_do_not_mix() -> None:
    one, other = (of_machine(1, 1, 2, crossing=1, quantum=cycles) for cycles in (1000, 200))
    given = [*lines((WIM, WIC), 3)[:-1], filled(0, one), filled(1, other), filled(2, one)]
    found = fills_summary(given, WIC.label)
    assert found is not None and found.passes == 2
    assert found.counts == one


def test_a_machine_without_a_border_has_no_column_for_it() -> None:
    def columns(*shape: int) -> list[tuple[str, ...]]:
        return [table.columns for table in fills_tables(summarise(counted_run(*shape)))]

    sources, traffic, _ = columns(1, 1, 4)
    assert sources == ("simulated", "own L3", "other chiplets", "local memory")
    assert traffic == ("simulated", "between chiplets", "written back")
    sources, traffic, _ = columns(2, 2, 1)
    assert "other nodes" in sources and "remote memory" in sources
    assert traffic == ("simulated", "between nodes", "between packages", "written back")


def test_an_entrant_stands_beside_its_baseline() -> None:
    summary = summarise(counted_run())
    wim, win, wicp, wic = summary.entrants
    assert [elsewhere_ratio(summary, one) for one in (wim, win, wicp, wic)] == [
        "–",
        "0.40×",
        "<0.01×",
        "0.00×",
    ]
    assert len(fills_sentences(summary)) == 3
    assert fills_sentences(summary)[0].startswith("Simulated: duckdb/win got 14.4 million lines ")


def test_nothing_is_over_a_baseline_without_fills() -> None:
    given = [*lines((WIM, WIC), 1)[:-1], filled(0, of_machine(1, 1, 2, crossing=1))]
    summary = summarise(results(given, header(WIM, WIC)))
    assert fills_sentences(summary) == []
    _, _, pace = fills_tables(summary)
    assert [row[0] for row in pace.rows] == [WIC.label]
    assert "over" not in " ".join(pace.columns)


def test_every_format_leads_with_them_and_calls_them_simulated() -> None:
    recorded = counted_run()
    summary = summarise(recorded)
    page = html(recorded.header, summary).split("</style>")[1]
    for text, next_part in (
        (page, 'aria-label="Verdict"'),
        (markdown(summary), "## Verdict"),
        (printed(bench_text(summary)), "Equal for all"),
    ):
        assert 0 < text.index("Simulated fills by source") < text.index(next_part)
        assert not re.search("median|Time per query|## Times", text)
        assert "EMULATED CPU: the times mean nothing" in text
        assert not re.search("faster|slower|speed-up", text.lower())
        for table in fills_tables(summary):
            assert table.title.startswith("Simulated")


def test_results_without_simulated_caches_do_not_speak_of_them() -> None:
    summary = summarise(results())
    for text in (html(header(), summary).split("</style>")[1], markdown(summary)):
        assert "imulated" not in text
    assert not fills_tables(summary)


def test_the_terminal_fits_80_columns() -> None:
    text = printed(bench_text(summarise(counted_run(2, 4, 4))))
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text
