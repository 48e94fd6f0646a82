"""What `make perf-indexes` says of runs: a bar for each index with a peer, or a wrong answer."""

from __future__ import annotations

import json

import pytest

from perf import indexes
from perf.harness import WrongAnswer

FOUND = ["art", "art-fast", "btree", "btree-fast", "congee", "absl::btree"]


def said(lookup_ns: float, rows: int = indexes.PROBES) -> str:
    return json.dumps({"build_s": 0.1, "lookup_ns": lookup_ns, "answer": [rows, 7, 8]})


def test_an_index_is_compared_with_the_best_of_its_kind(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = {"art": 10.0, "congee": 20.0, "btree": 60.0, "absl::btree": 50.0}
    monkeypatch.setattr(indexes, "_asked", lambda name, *_: said(figures.get(name, 1.0)))
    indexes.compare_on("zipf", FOUND)
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("bar")] == [
        "bar indexes-art-zipf-ratio 0.5 1.1 ok",
        "bar indexes-btree-zipf-ratio 1.2 1.1 short",
    ]
    assert "zipf art-fast over congee: 0.05 [0.05, 0.05]" in lines


def test_a_key_that_is_not_found_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexes, "_asked", lambda name, *_: said(1.0, rows=indexes.PROBES - 1))
    with pytest.raises(WrongAnswer, match="art on zipf"):
        indexes.compare_on("zipf", FOUND)


def test_another_answer_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    other = json.dumps({"lookup_ns": 1.0, "answer": [indexes.PROBES, 7, 9]})
    monkeypatch.setattr(
        indexes, "_asked", lambda name, *_: other if name == "congee" else said(1.0)
    )
    with pytest.raises(WrongAnswer, match="congee on zipf"):
        indexes.compare_on("zipf", FOUND)
