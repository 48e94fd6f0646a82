"""The progress of a bench on stderr: a changing line on a terminal, otherwise one per step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.status import Status

from atoll.bench.runner import Tick
from atoll.engines.api import Progress
from atoll.report.numbers import duration


class BenchProgress:
    """Shows the ticks of a bench, and how its deployments start."""

    def __init__(self, console: Console, status: Status | None, entrants: int):
        self._console = console
        self._status = status
        self._entrants = entrants
        self._where = ""
        self._began_s = 0.0

    def tick(self, tick: Tick) -> None:
        now_s = self._console.get_time()
        blocks = f"/{tick.blocks}" if tick.blocks else ""
        self._where = (
            f"block {tick.block + 1}{blocks}, {tick.position + 1}/{self._entrants} {tick.label}"
        )
        if tick.doing == "starting":
            self._began_s = now_s
            if self._status is None:
                self.note(f"{self._where}: starting")
        if tick.doing == "done":
            self._console.print(
                f"{self._where}: done in {duration(max(now_s - self._began_s, 1e-3))}", markup=False
            )
        elif tick.doing.startswith("failed"):
            self._console.print(f"{self._where}: {tick.doing}", markup=False, style="red")
        elif tick.doing.startswith("left out"):
            self._console.print(f"{self._where}: {tick.doing}", markup=False, style="yellow")
        else:
            self.say(tick.doing)

    def note(self, text: str) -> None:
        self._console.print(text, markup=False)

    def say(self, doing: str) -> None:
        """Show a quick change: on a terminal only, since it is too much for a log."""
        if self._status is not None:
            self._status.update(escape(f"{self._where}: {doing}"))


@contextmanager
def preparation() -> Iterator[Progress]:
    """Progress while data and answers are prepared: a changing line, on a terminal only."""
    with _stderr() as (_, status):

        def show(doing: str, share: float | None) -> None:
            if status is not None:
                status.update(doing if share is None else f"{doing} ({share:.0%})")

        yield show


@contextmanager
def bench_progress(entrants: int) -> Iterator[BenchProgress]:
    with _stderr() as (console, status):
        yield BenchProgress(console, status, entrants)


@contextmanager
def _stderr() -> Iterator[tuple[Console, Status | None]]:
    """The console, with a status line if it is a terminal."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    if not console.is_terminal:
        yield console, None
        return
    with console.status("") as status:
        yield console, status
