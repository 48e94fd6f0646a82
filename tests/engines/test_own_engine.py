"""An engine from outside the package: the one that docs/adding-an-engine.md prints, used whole."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from atoll.bench.results import read_results
from atoll.schema.results import QueryTime, VerifyResult
from tests.engines.deployment_parts import ROOT, left_over

PAGE = ROOT / "docs/adding-an-engine.md"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder on Python's path with the page's package in it, as pip would leave it."""
    folder = tmp_path_factory.mktemp("site")
    blocks = dict(re.findall(r"```(toml|python)\n(.*?)```", PAGE.read_text(), re.DOTALL))
    (folder / "duckling.py").write_text(blocks["python"])
    group, entry = blocks["toml"].strip().splitlines()
    info = folder / "duckling-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: duckling\nVersion: 1.0\n")
    name = re.fullmatch(r'\[project\.entry-points\."(.*)"\]', group)
    assert name is not None
    (info / "entry_points.txt").write_text(f"[{name[1]}]\n{entry.replace(chr(34), '')}\n")
    return folder


def atoll(site: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "atoll", *arguments],
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_is_planned_for_and_measured_under_two_policies(site: Path, tmp_path: Path) -> None:
    assert json.loads(atoll(site, "plan", "duckling", "--json"))["engine"] == "duckling"
    path = tmp_path / "r.jsonl"
    atoll(
        site,
        *("bench", "duckling", "--policies", "wim,wic", "--queries", "1,6,18"),
        *("--sf", "0.01", "--blocks", "1", "-o", str(path)),
    )
    lines = read_results(path).lines
    answers = {
        (line.label, line.query): line.answer for line in lines if isinstance(line, QueryTime)
    }
    assert answers == {
        (f"duckling/{policy}", query): "ok"
        for policy in ("wim", "wic")
        for query in ("q1", "q6", "q18")
    }
    assert [line.drifted for line in lines if isinstance(line, VerifyResult)] == [0, 0]


def test_it_comes_up_where_planned_and_goes_down(site: Path) -> None:
    assert "ready" in atoll(site, "up", "duckling", "--policy", "wic", "-d")
    atoll(site, "verify", "duckling")
    assert atoll(site, "down", "duckling") == "duckling: down\n"
    assert left_over("duckling") == []
