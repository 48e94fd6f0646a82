"""What `make perf-tuning` compares, at a size of milliseconds: its bars, or a wrong answer."""

from __future__ import annotations

from pathlib import Path
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
    monkeypatch.setattr(tuning, "WRITTEN_BYTES", 1 << 20)
    monkeypatch.setattr(tuning, "WRITING_S", 0.01)
    monkeypatch.setattr(tuning, "peers_python", lambda: None)


def test_each_workload_has_a_bar_on_each_scheduler(capsys: pytest.CaptureFixture[str]) -> None:
    tuning.compare()
    bars = [line.split()[1] for line in capsys.readouterr().out.splitlines() if line[:4] == "bar "]
    assert bars == [
        f"tuning-{case}-{scheduler}-over-duckdb-speedup"
        for case in ("w1", "w1-heavy-key", "w2", "w3", "w3-far-keys")
        for scheduler in ("plain", "atoll")
    ] + [f"tuning-data-{dataset}-of-stream" for dataset in tuning.DATASETS]


class StandIn:
    """A peer that gives the answer of its folder's rows, but for one sum."""

    def __init__(self, python: str, name: str, workload: str, folder: Path, threads: int) -> None:
        self._answer = (1, 2) if name == "datafusion" else (200, 20000)

    def __enter__(self) -> StandIn:
        return self

    def ask(self) -> tuple[float, tuple[int, ...]]:
        return 1.0, self._answer

    def __exit__(self, *_: object) -> None:
        pass


def test_another_answer_of_a_peer_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "peers_python", lambda: "python")
    monkeypatch.setattr(tuning, "Peer", StandIn)
    monkeypatch.setattr(tuning, "CASES", [case for case in tuning.CASES if case.name == "w2"])
    with pytest.raises(
        WrongAnswer, match=r"w2 on datafusion: \(1, 2\), DuckDB at first: \(200, 20000\)"
    ):
        tuning.compare()


def test_another_answer_than_duckdbs_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    run = tuning._run

    def wrong(case: tuning.Case, scheduler: str, threads: int, *flags: str) -> dict[str, Any]:
        found = run(case, scheduler, threads, *flags)
        found["answer"]["rows"] += scheduler == "atoll"
        return found

    monkeypatch.setattr(tuning, "_run", wrong)
    with pytest.raises(WrongAnswer, match="w1 on atoll"):
        tuning.compare()
