"""`atoll experiment`: what the list, the file and a refusal look like."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from atoll.bench.results import ResultsWriter
from atoll.cli import run
from atoll.experiments.catalog import experiments
from tests.parts.bench_grid import MEASURED
from tests.parts.machines import NodeShape, build

NAMES = [one.name for one in experiments()]
SMALL = build([[NodeShape(rest=2)]])


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("atoll.cli.experiment.machine_for", lambda: SMALL)
    monkeypatch.setenv("COLUMNS", "80")


def test_the_list_has_every_experiment_within_80_columns(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["experiment", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:-1] if line[0] != " "] == NAMES
    assert lines[-1] == "no: 'atoll experiment show NAME' says what this machine lacks"
    assert max(map(len, lines)) <= 80


def test_the_list_as_json_has_the_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["experiment", "list", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in found] == NAMES
    assert all(one["here"] == (not one["why_not"]) for one in found)


@pytest.mark.parametrize("name", NAMES)
def test_all_of_a_file_is_shown_within_80_columns(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["experiment", "show", name]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    for title in ("Claim", "This machine", "Run", "Numbers of the paper", "The paper is silent"):
        assert f"\n{title}" in text


def test_results_are_reported_as_text_and_as_a_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "r.jsonl"
    with ResultsWriter.create(results, MEASURED.header) as writer:
        for line in MEASURED.lines:
            writer.append(line)
    page = tmp_path / "fig12.html"
    assert run(["experiment", "report", "olap-fig12", str(results), str(results)]) == 0
    text = capsys.readouterr().out
    assert "A measured" in text and "B measured" in text and "\nA, spark: " in text
    assert run(["experiment", "report", "olap-fig12", str(results), "-o", str(page)]) == 0
    assert "<!doctype html>" in page.read_text()
    assert run(["experiment", "report", "olap-fig13", str(results)]) == 2
    assert run(["experiment", "report", "olap-fig3", str(results)]) == 2
    assert run(["experiment", "report", "olap-fig12", str(results), "-o", "x.md"]) == 2


def test_an_unknown_experiment_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["experiment", "show", "bogus"]) == 2
    assert capsys.readouterr().err.startswith("atoll: no experiment 'bogus'; ")


def test_a_scale_that_does_not_fit_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["experiment", "run", "olap-tab2", "--scale", "paper"]) == 2
    assert "choose a smaller --scale" in capsys.readouterr().err
