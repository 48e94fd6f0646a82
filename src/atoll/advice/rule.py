"""Tuners and rules as data, and how they become lines of advice. Pure.

A tuner is a thing that can be set. It has a list of rules, and the first one that holds decides, so
a tuner gets exactly one piece of advice. Tuners are decided in order. A later one sees in
`Situation.then` what will be in force of the earlier ones: settings of one process come before
those of the system, and a system-wide switch is only advised if they do not settle it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from atoll.advice.situation import Situation
from atoll.schema.advice import Evidence, Line, Reach, SubjectKind, Supported

ABSENT = "not here"  # the machine or the kernel does not have it

Test = Callable[[Situation], bool]
Value = Callable[[Situation], str]


@dataclass(frozen=True, slots=True)
class Rule:
    name: str
    condition: str  # in words: 'If ...'
    holds: Test
    why: str
    evidence: tuple[Evidence, ...]
    value: Value | None = None  # None: leave it
    measured: Callable[[Situation], Evidence] | None = None  # on this machine


@dataclass(frozen=True, slots=True)
class Setting:
    """How a value is set for one program."""

    flags: tuple[str, ...] = ()  # of atoll-exec
    environment: tuple[str, ...] = ()  # NAME=VALUE
    options: tuple[str, ...] = ()  # of `atoll up`


@dataclass(frozen=True, slots=True)
class Tuner:
    name: str
    title: str
    reach: Reach
    current: Value
    rules: tuple[Rule, ...]  # the last one always holds
    risk: str
    check: str  # `atoll bench` of an engine; ENGINE stands for its name
    setting: Callable[[str], Setting] = field(default=lambda value: Setting())
    # Why this value cannot be set here; empty: it can be.
    obstacle: Callable[[Situation, str], str] = field(default=lambda situation, value: "")
    advice: str = ""  # of firmware: what to change


def decide(tuners: Sequence[Tuner], situation: Situation) -> tuple[Line, ...]:
    """One line for each tuner."""
    lines = []
    for tuner in tuners:
        line = _line(tuner, situation)
        lines.append(line)
        followed = line.current if line.supported is Supported.NO else line.advised
        then = {**situation.then, tuner.name: followed}
        situation = replace(situation, then=then)
    return tuple(lines)


def deciding(tuner: Tuner, situation: Situation) -> Rule:
    return next(rule for rule in tuner.rules if rule.holds(situation))


def always(_situation: Situation) -> bool:
    """The condition of a tuner's last rule."""
    return True


def _line(tuner: Tuner, situation: Situation) -> Line:
    rule = deciding(tuner, situation)
    current = tuner.current(situation)
    advised = current if rule.value is None else rule.value(situation)
    leaves = advised == current
    supported, obstacle = _support(tuner, situation, advised, leaves=leaves)
    return Line(
        tuner=tuner.name,
        title=tuner.title,
        reach=tuner.reach,
        rule=rule.name,
        condition=rule.condition,
        current=current,
        advised=advised,
        supported=supported,
        obstacle=obstacle,
        why=rule.why,
        evidence=(*rule.evidence, rule.measured(situation)) if rule.measured else rule.evidence,
        apply="" if leaves else _apply(tuner, situation, advised),
        undo="" if leaves else _undo(tuner, situation),
        risk=tuner.risk,
        check=_check(tuner, situation),
    )


def _support(
    tuner: Tuner, situation: Situation, value: str, *, leaves: bool
) -> tuple[Supported, str]:
    if leaves:
        return Supported.YES, ""
    if obstacle := tuner.obstacle(situation, value):
        return Supported.NO, obstacle
    if tuner.reach is Reach.FIRMWARE:
        return Supported.REBOOT, ""
    if tuner.reach is Reach.SYSTEM:
        if situation.knobs_fault:
            return Supported.NO, situation.knobs_fault
        return (Supported.YES if situation.root else Supported.ROOT), ""
    if situation.subject.kind is SubjectKind.PROCESS:
        return Supported.RESTART, "a running process keeps what it was started with"
    return Supported.YES, ""


def _apply(tuner: Tuner, situation: Situation, value: str) -> str:
    if tuner.reach is Reach.FIRMWARE:
        return tuner.advice
    if tuner.reach is Reach.SYSTEM:
        return f"atoll apply {tuner.name}={value}"
    setting = tuner.setting(value)
    if situation.subject.kind is SubjectKind.ENGINE:
        return " ".join(("atoll up", situation.subject.name, *setting.options))
    return prefix([setting]) + " CMD"


def _check(tuner: Tuner, situation: Situation) -> str:
    if situation.subject.kind is SubjectKind.ENGINE:
        return tuner.check.replace("ENGINE", situation.subject.name)
    if tuner.reach is Reach.PROCESS and "ENGINE" in tuner.check:
        return "time the command with and without it, in turns, at least five times each"
    return tuner.check


def _undo(tuner: Tuner, situation: Situation) -> str:
    if tuner.reach is Reach.FIRMWARE:
        return "set it back in the firmware's setup"
    if tuner.reach is Reach.SYSTEM:
        return f"atoll undo {tuner.name}"
    if situation.subject.kind is SubjectKind.ENGINE:
        return "leave the option out"
    return "leave the prefix out"


def prefix(settings: Sequence[Setting]) -> str:
    """What to write before a command for all these settings together; empty for none."""
    environment = [word for setting in settings for word in setting.environment]
    flags = [word for setting in settings for word in setting.flags]
    words = [*environment, *(["atoll-exec", *flags, "--"] if flags else [])]
    return " ".join(words)


def prefix_of(tuners: Sequence[Tuner], lines: Sequence[Line], kind: SubjectKind) -> str:
    """The prefix, or the options of `atoll up`, that follow all advice for one program."""
    by_name = {tuner.name: tuner for tuner in tuners}
    settings = [
        by_name[line.tuner].setting(line.advised)
        for line in lines
        if line.reach is Reach.PROCESS
        and not line.leaves
        and line.supported in (Supported.YES, Supported.RESTART)
    ]
    if kind is SubjectKind.ENGINE:
        return " ".join(word for setting in settings for word in setting.options)
    return prefix(settings)
