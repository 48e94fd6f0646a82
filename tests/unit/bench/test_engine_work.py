"""What engines counted of their queries: recorded by the bench, summed up, shown, planned with."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from rich.console import Console

from atoll.bench.analysis import summarise
from atoll.bench.deploy import LiveServer
from atoll.bench.engine_work import observed_peak, work_summary
from atoll.bench.results import Results, ResultsWriter
from atoll.cli import run
from atoll.engines.api import Engine
from atoll.errors import EngineFailed, UsageError
from atoll.report.bench.markdown import markdown
from atoll.report.bench.render import render
from atoll.report.bench.tables import work_table
from atoll.report.bench.text import bench_text
from atoll.schema.base import Record
from atoll.schema.operators import QueryProfile
from atoll.schema.results import EngineWork, Line, PassDone, QueryProfiled, QueryWork
from atoll.schema.size import GIB
from atoll.schema.summary import WorkSummary
from atoll.supervise.launch import Running
from tests.parts.bench import WIC, WIM, FakeClient, header, lines, results
from tests.parts.fake_host import FakeHost
from tests.parts.faults import check_complaint, fails
from tests.parts.machines import milan

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def milan_file(tmp_path: Path) -> str:
    path = tmp_path / "machine.json"
    path.write_text(milan(2).model_dump_json())
    return str(path)


def work(**more: float) -> EngineWork:
    found = {"tasks": 4, "run_s": 8, "gc_s": 2, "shuffle_bytes": GIB, "spilled_bytes": 0}
    named = {"peak_bytes": GIB, "peak_source": "peak of the tests"}
    return EngineWork.model_validate({**found, **named, **more})


def told(block: int, label: str, query: str, **more: float) -> QueryWork:
    return QueryWork(block=block, label=label, query=query, work=work(**more))


def counted() -> Results:
    given: list[Line] = [
        *lines((WIM, WIC), 2)[:-1],
        told(0, WIC.label, "q1"),
        told(0, WIC.label, "q6", run_s=4, peak_bytes=3 * GIB),
        told(1, WIC.label, "q1", shuffle_bytes=3 * GIB),
        told(1, WIC.label, "q6", run_s=4),
    ]
    return results(given, header(WIM, WIC, blocks_asked=2))


class TellingClient(FakeClient):
    told: tuple[str, ...] = ()
    fault: str = ""

    def work(self, *, timeout_s: float) -> dict[str, EngineWork]:
        if self.fault:
            raise EngineFailed(self.fault)
        return {ticket: work() for ticket in self.told}


def live(client: TellingClient) -> LiveServer:
    running = SimpleNamespace(clients=[client], check=lambda: None)
    return LiveServer(cast(Running, running), cast(Engine, None), WIM, [], FakeHost())


def test_a_log_that_cannot_be_read_costs_no_block() -> None:
    client = TellingClient(FakeHost())
    client.told = ("a", "b")
    assert set(live(client).counted()) == {"a", "b"}
    client.fault = "Spark's event log cannot be read"
    assert live(client).counted() == {}


def test_sums_are_a_pass_and_the_peak_is_the_largest_of_all() -> None:
    assert work_summary(counted().lines, WIC.label) == WorkSummary(
        run_s=12,
        gc_s=4,
        shuffle_bytes=3 * GIB,
        spilled_bytes=0,
        peak_bytes=3 * GIB,
        peak_query="q6",
        peak_source="peak of the tests",
    )
    assert work_summary(counted().lines, WIM.label) is None


def test_what_an_engine_does_not_count_is_no_zero_and_no_column() -> None:
    given: list[Line] = [
        *lines((WIM, WIC), 2)[:-1],
        QueryWork(block=0, label=WIC.label, query="q1", work=EngineWork(spilled_bytes=7)),
        QueryWork(block=1, label=WIC.label, query="q1", work=EngineWork(spilled_bytes=9)),
    ]
    found = results(given, header(WIM, WIC, blocks_asked=2))
    assert work_summary(found.lines, WIC.label) == WorkSummary(spilled_bytes=8)
    assert work_table(summarise(found)).columns == ("deployment", "spilled")
    with fails(UsageError, where="r.jsonl", engine="spark", option="--peak"):
        observed_peak(found, "spark", where="r.jsonl")


def test_a_pass_that_broke_off_does_not_count() -> None:
    found = counted()
    whole = [one for one in found.lines if not (isinstance(one, PassDone) and one.block == 0)]
    left = work_summary(whole, WIC.label)
    assert left is not None and left.peak_bytes == GIB


def test_reports_show_it_where_it_is_told() -> None:
    summary = summarise(counted())
    out = io.StringIO()
    Console(file=out, width=80).print(bench_text(summary))
    for text in (out.getvalue(), markdown(summary)):
        assert "3 GiB" in text and "33 %" in text
    page = render(counted(), "html")
    assert "What the queries used" in page and "spark: peak of the tests" in page
    silent = results(lines((WIM, WIC), 2), header(WIM, WIC, blocks_asked=2))
    assert "What the queries used" not in render(silent, "html")
    assert "What the queries used" not in markdown(summarise(silent))


def test_an_engine_that_counts_memory_in_profiles_alone_has_that_peak() -> None:
    def profiled(query: str, peak_bytes: int) -> QueryProfiled:
        told = QueryProfile(operators=(), peak_bytes=peak_bytes, peak_source="of nodes")
        return QueryProfiled(block=0, label=WIC.label, query=query, profile=told)

    given: list[Line] = [*lines((WIM, WIC), 2)[:-1], profiled("q1", 7), profiled("q6", 9)]
    found = results(given, header(WIM, WIC, blocks_asked=2))
    assert work_summary(found.lines, WIC.label) == WorkSummary(
        peak_bytes=9, peak_query="q6", peak_source="of nodes"
    )
    assert observed_peak(found, "spark", where="r.jsonl").query == "q6"


def test_the_largest_peak_of_an_engine_is_found() -> None:
    peak = observed_peak(counted(), "spark", where="r.jsonl")
    assert (peak.size_bytes, peak.query, peak.label) == (3 * GIB, "q6", WIC.label)
    with fails(UsageError, where="r.jsonl", engine="trino", option="--peak"):
        observed_peak(counted(), "trino", where="r.jsonl")


def written(path: Path, records: Results) -> str:
    with ResultsWriter.create(path, records.header) as writer:
        for line in records.lines:
            writer.append(cast(Record, line))
    return str(path)


def test_plan_compares_a_peak_with_the_shares(
    capsys: Capture, tmp_path: Path, milan_file: str
) -> None:
    plan = ["plan", "spark", "--machine", milan_file]
    path = written(tmp_path / "r.jsonl", counted())
    assert run([*plan, "--explain", "--peak-from", path, "--broadcast", "512MiB"]) == 0
    said = capsys.readouterr()
    words = " ".join(said.out.split())
    assert "room for queries" in said.out
    assert "observed in q6 under spark/wic" in words and "512 MiB broadcast" in words
    assert "would spill" not in said.err
    assert run([*plan, "--peak", "40TiB"]) == 0
    said = capsys.readouterr()
    assert "a peak of 40 TiB (estimated)" in said.err and "would spill" in said.err


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--peak", "much"), {"option": "--peak", "value": "much"}),
        (("--broadcast", "-1G"), {"option": "--broadcast", "value": "-1G"}),
        (("--peak", "1G", "--peak-from", "r.jsonl"), {"option": "--peak", "other": "--peak-from"}),
        (("--peak-from", "/nowhere/r.jsonl"), {"where": "/nowhere/r.jsonl"}),
    ],
)
def test_what_cannot_be_compared_is_refused(
    options: tuple[str, ...], named: dict[str, str], capsys: Capture, milan_file: str
) -> None:
    assert run(["plan", "spark", "--machine", milan_file, *options]) == 2
    check_complaint(capsys.readouterr().err, **named)
