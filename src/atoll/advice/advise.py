"""The document of advice: the rules applied to a situation, with what stands around it. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from atoll.advice.allocators import allocators
from atoll.advice.rule import Rule, Tuner, decide, prefix_of
from atoll.advice.situation import Situation
from atoll.advice.system_rules import TUNERS
from atoll.errors import UsageError
from atoll.schema.advice import Advice, Line, Neighbour


def advise(
    situation: Situation,
    *,
    kernel: str,
    mallocs: Mapping[str, str],
    neighbours: tuple[Neighbour, ...] = (),
    limits: tuple[str, ...] = (),
) -> Advice:
    """`mallocs`: name -> library of those that can be preloaded."""
    lines = decide(TUNERS, situation)
    machine, subject = situation.machine, situation.subject
    return Advice(
        subject=subject.kind,
        name=subject.name,
        workload=situation.workload,
        machine=machine.summary,
        machine_id=machine.machine_id,
        kernel=kernel,
        lines=lines,
        prefix=prefix_of(TUNERS, lines, subject.kind),
        preload=subject.preload,
        allocators=allocators(mallocs),
        neighbours=neighbours,
        limits=limits,
    )


def line_named(advice: Advice, name: str) -> Line:
    """The line of that tuner, or that this rule decided. Raises UsageError."""
    for line in advice.lines:
        if name in (line.tuner, line.rule):
            return line
    tuner, rule = rule_named(name)
    decided = next(line for line in advice.lines if line.tuner == tuner.name)
    raise UsageError(
        f"rule {name!r} does not hold here ({rule.condition}); of {tuner.name}, "
        f"{decided.rule!r} does ({decided.condition})"
    )


def tuner_named(name: str) -> Tuner:
    """The tuner of that name, or with a rule of that name. Raises UsageError."""
    found = next((tuner for tuner in TUNERS if tuner.name == name), None)
    return found or rule_named(name)[0]


def rule_named(name: str) -> tuple[Tuner, Rule]:
    """Raises UsageError for a name that is neither a tuner nor a rule."""
    for tuner in TUNERS:
        for rule in tuner.rules:
            if rule.name == name:
                return tuner, rule
    known = ", ".join(tuner.name for tuner in TUNERS)
    raise UsageError(f"no rule or tuner {name!r}; the tuners are {known}")
