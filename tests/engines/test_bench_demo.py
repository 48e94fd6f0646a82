"""The demo, cut down to DuckDB and a moment; and what it says when engines are missing."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest
from click.testing import CliRunner

from atoll.bench.results import read_results
from atoll.cli import demo
from atoll.engines import registry
from atoll.errors import EngineFailed, UsageError
from atoll.host.api import Host
from atoll.supervise import records


class Missing:
    """An engine that is not installed."""

    def locate(self, host: Host) -> NoReturn:
        raise EngineFailed("no JDK 17 was found; install openjdk-17-jre-headless")


@pytest.fixture
def without_java(monkeypatch: pytest.MonkeyPatch) -> None:
    real = registry.get
    monkeypatch.setattr(registry, "get", lambda name: Missing() if name == "spark" else real(name))


@pytest.mark.usefixtures("without_java")
def test_without_java_it_says_so_and_shows_duckdb(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "TIME_BOX_S", 0.001)  # a first block always fits
    monkeypatch.setattr(demo, "SCALE_FACTOR", 0.01)
    folder = tmp_path / "demo"
    done = CliRunner().invoke(demo.command, ["-o", str(folder)])
    assert done.exit_code == 0, done.output
    assert "spark: left out: no JDK 17 was found" in done.output
    assert all(f"{step}/6 " in done.output for step in range(1, 7))
    assert done.output.splitlines()[-1] == f"The report: {folder / 'report.html'}"
    found = read_results(folder / "results.jsonl")
    assert found.whole_blocks == 1
    assert found.header.blocks_asked is None
    assert "<rect" in (folder / "report.html").read_text()
    assert sorted(path.name for path in folder.iterdir()) == [
        "machine.json",
        "plan-duckdb-wim.json",
        "report.html",
        "results.jsonl",
    ]
    assert records.names() == []

    again = CliRunner().invoke(demo.command, ["-o", str(folder)])
    assert isinstance(again.exception, UsageError)
    assert "earlier demo" in str(again.exception)


def test_without_any_engine_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "get", lambda name: Missing())
    done = CliRunner().invoke(demo.command, [])
    assert isinstance(done.exception, EngineFailed)
    assert "no engine can run here" in str(done.exception)
    assert "no JDK 17" in str(done.exception)
