"""`atoll oltp`: what it refuses, before anything is loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from atoll.cli import oltp_experiment, run
from atoll.engines.api import Installation
from atoll.engines.postgresql.engine import PostgreSQLEngine
from atoll.errors import DiskFull
from atoll.experiments.catalog import get
from atoll.oltp import prepare
from tests.parts.faults import check_complaint
from tests.parts.machines import milan
from tests.parts.oltp import oltp_runs

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """PostgreSQL, for any user, and nothing may be loaded."""
    (tmp_path / "pgbench").touch(mode=0o700)
    found = Installation("15.18", str(tmp_path), cache=str(tmp_path))
    monkeypatch.setattr(PostgreSQLEngine, "locate", lambda engine, host: found)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["tpcc", "--warehouses", "0"], {"option": "--warehouses", "value": "0"}),
        (["ycsb", "--records", "1"], {"option": "--records", "value": "1"}),
        (["tpcc", "--cores", "0"], {"cores": "--cores 0"}),
        (["tpcc", "--cores", "2,x"], {"cores": "--cores 2,x"}),
        (["tpcd"], {"name": "tpcd"}),
    ],
)
def test_wrong_usage_is_one_line(
    arguments: list[str], named: dict[str, str], capsys: Capture
) -> None:
    assert run(["oltp", "run", *arguments]) == 2
    check_complaint(capsys.readouterr().err, **named)


def test_more_cores_than_there_are(capsys: Capture) -> None:
    assert run(["oltp", "run", "tpcc", "--warehouses", "1", "--cores", "99999"]) == 2
    assert "cores=99999: the plan has" in capsys.readouterr().err


@pytest.mark.parametrize("workload", ["tpcc", "ycsb"])
def test_more_than_the_memory_says_how_much_and_what_fits(workload: str, capsys: Capture) -> None:
    sizes = ["--warehouses", "1000000", "--records", "1000000000000"]
    assert run(["oltp", "run", workload, *sizes]) == 2
    said = capsys.readouterr().err
    assert f"{workload} of size" in said and "takes about" in said and "or less" in said


def test_too_small_a_disk_is_said_before_anything_is_loaded(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """Both workloads have the same rows, so these need room once, and once for a copy."""
    asked: list[int] = []

    def require_room(folder: Path, needed_bytes: int, what: str) -> None:
        asked.append(needed_bytes)
        raise DiskFull(what)

    monkeypatch.setattr(prepare, "require_room", require_room)
    records = ["--records", "10000", "--cores", "1"]
    assert run(["oltp", "run", "ycsb", "ycsb-zipf", *records]) == 6
    assert capsys.readouterr().err.endswith("atoll: ycsb, ycsb-zipf\n")
    assert asked == [2 * 12_000_000 + (2 << 30)]


def test_standard_output_is_no_results_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["oltp", "run", "tpcc", "--cores", "99999", "-o", "-"]) == 2
    assert "--json prints on stdout" in capsys.readouterr().err


def test_a_file_that_is_there_is_kept(tmp_path: Path, capsys: Capture) -> None:
    there = tmp_path / "x.json"
    there.write_text("{}")
    assert run(["oltp", "run", "tpcc", "-o", str(there)]) == 2
    assert there.read_text() == "{}"
    said = capsys.readouterr().err
    assert "exists; choose another file with -o" in said


def test_fig13_needs_chiplets(capsys: Capture) -> None:
    assert run(["experiment", "run", "arcas-fig13", "--engines", "postgresql"]) == 2
    assert run(["experiment", "show", "arcas-fig13"]) == 0
    assert "equivalent within 2 %" in capsys.readouterr().out


def test_fig13_is_run_by_its_scale_and_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Capture
) -> None:
    alike = [100.0] * 10
    found = oltp_runs(milan(1, 8, 8), 8, {"tpcc": (alike, alike)})
    file = tmp_path / "r.json"
    file.write_text(found.model_dump_json())
    asked: dict[str, object] = {}

    def measured(sizes: object, cores: object, options: object, **more: object) -> object:
        asked.update(sizes=sizes, cores=cores, **more)
        return found, file

    monkeypatch.setattr(oltp_experiment, "run_oltp", measured)
    figure = get("arcas-fig13")
    assert figure.oltp
    ours = oltp_experiment.run_transactions(
        figure, figure.oltp, figure.oltp.scales["smoke"], milan(1, 8, 8), None
    )
    assert asked["sizes"] == {"ycsb": 100_000, "ycsb-zipf": 100_000, "tpcc": 2}
    assert asked["cores"] == (2, 4, 8, 16, 32)
    assert ours.source == "r.json"
    assert run(["oltp", "show", str(file)]) == 0
    shown = capsys.readouterr().out
    assert "tpcc, 8 cores: spread over packed 1.000" in shown
    assert "equivalent within ±2 %" in shown
    assert run(["experiment", "report", "arcas-fig13", str(file)]) == 0
    said = capsys.readouterr().out
    assert "A, tpcc: held" in said and "commits(placement=spread, cores=8)" in said


def test_a_file_that_was_edited_by_hand_is_refused(tmp_path: Path, capsys: Capture) -> None:
    found = oltp_runs(milan(1, 8, 8), 8, {"tpcc": ([100.0] * 5, [100.0] * 5)})
    first = found.runs[0]
    condition = first.conditions[0].model_copy(update={"name": "another"})
    other = first.model_copy(update={"conditions": (condition,)})
    for runs, why in (
        (found.runs[1:], f"block {first.block} has not one run of each workload in each seat"),
        ((*found.runs, first), f"block {first.block} has not one run of each"),
        ((other, *found.runs[1:]), "runs of tpcc differ in transactions or conditions"),
    ):
        file = tmp_path / "edited.json"
        file.write_text(found.model_copy(update={"runs": runs}).model_dump_json())
        assert run(["oltp", "show", str(file)]) == 2
        assert f"{file}: {why}" in capsys.readouterr().err
