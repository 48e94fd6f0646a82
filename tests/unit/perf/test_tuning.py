"""What `make perf-tuning` compares, at a size of milliseconds: six bars, or a wrong answer."""

from __future__ import annotations

from typing import Any

import pytest

from perf import tuning
from perf.harness import WrongAnswer

measured = tuning._run


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(case: tuning.Case, scheduler: str, threads: int, *flags: str) -> dict[str, Any]:
        return measured(case, scheduler, threads, "--records", "20000", *flags)

    monkeypatch.setattr(tuning, "_run", run)
    monkeypatch.setattr(tuning, "ROUNDS", 2)


def test_each_workload_has_a_bar_on_each_scheduler(capsys: pytest.CaptureFixture[str]) -> None:
    tuning.compare()
    bars = [line.split()[1] for line in capsys.readouterr().out.splitlines() if line[:4] == "bar "]
    assert bars == [
        f"tuning-{workload}-{scheduler}-over-duckdb-speedup"
        for workload in ("w1", "w2", "w3")
        for scheduler in ("plain", "atoll")
    ]


def test_another_answer_than_duckdbs_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    run = tuning._run

    def wrong(case: tuning.Case, scheduler: str, threads: int, *flags: str) -> dict[str, Any]:
        found = run(case, scheduler, threads, *flags)
        found["answer"]["rows"] += scheduler == "atoll"
        return found

    monkeypatch.setattr(tuning, "_run", wrong)
    with pytest.raises(WrongAnswer, match="w1 on atoll"):
        tuning.compare()
