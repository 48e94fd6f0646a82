"""What was found as documents: the result, and the plan for `atoll apply --plan`. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence

from atoll.advice.allocators import allocators
from atoll.advice.situation import Situation
from atoll.schema.advice import Advice, Evidence, Line, Reach, SubjectKind, Supported, Workload
from atoll.schema.text import plural
from atoll.schema.tuning import Effect, LeftOut, Run, Tuning, Verdict, setting_words
from atoll.tune import search
from atoll.tune.factors import Factor, Recipe
from atoll.tune.metric import Metric


def tuning(
    outcome: search.Outcome,
    *,
    command: Sequence[str],
    suite: str,
    metric: Metric,
    situation: Situation,
    kernel: str,
    best: Recipe,
    seconds: float,
    left_out: Sequence[LeftOut],
    cautions: Sequence[str],
    runs: Sequence[Run],
) -> Tuning:
    return Tuning(
        command=tuple(command),
        suite=suite,
        metric=metric.words,
        machine=situation.machine.summary,
        machine_id=situation.machine.machine_id,
        kernel=kernel,
        time_s=seconds,
        error=search.ERROR,
        margin=search.MARGIN,
        comparisons=outcome.comparisons,
        effects=tuple(map(_effect, outcome.effects)),
        dropped=tuple(map(_effect, outcome.dropped)),
        best=dict(outcome.best),
        prefix=best.prefix or best.options,
        knobs=best.knobs,
        left_out=tuple(left_out),
        cautions=tuple(cautions),
        runs=tuple(runs),
    )


def plan(
    found: Tuning,
    factors: Sequence[Factor],
    situation: Situation,
    *,
    recipe: Callable[[search.Setting], Recipe],
    mallocs: Mapping[str, str],
) -> Advice:
    """Advice with a line for each factor, as it was measured."""
    command = shlex.join(found.command)
    return Advice(
        subject=SubjectKind.COMMAND,
        name=command,
        workload=Workload.UNKNOWN,
        machine=found.machine,
        machine_id=found.machine_id,
        kernel=found.kernel,
        lines=tuple(_line(one, found, recipe) for one in factors),
        prefix=found.prefix,
        preload=situation.subject.preload,
        allocators=allocators(mallocs),
        neighbours=(),
        limits=(),
    )


def says(effect: Effect) -> str:
    """'malloc=tbbmalloc: 1.62 [1.55, 1.70], better (18 blocks)'."""
    interval = "" if effect.low is None else f" [{effect.low:.2f}, {effect.high:.2f}]"
    verdict = f", {effect.verdict}" if effect.verdict else ""
    gain = f"{effect.gain:.2f}{interval}{verdict} ({plural(effect.blocks, 'block')})"
    return f"{setting_words(effect.setting)}: {gain}"


def _line(factor: Factor, found: Tuning, recipe: Callable[[search.Setting], Recipe]) -> Line:
    advised = found.best.get(factor.name, factor.current)
    leaves = advised == factor.current
    effects = [one for one in found.effects if factor.name in one.setting]
    made = recipe(((factor.name, advised),)) if not leaves else Recipe()
    is_switch = factor.reach is Reach.SYSTEM
    apply = f"atoll apply {factor.tuner}={advised}" if is_switch else f"{made.prefix} CMD"
    undo = f"atoll undo {factor.tuner}" if is_switch else "leave the prefix out"
    return Line(
        tuner=factor.tuner,
        title=factor.title,
        reach=factor.reach,
        rule="tuned",
        condition="as measured by 'atoll tune' for this command",
        current=factor.current,
        advised=advised,
        supported=Supported.YES,
        why=_why(factor, effects, leaves=leaves),
        evidence=(
            Evidence(
                kind="measured",
                source="this machine",
                place=f"atoll tune, {found.metric}, chance of error {found.error:.0%}",
                says="; ".join(map(says, effects)) or "not measured",
            ),
        ),
        apply="" if leaves else apply,
        undo="" if leaves else undo,
        risk=factor.risk or "none: nothing is changed",
        check=f"atoll tune --factors {factor.name} -- CMD",
    )


def _why(factor: Factor, effects: Sequence[Effect], *, leaves: bool) -> str:
    if factor.why_none:
        return factor.why_none
    if not leaves:
        return "better by measurement"
    own = next((one for one in effects if len(one.setting) == 1), None)
    if own is None:
        return "no other value could be measured"
    return {
        Verdict.SAME: "no difference worth having",
        Verdict.WORSE: "the best other value is worse",
        Verdict.BETTER: "better alone, but not beside the others",
    }.get(own.verdict or Verdict.CANNOT_TELL, "no difference was shown")


def _effect(one: search.Judged) -> Effect:
    return Effect(
        setting=dict(one.setting),
        gain=one.gain,
        low=one.interval.low if one.interval else None,
        high=one.interval.high if one.interval else None,
        blocks=one.blocks,
        verdict=one.verdict,
    )
