"""The demo, cut down to DuckDB and a moment; and what it says when engines are missing."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest
from click.testing import CliRunner

from atoll.bench.results import read_results
from atoll.cli import demo
from atoll.engines import registry
from atoll.engines.facts import EngineFacts
from atoll.errors import EngineFailed, UsageError
from atoll.host.api import Host
from atoll.stats.paired import MIN_BLOCKS
from atoll.supervise import records


class Missing:
    """An engine that is not installed."""

    facts = EngineFacts(demo=("wim", "wic"))

    def locate(self, host: Host) -> NoReturn:
        raise EngineFailed("no JDK 17 was found; install openjdk-17-jre-headless")


@pytest.fixture
def without_java(monkeypatch: pytest.MonkeyPatch) -> None:
    real = registry.get
    monkeypatch.setattr(registry, "get", lambda name: Missing() if name == "spark" else real(name))


@pytest.mark.long
@pytest.mark.usefixtures("without_java")
def test_without_java_it_says_so_and_shows_duckdb(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "SCALE_FACTOR", 0.01)
    folder = tmp_path / "demo"
    done = CliRunner().invoke(demo.command, ["-o", str(folder)])
    assert done.exit_code == 0, done.output
    assert "no JDK 17 was found" in done.output
    assert all(f"{step}/6 " in done.output for step in range(1, 7))
    found, following = done.output.splitlines()[-2:]
    assert found.startswith("duckdb with ") and "interval" in found
    assert following.startswith("Next: ")
    results = read_results(folder / "duckdb.jsonl")
    assert results.whole_blocks == MIN_BLOCKS
    assert "<rect" in (folder / "duckdb.html").read_text()
    assert sorted(path.name for path in folder.iterdir()) == [
        "duckdb.html",
        "duckdb.jsonl",
        "machine.json",
    ]
    assert records.names() == []

    again = CliRunner().invoke(demo.command, ["-o", str(folder)])
    assert isinstance(again.exception, UsageError)


@pytest.mark.usefixtures("without_java")
def test_what_does_not_fit_into_the_time_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "SCALE_FACTOR", 0.01)
    monkeypatch.setattr(demo, "TIME_BOX_S", 0.001)
    done = CliRunner().invoke(demo.command, ["-o", str(tmp_path / "demo")])
    assert isinstance(done.exception, EngineFailed)
    assert "leaves this engine out" in done.output


def test_without_any_engine_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "get", lambda name: Missing())
    done = CliRunner().invoke(demo.command, [])
    assert isinstance(done.exception, EngineFailed)
    assert "no engine can run here" in str(done.exception)
    assert "no JDK 17" in str(done.exception)
