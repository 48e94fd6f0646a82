"""Logs: the last lines of a file, and lines as they come."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from atoll.errors import UsageError
from atoll.supervise import records
from atoll.supervise.logs import follow, last_lines, log_files
from tests.parts.faults import fails


@pytest.mark.parametrize(
    ("text", "count", "lines"),
    [
        ("a\nb\nc\n", 2, ["b", "c"]),
        ("a\nb\nc", 2, ["b", "c"]),
        ("a\n", 5, ["a"]),
        ("", 5, []),
        ("a\nb\n", 0, []),
        ("x" * 200_000 + "\n" + "y" * 200_000 + "\nend\n", 2, ["y" * 200_000, "end"]),
    ],
)
def test_last_lines(text: str, count: int, lines: list[str], tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text(text)
    assert last_lines(log, count) == (lines, len(text))


def test_a_log_that_is_not_there_yet_is_empty(tmp_path: Path) -> None:
    assert last_lines(tmp_path / "x.log", 3) == ([], 0)


def test_lines_are_followed_through_a_restart(tmp_path: Path) -> None:
    log = tmp_path / "w.log"
    log.write_text("old\n")

    def replace() -> None:
        log.rename(tmp_path / "other")  # so that the new file has another inode
        log.write_text("n\n")

    steps: list[Callable[[], object]] = [
        lambda: log.open("a").write("one\ntw"),
        lambda: log.open("a").write("o\n"),
        replace,
        lambda: log.open("a").write("last\n"),
    ]

    def step() -> None:
        steps.pop(0)()

    came = follow({"w": log}, {"w": 4}, goes_on=lambda: bool(steps), pause=step)
    assert list(came) == [("w", "one"), ("w", "two"), ("w", "n"), ("w", "last")]


def test_logs_are_found_by_process() -> None:
    folder = records.logs("logged")
    for name in ("worker-0", "coordinator", "supervisor"):
        (folder / f"{name}.log").touch()
    assert list(log_files("logged", None)) == ["coordinator", "worker-0"]
    assert list(log_files("logged", "supervisor")) == ["supervisor"]
    with fails(UsageError, name="logged", process="'x'", known="coordinator, supervisor, worker-0"):
        log_files("logged", "x")
    with fails(UsageError, name="'nobody'"):
        log_files("nobody", None)
    with fails(UsageError, name="'../x' cannot"):
        log_files("../x", None)
