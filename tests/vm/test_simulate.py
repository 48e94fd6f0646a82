"""`atoll simulate` from the host, through a boot of its own: a command, and DuckDB."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from atoll.bench.results import read_results
from atoll.cli import run
from atoll.guest import native
from atoll.schema.fills import FillCounts
from atoll.schema.results import PassDone, PassFills

LINES_PER_MIB = (1 << 20) // 64


def test_a_commands_fills_are_those_of_arithmetic(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """CPU 2 reads 40 MiB of the other node four times, and no L3 holds them."""
    sweep = native.built("cachesim-sweep", "native/tests/cachesim/cachesim-sweep")
    output = tmp_path / "fills.json"
    argv = ["--machine", "milan2", "-o", str(output), "--", sweep, "2", "1", "40", "4"]
    assert run(["simulate", *argv]) == 0
    assert b"from remote memory" in capfdbinary.readouterr().err
    counts = FillCounts.model_validate_json(output.read_text())
    remote = counts.sources("user", [1]).remote_memory
    assert remote == pytest.approx(4 * 40 * LINES_PER_MIB, rel=0.02), counts


@pytest.mark.long
def test_an_instance_a_chiplet_gets_less_from_other_chiplets(tmp_path: Path) -> None:
    output = tmp_path / "s.jsonl"
    argv = ["duckdb", "--policies", "wim,wicp", "--queries", "1,6"]
    assert run(["simulate", *argv, "-o", str(output)]) == 0
    results = read_results(output)
    assert any("2 x AMD EPYC 7713" in note for note in results.header.notes)
    assert results.header.fingerprint.emulated
    assert sum(isinstance(line, PassDone) for line in results.lines) == 2
    found = {line.label: line for line in results.lines if isinstance(line, PassFills)}
    shares = {}
    for label, line in found.items():
        assert line.fills is not None, line.fault
        sources = line.fills.sources()
        shares[label] = sources.share("other_chiplet") + sources.share("other_node")
    assert shares["duckdb/wicp"] < shares["duckdb/wim"] / 3, json.dumps(shares)
