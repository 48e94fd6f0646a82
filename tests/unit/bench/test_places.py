"""Where threads and pages were: recorded for each measured pass, averaged, and shown."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from atoll.bench.analysis import summarise
from atoll.bench.places import places_summary
from atoll.report.bench.markdown import markdown
from atoll.report.bench.render import render
from atoll.report.bench.tables import places_table
from atoll.report.bench.text import bench_text
from atoll.schema.results import Line, PassDone, PassPlaces
from atoll.schema.whereabouts import Whereabouts
from tests.parts.bench import WIC, WIM, Run, header, lines, results


def whereabouts(**more: Any) -> Whereabouts:
    found: dict[str, Any] = {
        "processes": 2,
        "threads": 8,
        "elsewhere": 1,
        "migrations": 10,
        "cpu_s_by_node": {0: 3.0},
        "bytes_by_node": {0: 4096},
        "local_pages": 0.75,
        "local_resctrl": None,
        "read_bytes": 4096,
        "written_bytes": 0,
    }
    return Whereabouts.model_validate({**found, **more})


def test_each_measured_pass_is_watched() -> None:
    run = Run(header(blocks_asked=2), watched=whereabouts)
    run.bench.run()
    found = run.of(PassPlaces)
    assert [(one.block, one.label) for one in found] == [
        (0, "spark/wim"),
        (0, "spark/wic"),
        (1, "spark/wic"),
        (1, "spark/wim"),
    ]
    kinds = [type(one) for one in run.records]
    assert kinds.index(PassPlaces) < kinds.index(PassDone)


def test_a_mean_is_over_the_finished_passes_that_know_the_figure() -> None:
    given = [
        *lines((WIM, WIC), 2)[:-1],
        PassPlaces(block=0, label=WIC.label, places=whereabouts()),
        PassPlaces(block=1, label=WIC.label, places=whereabouts(migrations=None, local_pages=0.25)),
        PassPlaces(block=7, label=WIC.label, places=whereabouts(local_pages=0.0)),  # broke off
    ]
    found = places_summary(given, WIC.label)
    assert found is not None and found.passes == 2
    assert (found.migrations, found.local_pages, found.local_resctrl) == (10, 0.5, None)
    assert places_summary(given, WIM.label) is None


def test_shares_of_different_kinds_have_their_own_columns() -> None:
    clean = lines((WIM, WIC), 2)[:-1]
    estimated = PassPlaces(block=0, label=WIC.label, places=whereabouts())
    counted = PassPlaces(block=0, label=WIM.label, places=whereabouts(local_resctrl=0.5))
    both: list[Line] = [*clean, counted, estimated]
    found = results(both, header(WIM, WIC, blocks_asked=2))
    table = places_table(summarise(found))
    cells = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    assert [(one["local (pages)"], one["local (resctrl)"]) for one in cells] == [
        ("75 %", "50 %"),
        ("75 %", "–"),
    ]
    out = io.StringIO()
    Console(file=out, width=80).print(bench_text(summarise(found)))
    for text in (out.getvalue(), markdown(summarise(found)), render(found, "html")):
        assert "Where threads and memory were" in text and "75 %" in text
    only_pages = results([*clean, estimated], found.header)
    assert "local (resctrl)" not in places_table(summarise(only_pages)).columns
    assert "Where threads" not in render(results(clean, found.header), "html")
