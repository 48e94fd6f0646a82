"""The answers of a fleet: a row for each host, and below it a line for each fault."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from atoll.report.terminal.deployment import duration
from atoll.report.terminal.grid import grid
from atoll.schema.fleet_answers import HostAnswer
from atoll.schema.size import gib
from atoll.schema.text import first_of, one_line

_NONE = "–"
_MOST_NAMED = 5


def fleet_table(answers: Sequence[HostAnswer]) -> Table:
    """What all hosts have in common are the columns; a host that failed has what it answered."""
    names = list(dict.fromkeys(name for answer in answers for name in answer.facts))
    table = grid(header="bold", gap=1)
    table.add_column("HOST", overflow="fold")
    for name in names:
        is_text = any(isinstance(answer.facts.get(name), str) for answer in answers)
        title = name.removesuffix("_bytes").removesuffix("_s").upper()
        table.add_column(title, justify="left" if is_text else "right", overflow="fold")
    table.add_column("CLOCK", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for answer in answers:
        clock = f"{answer.clock.offset_s:+.3f} s" if answer.clock else _NONE
        cells = [_cell(name, answer.facts.get(name)) for name in names]
        words = (answer.host, *cells, clock, "failed" if answer.exit_code else "ok")
        table.add_row(*map(Text, words))  # not str, whose brackets would be markup
    return table


def fault_lines(answers: Sequence[HostAnswer]) -> list[str]:
    """Each warning with the hosts that have it; 'HOST: what is wrong; what to do'."""
    warned: dict[str, list[str]] = {}
    for answer in answers:
        for text in answer.warnings:
            warned.setdefault(one_line(text), []).append(answer.host)
    return [
        *(f"{first_of(hosts, _MOST_NAMED)}: warning: {text}" for text, hosts in warned.items()),
        *(
            f"{answer.host} ({answer.address}): {one_line(answer.error)}"
            for answer in answers
            if answer.exit_code
        ),
    ]


def _cell(name: str, value: str | int | float | None) -> str:
    if value is None or value == "":
        return _NONE
    if isinstance(value, str):
        return value
    if name.endswith("_bytes"):
        return gib(int(value))
    return duration(value) if name.endswith("_s") else str(value)
