"""The paper's numbers beside ours. Pure.

The column of the paper is published, the others are measured; nothing here is predicted.
"""

from __future__ import annotations

from collections.abc import Sequence

from atoll.experiments.claims import Reading, Term, parse_claim, parse_term, terms_of
from atoll.experiments.ours import Ours, verdicts
from atoll.report.numbers import number
from atoll.report.table import Table
from atoll.schema.experiment import Experiment, PaperMachine, Published
from atoll.schema.text import plural

_UNITS = {"times": "×", "count": ""}
_NONE = "–"


def side_by_side(experiment: Experiment, found: Sequence[Ours]) -> Table:
    """A row for each term and engine; ours are called A, B and so on."""
    terms: dict[str, str] = {one.term: one.unit for one in experiment.published}
    claimed = {str(term): "times" for term in terms_of(parse_claim(experiment.check.shape))}
    units = {str(parse_term(text)): unit for text, unit in terms.items()}
    units |= {text: unit for text, unit in claimed.items() if text not in units}
    measured = [engine for ours in found for engine in ours.readings]
    engines = dict.fromkeys([*(one.engine for one in experiment.published), *measured])
    rows = []
    for text, unit in units.items():
        term = parse_term(text)
        for engine in engines:
            theirs = [
                one
                for one in experiment.published
                if one.engine == engine and str(parse_term(one.term)) == text
            ]
            mine = [_cell(ours, engine, term, unit) for ours in found]
            if theirs or any(one != _NONE for one in mine):
                rows.append((text, engine or _NONE, _published(theirs, experiment), *mine))
    columns = ("figure", "engine", "published", *(f"{one} measured" for one in names(found)))
    return Table(f"{experiment.figure} of {experiment.paper} and ours", columns, rows)


def names(found: Sequence[Ours]) -> list[str]:
    return [chr(ord("A") + index) if index < 26 else f"#{index + 1}" for index in range(len(found))]


def machines(experiment: Experiment, found: Sequence[Ours]) -> list[str]:
    """Who is who, a line each."""
    lines = [
        f"{key} (published): {one.title}, {shape(one)}; {one.where}"
        for key, one in experiment.machines.items()
    ]
    for name, ours in zip(names(found), found, strict=True):
        size = f"; {ours.size}" if ours.size else ""
        lines.append(f"{name} (measured): {ours.machine}{size}; {ours.source}")
    return lines


def verdict_lines(experiment: Experiment, found: Sequence[Ours]) -> list[str]:
    """Each engine's verdict on each machine, with the comparisons it rests on."""
    lines = []
    for name, ours in zip(names(found), found, strict=True):
        for engine, verdict in verdicts(experiment, ours).items():
            where = f"{name}, {engine}" if engine else name
            lines.append(f"{where}: {verdict.outcome}. {'; '.join(verdict.reasons)}")
    return lines


def notes(experiment: Experiment) -> list[str]:
    """What a reader must know of the paper's side."""
    lines = [f"{one.term} of {one.engine}: {one.note}" for one in experiment.published if one.note]
    lines += [f"The paper also says: {one}" for one in experiment.also]
    lines += [
        f"The paper says: {one.says} Against it: {one.against}" for one in experiment.contradicts
    ]
    return [*lines, *(f"The paper is silent: {one}" for one in experiment.silent)]


def shape(machine: PaperMachine) -> str:
    counts = ((machine.cores, "core"), (machine.chiplets, "chiplet"), (machine.nodes, "NUMA node"))
    return ", ".join(plural(count, what) for count, what in counts)


def _published(found: Sequence[Published], experiment: Experiment) -> str:
    several = len(experiment.machines) > 1
    values = [
        f"{number(one.value)}{_unit(one.unit)}{f' {one.machine}' if several else ''}"
        for one in found
    ]
    return ", ".join(values) or _NONE


def _cell(ours: Ours, engine: str, term: Term, unit: str) -> str:
    read = ours.readings.get(engine)
    reading = read(term) if read else ""
    if not isinstance(reading, Reading):
        return _NONE
    interval = reading.estimate.interval
    value = f"{number(reading.estimate.value)}{_unit(unit)}"
    if interval is None:
        return f"~{value}"
    if interval.low == interval.high:
        return value
    return f"{value} ({number(interval.low)} to {number(interval.high)})"


def _unit(unit: str) -> str:
    return _UNITS.get(unit, f" {unit}")
