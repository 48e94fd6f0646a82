"""Engines and their parts as a table, and progress while they are fetched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from atoll.engines.availability import EngineState
from atoll.install.catalog import Artifact, Part, Sdist, Wheel
from atoll.install.progress import Tell
from atoll.report.terminal.grid import grid
from atoll.schema.size import decimal_size
from atoll.schema.text import one_line

_LOGGED_PERCENT = 20  # between the lines of a log


def engine_table(states: Sequence[EngineState]) -> Table:
    table = grid(header="bold", gap=1)
    for title in ("ENGINE", "VERSION", "STATE", "JAVA"):
        table.add_column(title, overflow="fold")
    table.add_column("SIZE", justify="right", no_wrap=True)
    for engine in states:
        table.add_row(
            *(engine.name, engine.version or "–", engine.state, engine.java_version or "–"),
            decimal_size(engine.size_bytes) if engine.size_bytes else "–",
        )
    return table


def where_line(engine: EngineState) -> str:
    """Where the engine and its Java are, or why it cannot start. Not in the table, whose cells
    would break paths."""
    if engine.why:
        return f"{engine.name}: {one_line(engine.why)}"
    java = f", with {_short(engine.java)}" if engine.java else ""
    return f"{engine.name}: {_short(engine.home)}{java}"


def _short(path: str) -> str:
    home = str(Path.home())
    return f"~{path.removeprefix(home)}" if path.startswith(f"{home}/") else path or "–"


def announcement(parts: Sequence[Part]) -> list[str]:
    """The parts to fetch, with their sizes."""
    lines = [
        f"{part.name}: {decimal_size(part.fetched_bytes)} by {_client(part)}, "
        f"{decimal_size(part.unpacked_bytes)} unpacked, {part.licence}"
        for part in parts
    ]
    if len(parts) > 1:
        fetched = decimal_size(sum(part.fetched_bytes for part in parts))
        unpacked = decimal_size(sum(part.unpacked_bytes for part in parts))
        lines.append(f"total: {fetched} to fetch, {unpacked} unpacked")
    return lines


def _client(part: Part) -> str:
    if isinstance(part.source, Artifact):
        return f"Maven ({part.source.coordinates})"
    if isinstance(part.source, Wheel | Sdist):
        return f"pip ({part.source.name} {part.source.version})"
    return f"apt ({' '.join(part.source.names)})"


@contextmanager
def install_progress() -> Iterator[Tell]:
    """Progress on stderr in bytes: a bar on a terminal, otherwise lines."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    if not console.is_terminal:
        yield _Lines(console)
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[amount]}"),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:

        def tell(doing: str, done_bytes: int = 0, total_bytes: int = 0) -> None:
            amount = (
                f"{decimal_size(done_bytes)} of {decimal_size(total_bytes)}" if total_bytes else ""
            )
            for task in progress.tasks:
                if task.description == doing:
                    progress.update(task.id, completed=done_bytes, amount=amount)
                    return
                progress.remove_task(task.id)
            total = total_bytes or None
            progress.add_task(doing, completed=done_bytes, total=total, amount=amount)

        yield tell


class _Lines:
    """A line when something new begins, and one for each fifth of it."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._doing = ""
        self._next = 0

    def __call__(self, doing: str, done_bytes: int = 0, total_bytes: int = 0) -> None:
        percent = 100 * done_bytes // total_bytes if total_bytes else 0
        if doing != self._doing:
            self._doing, self._next = doing, 0
        if percent < self._next:
            return
        self._next = (percent // _LOGGED_PERCENT + 1) * _LOGGED_PERCENT
        amount = (
            f" ({decimal_size(done_bytes)} of {decimal_size(total_bytes)}, {percent} %)"
            if total_bytes
            else ""
        )
        self._console.print(f"{doing}{amount}", markup=False)
