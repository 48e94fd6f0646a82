"""The paper's numbers beside ours. Pure.

What is published and what is measured stand in columns of their own; nothing here is predicted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from atoll.experiments.claims import Reading, parse_claim, parse_term, terms_of
from atoll.experiments.ours import Ours, verdicts
from atoll.report.numbers import number
from atoll.report.table import Row, Table
from atoll.schema.experiment import Experiment, PaperMachine, Published
from atoll.schema.text import plural

_SIGNS = {"times": "×", "count": ""}
_NONE = "–"


@dataclass(frozen=True, slots=True)
class Figure:
    """One term of one engine: what the paper prints, and what each of our files has."""

    term: str
    engine: str
    unit: str
    published: tuple[Published, ...]
    measured: tuple[Reading | None, ...]


def figures(experiment: Experiment, found: Sequence[Ours]) -> list[Figure]:
    """Those of the paper first, then those of its claim, then what else was measured; without what
    nobody has."""
    units: dict[str, str] = {str(parse_term(p.term)): p.unit for p in experiment.published}
    of_claim = terms_of(parse_claim(experiment.check.shape))
    for term in (*of_claim, *(term for ours in found for term in ours.more)):
        units.setdefault(str(term), _unit_of(term.name, units))
    measured = [engine for ours in found for engine in ours.readings]
    engines = dict.fromkeys([*(one.engine for one in experiment.published), *measured])
    rows = [
        _figure(text, unit, engine, experiment, found)
        for text, unit in units.items()
        for engine in engines
    ]
    return [one for one in rows if one.published or any(one.measured)]


def side_by_side(experiment: Experiment, found: Sequence[Ours]) -> Table:
    """A row for each figure; ours are called A, B and so on."""
    several = len(experiment.machines) > 1
    rows: list[Row] = [
        (
            one.term,
            one.engine or _NONE,
            ", ".join(
                f"{each.value:g}{sign(one.unit)}{f' {each.machine}' if several else ''}"
                for each in one.published
            )
            or _NONE,
            *(_cell(reading, one.unit) for reading in one.measured),
        )
        for one in figures(experiment, found)
    ]
    ours = zip(names(found), found, strict=True)
    who = "workload" if experiment.workload or experiment.oltp else "engine"
    columns = ("figure", who, "published", *(f"{name} {one.basis}" for name, one in ours))
    return Table(f"{experiment.figure} of {experiment.paper} and ours", columns, rows)


def without_repeats(table: Table) -> Table:
    """Each figure named once, above its engines."""
    above = ["", *(row[0] for row in table.rows)]
    rows = zip(above, table.rows, strict=False)
    return table._replace(rows=[("" if row[0] == was else row[0], *row[1:]) for was, row in rows])


def names(found: Sequence[Ours]) -> list[str]:
    return [chr(ord("A") + index) if index < 26 else f"#{index + 1}" for index in range(len(found))]


def machines(experiment: Experiment, found: Sequence[Ours]) -> list[str]:
    """Who is who, a line each."""
    paper = experiment.bench.scales.get("paper") if experiment.bench else None
    data = f"; {experiment.bench.suite} SF {paper.sf:g}" if experiment.bench and paper else ""
    lines = [
        f"{key} (published): {one.title}, {shape(one)}{data}; {one.where}"
        for key, one in experiment.machines.items()
    ]
    for name, ours in zip(names(found), found, strict=True):
        size = f"; {ours.size}" if ours.size else ""
        lines.append(f"{name} ({ours.basis}): {ours.machine}{size}; {ours.source}")
        lines += [f"{name}, before you trust a figure: {one}" for one in ours.warnings]
    return lines


def judged(experiment: Experiment, found: Sequence[Ours]) -> list[tuple[str, tuple[str, ...]]]:
    """Each engine's verdict on each machine, and the comparisons that it rests on."""
    return [
        (
            f"{name}, {engine}: {verdict.outcome}" if engine else f"{name}: {verdict.outcome}",
            verdict.reasons,
        )
        for name, ours in zip(names(found), found, strict=True)
        for engine, verdict in verdicts(experiment, ours).items()
    ]


def notes(experiment: Experiment) -> list[str]:
    """What a reader must know of the paper's side."""
    lines = [
        f"{one.term} of {one.engine} on {one.machine}: {one.note}"
        for one in experiment.published
        if one.note
    ]
    lines += [f"The paper also says: {one}" for one in experiment.also]
    lines += [
        f"The paper says: {one.says} Against it: {one.against}" for one in experiment.contradicts
    ]
    return [*lines, *(f"The paper is silent, and we chose: {one}" for one in experiment.silent)]


def shape(machine: PaperMachine) -> str:
    counts = ((machine.cores, "core"), (machine.chiplets, "chiplet"), (machine.nodes, "NUMA node"))
    return ", ".join(plural(count, what) for count, what in counts)


def sign(unit: str) -> str:
    return _SIGNS.get(unit, f" {unit}")


def _figure(
    text: str, unit: str, engine: str, experiment: Experiment, found: Sequence[Ours]
) -> Figure:
    term = parse_term(text)
    readings: list[Reading | None] = []
    for ours in found:
        reading = ours.readings[engine](term) if engine in ours.readings else None
        readings.append(reading if isinstance(reading, Reading) else None)
    published = tuple(
        one
        for one in experiment.published
        if one.engine == engine and str(parse_term(one.term)) == text
    )
    return Figure(text, engine, unit, published, tuple(readings))


def _unit_of(name: str, units: dict[str, str]) -> str:
    """The unit of a term that only the claim names: that of its like, else of its kind."""
    like = next((unit for text, unit in units.items() if text.startswith(f"{name}(")), None)
    kinds = {
        "time": "s",
        "churn": "s",
        "commits": "a second",
        "build": "s",
        "sharing": "GB/s",
        "stream": "GB/s",
        "peak": "GB",
        "local": "%",
        "moves": "count",
        "chiplets": "count",
    }
    return like or kinds.get(name, "times")


def _cell(reading: Reading | None, unit: str) -> str:
    if reading is None:
        return _NONE
    if reading.by_name:
        return "its own baseline"
    interval = reading.estimate.interval
    value = f"{number(reading.estimate.value)}{sign(unit)}"
    mean = "" if reading.mean is None else f", mean {number(reading.mean)}{sign(unit)}"
    if interval is None:
        return f"~{value}{mean}"
    if interval.low == interval.high:
        return value
    return f"{value} ({number(interval.low)} to {number(interval.high)}){mean}"
