"""An experiment with a real engine, from the command to the verdict."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from atoll.bench.results import read_results

pytestmark = pytest.mark.installed

RUN = (sys.executable, "-m", "atoll", "experiment", "run")


def atoll(*arguments: str, state: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*RUN, *arguments],
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
        env={**os.environ, "XDG_STATE_HOME": str(state)},
    )


def test_a_small_experiment_ends_with_a_verdict(tmp_path: Path) -> None:
    path = tmp_path / "fig9.jsonl"
    arguments = ("olap-fig9", "--scale", "smoke", "-o", str(path))
    done = atoll(*arguments, state=tmp_path)
    assert done.returncode in (0, 1), done.stderr  # 1: the claim did not hold here
    assert "Fig. 9 of olap-on-chiplets and ours" in done.stdout
    assert "milan (published)" in done.stdout and "A (measured)" in done.stdout
    assert "\nA, duckdb: " in done.stdout
    header = read_results(path).header
    assert header.command.split()[1:4] == ["experiment", "run", "olap-fig9"]
    assert [axis.name for axis in header.axes] == ["policy", "cores"]
    again = atoll(*arguments, "--resume", state=tmp_path)  # all blocks are there
    assert again.returncode == done.returncode, again.stderr
    assert (
        again.stdout[again.stdout.index("Fig. 9") :] == done.stdout[done.stdout.index("Fig. 9") :]
    )


def test_a_figure_that_means_nothing_here_is_answered_at_once(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    done = atoll("numa-fig12", "-o", str(path), state=tmp_path)
    assert done.returncode == 2 and not path.exists()
    assert "means nothing on this machine: it needs 8 machines" in done.stderr


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "title"),
    [
        (("olap-tab2", "--scale", "smoke", "--engines", "duckdb,spark"), "Tab. 2"),
        (("olap-fig9", "--scale", "smoke", "--engines", "trino"), "Fig. 9"),
        (("olap-tab1",), "Tab. 1"),
    ],
)
def test_an_experiment_of_each_kind(arguments: tuple[str, ...], title: str, tmp_path: Path) -> None:
    name = "p.json" if title == "Tab. 1" else "r.jsonl"
    done = atoll(*arguments, "-o", str(tmp_path / name), state=tmp_path)
    assert done.returncode in (0, 1), done.stderr
    assert f"{title} of olap-on-chiplets and ours" in done.stdout
