"""How atoll-sharedplan is asked, and what becomes of its ends."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from atoll.engines import sharedplan
from atoll.engines.sharedplan import SharedPlan
from atoll.errors import EngineFailed
from atoll.schema.placement import Placement
from tests.parts.fake_host import FakeHost
from tests.parts.faults import fails

STARTED = {"threads": [{"operators": ["scan", "top"], "tid": 8}, {"operators": ["join"], "tid": 9}]}
RESULT = {
    "format": "atoll/shared-plan",
    "version": 1,
    "deployment": "os",
    "scale": 0.01,
    "seed": 1,
    "tables_bytes": 1000,
    "browsers": 10,
    "think_ms": 0,
    "seconds": 2.0,
    "interactions": 700,
    "cycles": 20,
    "verified": 9,
    "per_window": [300.0, 400.0],
    "p50_ms": 1.0,
    "p90_ms": 2.0,
    "p99_ms": 3.0,
    "operators_cpu_s": 1.0,
    "cores": [0],
}


class Scripted:
    """A program that gives these answers, and then ends with its last words."""

    pid = 7

    def __init__(self, argv: Sequence[str], answers: Sequence[Any], words: str) -> None:
        self.argv, self.answers, self.words = tuple(argv), list(answers), words
        self.asked: list[str] = []
        self.closed = False

    def send(self, line: str) -> None:
        self.asked.append(line)
        if not self.answers:
            raise BrokenPipeError

    def receive(self, *, timeout_s: float) -> str:
        if not self.answers:
            raise EOFError
        answer = self.answers.pop(0)
        if answer is None:
            raise TimeoutError
        return json.dumps(answer)

    def last_words(self) -> str:
        return self.words

    def close(self) -> int:
        self.closed = True
        return 0


class World:
    def __init__(self, *answers: Any, words: str = "") -> None:
        self.answers, self.words = answers, words
        self.programs: list[Scripted] = []
        self.host = FakeHost(on_converse=self._start)

    def _start(self, argv: Sequence[str], env: Mapping[str, str]) -> Scripted:
        self.programs.append(Scripted(argv, self.answers, self.words))
        return self.programs[-1]


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharedplan, "find_program", lambda name: f"/bin/{name}")


def test_a_run_from_start_to_end(tmp_path: Path) -> None:
    world = World(STARTED, RESULT)
    with SharedPlan(("--scale", "0.5")).start(world.host, tmp_path, [2, 3]) as running:
        threads = [(one.operators, one.pid, one.tid) for one in running.threads()]
        assert threads == [(("scan", "top"), 7, 8), (("join",), 7, 9)]
        found = running.measure(2)
        assert (found.per_window, found.unit) == ((300.0, 400.0), "interactions/s")
        assert (found.p50_ms, found.p90_ms, found.p99_ms) == (1, 2, 3)
    (program,) = world.programs
    path = str(tmp_path / "placement.json")
    flags = ("--scale", "0.5", "--requests", "yes", "--placement", path)
    assert program.argv == ("/bin/atoll-sharedplan", *flags)
    assert (program.asked, program.closed) == (["measure 2"], True)
    placement = Placement.model_validate_json(Path(path).read_text("utf-8"))
    assert placement.deployment == "os" and [core.cpu for core in placement.cores] == [2, 3]


def test_a_placement_starts_it_again(tmp_path: Path) -> None:
    world = World(STARTED)
    with SharedPlan().start(world.host, tmp_path, [0]) as running:
        running.place(sharedplan.anywhere([1]))
        first, second = world.programs
        assert first.closed and not second.closed
    assert second.closed


def test_a_program_that_ends_says_why(tmp_path: Path) -> None:
    for answers in ((), (STARTED,)):
        world = World(*answers, words="atoll-sharedplan: needs more\nmemory\n")
        with (
            fails(EngineFailed, words="atoll-sharedplan: needs more memory"),
            SharedPlan().start(world.host, tmp_path, [0]) as running,
        ):
            running.measure(1)
        assert world.programs[0].closed
    with fails(EngineFailed), SharedPlan().start(World().host, tmp_path, [0]):
        pass


def test_a_program_that_hangs_is_ended(tmp_path: Path) -> None:
    world = World(STARTED, None)
    with (
        fails(EngineFailed, seconds="61"),
        SharedPlan().start(world.host, tmp_path, [0]) as running,
    ):
        running.measure(1)
    assert world.programs[0].closed


def test_a_program_that_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharedplan, "find_program", lambda name: None)
    with fails(EngineFailed), SharedPlan().start(World().host, tmp_path, [0]):
        pass


def test_an_answer_that_is_none(tmp_path: Path) -> None:
    world = World(STARTED, {**RESULT, "p50_ms": -1})
    with (
        pytest.raises(EngineFailed, match="p50_ms"),
        SharedPlan().start(world.host, tmp_path, [0]) as running,
    ):
        running.measure(1)
