"""`atoll operators profile`: documents and rates in, a graph and an answer out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from atoll.cli import run
from atoll.report.terminal.operator_sources import answer_text
from atoll.schema.operator_graph import OperatorGraph
from tests.parts.faults import check_complaint
from tests.parts.operators import graph as drawn
from tests.parts.operators import operator
from tests.parts.paths import DATA, GOLDEN

Q18 = str(GOLDEN / "plans/duckdb-1.5.5-q18.json")
PG = str(GOLDEN / "plans/postgresql-15-buffers.json")
Q18_NAME = "duckdb-1.5.5-q18"


def profile(*arguments: str) -> int:
    return run(["operators", "profile", *arguments])


def graph(capsys: pytest.CaptureFixture[str], *arguments: str) -> OperatorGraph:
    assert profile(*arguments, "--json") == 0
    return OperatorGraph.model_validate_json(capsys.readouterr().out)


def duty(found: OperatorGraph) -> float:
    return sum(one.activity.duty.value for one in found.operators if one.activity)


def test_a_rate_says_how_few_cores_the_mix_needs(capsys: pytest.CaptureFixture[str]) -> None:
    # 0.01957 s of all threads for each execution: 1,000 a second keep 19.6 cores busy.
    assert profile("duckdb", Q18, "--per-second", "1000") == 0
    out = capsys.readouterr().out
    assert "needs at least 25 cores" in out
    assert "cannot place the operators of duckdb" in out
    assert "duty: measured (operator_timing" in out
    assert "GB/s: estimated (rows scanned" in out
    assert f"{Q18_NAME}: 1000 executions/s (given)" in out


def test_operators_that_can_be_placed_have_no_such_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert profile("postgresql", PG) == 0
    out = capsys.readouterr().out
    assert "cannot place" not in out
    assert "one after another" in out


def test_each_file_of_a_mix_has_its_rate(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    other = tmp_path / "other.json"
    other.write_text(Path(Q18).read_text())
    one = graph(capsys, "duckdb", Q18, "--per-second", "10")
    both = graph(capsys, "duckdb", Q18, str(other), "--per-second", "10", "--rate", "other=30")
    assert duty(both) == pytest.approx(4 * duty(one))
    assert len(both.operators) == 2 * len(one.operators)
    assert both.operators[0].id == f"{Q18_NAME}/1"
    assert both.rate is not None
    assert both.rate.value == pytest.approx(40)


def test_the_file_that_it_writes_is_a_source(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    first = tmp_path / "first.json"
    assert profile("duckdb", Q18, "-o", str(first)) == 0
    capsys.readouterr()
    at_100 = graph(capsys, "file", str(first), "--per-second", "100")
    assert duty(at_100) == pytest.approx(100 * 0.01957, rel=1e-3)
    assert at_100.engine == "duckdb"


def test_a_profile_of_the_runtime_is_a_source(capsys: pytest.CaptureFixture[str]) -> None:
    found = graph(capsys, "runtime", str(DATA / "runtime-profile.json"))
    assert [one.id for one in found.operators] == ['build "side"', "probe phase"]


@pytest.mark.parametrize(
    ("arguments", "fields"),
    [
        (("duckdb",), {}),
        (("nosuch", "x"), {"source": "nosuch"}),
        (("duckdb", Q18, "--url", "http://127.0.0.1:1"), {}),
        (("duckdb", Q18, "--rate", "q5=1"), {"rate": "q5", "names": Q18_NAME}),
        (("duckdb", Q18, "--rate", "=1"), {"rate": "=1"}),
        (("duckdb", Q18, "--rate", "q18=nan"), {"rate": "q18=nan"}),
        (("duckdb", Q18, "--rate", "q18=0"), {"rate": "q18=0"}),
        (("duckdb", Q18, Q18), {"where": Q18, "names": Q18_NAME}),
        (("duckdb", "/no/such.json"), {"where": "/no/such.json"}),
        (("duckdb", PG), {"where": PG}),
        (("postgresql", Q18), {"where": Q18}),
        (("file", Q18), {"where": Q18}),
        (("runtime", Q18), {"where": Q18}),
        (("postgresql", "--url", "x", "--per-second", "1"), {}),
        (
            ("runtime", str(DATA / "runtime-profile.json"), "--per-second", "1"),
            {"where": str(DATA / "runtime-profile.json")},
        ),
    ],
)
def test_faults_are_one_line(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], fields: dict[str, str]
) -> None:
    assert profile(*arguments) == 2
    check_complaint(capsys.readouterr().err, **fields)


def test_only_programs_with_threads_of_operators_can_be_watched(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert profile("duckdb", "--url", "http://127.0.0.1:1") == 2
    assert capsys.readouterr().err.startswith("atoll: the operators of duckdb cannot be placed")


def test_an_unreadable_document_leaves_no_file(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.json"
    found = json.loads(Path(Q18).read_text())
    found["latency"] = 0
    damaged.write_text(json.dumps(found))
    assert profile("duckdb", str(damaged), "-o", str(tmp_path / "graph.json")) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["damaged.json"]


def test_an_operator_that_cannot_be_divided_counts_as_one_core() -> None:
    tall, wide = operator("tall", 3.0), operator("wide", 3.0, parallel=True)
    said = answer_text(drawn([tall]), 0.2, "", 80)
    assert said.startswith("needs at least 1 core: 1 core is busy")
    assert "bottleneck: tall needs 3.00 cores" in said
    said = answer_text(drawn([tall, wide]), 0.2, "", 80)
    assert said.startswith("needs at least 5 cores: 4 cores are busy")
    assert "wide" not in said
