"""An experiment with a real engine, from the command to the verdict."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from atoll.bench.results import read_results
from atoll.cli import run
from atoll.experiments.catalog import get
from tests.parts.postgresql import ORDINARY_USER

pytestmark = pytest.mark.installed

RUN = (sys.executable, "-m", "atoll", "experiment", "run")


def atoll(
    *arguments: str, state: Path, by: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*by, *RUN, *arguments],
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
        env={**os.environ, "XDG_STATE_HOME": str(state)},
    )


def test_a_claim_holds_and_its_opposite_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What two queries hold is the same on any machine."""
    path = tmp_path / "tab2.jsonl"
    arguments = ("olap-tab2", "--scale", "smoke", "-o", str(path))
    done = atoll(*arguments, state=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Tab. 2 of olap-on-chiplets and ours" in done.stdout
    assert "milan1 (published)" in done.stdout and "A (measured)" in done.stdout
    assert "\nA, duckdb: held\n" in done.stdout
    header = read_results(path).header
    assert header.command.split()[1:4] == ["experiment", "run", "olap-tab2"]
    assert [one.label for one in header.entrants] == ["duckdb/wim"]
    again = atoll(*arguments, "--resume", state=tmp_path)  # all blocks are there
    assert again.returncode == 0, again.stderr
    figure = "Tab. 2 of"
    assert again.stdout.partition(figure)[2] == done.stdout.partition(figure)[2]

    experiment = get("olap-tab2")
    opposite = experiment.check.model_copy(
        update={"shape": "peak(query=q11) > 5 * peak(query=q21)"}
    )
    monkeypatch.setattr(
        "atoll.cli.experiment.get", lambda _: experiment.model_copy(update={"check": opposite})
    )
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    capsys.readouterr()
    assert run(["experiment", "run", *arguments, "--resume"]) == 1
    shown = capsys.readouterr()
    assert "\nA, duckdb: did not hold\n" in shown.out
    assert shown.err.endswith("atoll: olap-tab2: the claim did not hold for duckdb\n")


def test_a_figure_that_means_nothing_here_is_answered_at_once(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    done = atoll("olap-fig12", "-o", str(path), state=tmp_path)
    assert done.returncode == 2 and not path.exists()
    assert "means nothing on this machine: it needs " in done.stderr


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "title"),
    [
        (("olap-tab2", "--scale", "smoke", "--engines", "duckdb,spark"), "Tab. 2"),
        (("olap-tab2", "--scale", "smoke", "--engines", "trino"), "Tab. 2"),
        (("olap-tab1",), "Tab. 1"),
        (("tuning-fig2", "--scale", "smoke"), "Fig. 2"),
        (("tuning-fig5c", "--scale", "smoke"), "Fig. 5c"),
        (("tuning-fig6", "--scale", "smoke"), "Fig. 6"),
        (("tuning-fig6j", "--scale", "smoke"), "Fig. 6j"),
        (("tuning-fig7", "--scale", "smoke"), "Fig. 7"),
        (("tuning-fig8", "--scale", "smoke"), "Fig. 8"),
    ],
)
def test_an_experiment_of_each_kind(arguments: tuple[str, ...], title: str, tmp_path: Path) -> None:
    name = "p.json" if title in ("Tab. 1", "Fig. 2") else "r.jsonl"
    done = atoll(*arguments, "-o", str(tmp_path / name), state=tmp_path)
    assert done.returncode in (0, 1), done.stderr
    assert f"{title} of {get(arguments[0]).paper} and ours" in done.stdout


@pytest.mark.long
def test_tpch_on_the_servers_of_numa_query_tuning(tmp_path: Path) -> None:
    """PostgreSQL and MariaDB, which refuse root, each with another malloc."""
    path = str(tmp_path / "r.jsonl")
    arguments = ("tuning-fig9", "--scale", "smoke", "--engines", "postgresql,mariadb", "-o", path)
    done = atoll(*arguments, state=tmp_path, by=ORDINARY_USER)
    assert done.returncode in (0, 1), done.stderr
    assert "\nA, postgresql: " in done.stdout and "\nA, mariadb: " in done.stdout
