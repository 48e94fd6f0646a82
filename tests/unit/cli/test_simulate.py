"""`atoll simulate` up to the guest: what it refuses, and what it hands on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from atoll.cli import run, simulate
from atoll.errors import GuestFailed
from atoll.guest.topology import Topology
from tests.parts.faults import check_complaint
from tests.parts.fills import counts, row
from tests.parts.profiles import epyc

Capture = pytest.CaptureFixture[str]
COUNTS = counts(row((5, 7, 11), (13, 17)))


class FakeBooted:
    """A guest that runs nothing, and says what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def bench(self, targets: Sequence[str], options: Sequence[str], output: Path, **_: Any) -> int:
        self.asked.append((list(targets), list(options)))
        if "--product" in options:
            output.write_text("cut off")
            raise GuestFailed("died")
        return 5

    def count(self, command: Sequence[str], *_: Any, **__: Any) -> Any:
        self.asked.append(list(command))
        return 3, COUNTS


@pytest.fixture
def guest(monkeypatch: pytest.MonkeyPatch) -> FakeBooted:
    fake = FakeBooted()

    @contextmanager
    def booted(topology: Topology, quantum: int) -> Iterator[FakeBooted]:
        fake.asked.append((topology.name, quantum))
        yield fake

    monkeypatch.setattr(simulate, "booted", booted)
    monkeypatch.setattr(simulate, "prepare", lambda *_, **__: None)
    return fake


def test_options_of_the_bench_are_handed_on_as_given(guest: FakeBooted) -> None:
    argv = ["duckdb", "--quantum", "1000", "--policies", "wim,wic", "--queries", "1,6", "--smt"]
    assert run(["simulate", *argv, "--axis", "memory=bind", "--axis", "n=2,4"]) == 5
    (_, quantum), (targets, options) = guest.asked
    assert (quantum, targets) == (1000, ["duckdb"])
    pairs = [tuple(options[at : at + 2]) for at, word in enumerate(options) if word[:2] == "--"]
    assert {("--blocks", "1"), ("--sf", "0.01"), ("--policies", "wim,wic")} <= set(pairs)
    assert {("--axis", "memory=bind"), ("--axis", "n=2,4"), ("--queries", "1,6")} <= set(pairs)
    assert "--smt" in options
    assert "--streams" not in options


def test_a_guest_that_dies_leaves_results_and_says_where(
    guest: FakeBooted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert run(["simulate", "duckdb", "--product"]) == 97
    (results,) = tmp_path.rglob("*.jsonl")
    assert capsys.readouterr().err.endswith(f"results: {results}\natoll: died\n")


def test_a_machine_without_a_word_about_it_has_its_name(
    guest: FakeBooted, tmp_path: Path, capsys: Capture
) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text("packages = 1\ncores = 2\nmemory_mib = 1024\n")
    assert run(["simulate", "--machine", str(mine), "--", "ls"]) == 3
    assert capsys.readouterr().err == "simulated machine: mine\n"


def test_a_command_gives_its_status_and_its_counts(
    guest: FakeBooted, tmp_path: Path, capsys: Capture
) -> None:
    output = tmp_path / "fills.json"
    argv = ["simulate", "--machine", "smt", "-o", str(output), "--json", "--", "ls", "--all", "--"]
    assert run(argv) == 3
    assert guest.asked == [("smt", 10_000), ["ls", "--all", "--"]]
    assert capsys.readouterr().out == output.read_text() == COUNTS.model_dump_json(indent=1) + "\n"


def test_a_profile_gives_the_machine_its_latencies(
    guest: FakeBooted, tmp_path: Path, capsys: Capture
) -> None:
    measured = tmp_path / "profile.json"
    measured.write_text(epyc(chiplets=1).model_dump_json())
    assert run(["simulate", "--profile", str(measured), "--", "ls"]) == 3
    assert "latencies measured on SYNTHETIC: EPYC-like" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "named"),
    [
        ([], {"what": "engines or plans"}),
        (["duckdb", "--", "ls"], {"what": "engines or plans"}),
        (["--policies", "wim", "--", "ls"], {"option": "--policies"}),
        (["--sf", "1", "--", "ls"], {"option": "--sf"}),
        (
            ["--machine", "epyc-7713", "--", "ls"],
            {"machine": "epyc-7713", "one": "xeon-8480x2-snc4"},
        ),
        (["--machine", "smt", "--cpus", "32", "--", "ls"], {"option": "--cpus", "machine": "smt"}),
        (
            ["--machine", "smt", "--cache-scale", "1", "--", "ls"],
            {"option": "--cache-scale", "machine": "smt"},
        ),
        (["-o", "/nonexistent/fills.json", "--", "ls"], {"path": "/nonexistent/fills.json"}),
        (["--profile", "/nonexistent", "--", "ls"], {"path": "/nonexistent"}),
        (["no-engine"], {"engine": "no-engine"}),
        (["duckdb", "--suite", "nothing"], {"suite": "nothing"}),
    ],
)
def test_what_cannot_be_simulated_is_refused_before_a_boot(
    argv: list[str], named: dict[str, str], capsys: Capture
) -> None:
    assert run(["simulate", *argv]) == 2
    check_complaint(capsys.readouterr().err, **named)


def test_caches_that_cannot_be_simulated_are_refused_before_a_boot(
    guest: FakeBooted, tmp_path: Path, capsys: Capture
) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text('packages = 1\ncores = 2\nmemory_mib = 1024\ncaches = "Zen9"\n')
    assert run(["simulate", "duckdb", "--machine", str(mine)]) == 2
    check_complaint(capsys.readouterr().err, machine="mine", cpu="Zen9")
    assert not guest.asked
