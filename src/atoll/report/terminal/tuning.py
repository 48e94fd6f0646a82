"""What `atoll tune` found, and how it goes, for a terminal. Pure."""

from __future__ import annotations

import shlex
import textwrap

from atoll.report.terminal.grid import grid, printed
from atoll.report.terminal.lines import wrapped
from atoll.schema.span import span
from atoll.schema.text import plural
from atoll.schema.tuning import Effect, Tuning, Verdict, setting_words
from atoll.tune.factors import line
from atoll.tune.search import Block, words

_NOTHING = "there is nothing to vary here"


def tuning_text(found: Tuning, *, width: int, colour: bool, follow: str = "") -> str:
    """The table of effects, the decision, and how to follow it, by a command in one line. `follow`:
    the command that starts an engine by its plan."""
    ran = ", ".join(filter(None, (shlex.join(found.command), found.suite)))
    parts = [textwrap.fill(f"{ran}: {found.metric}", width)]
    if found.effects or found.dropped:
        rows = grid(header="bold")
        for name in ("SETTING", "GAIN", "INTERVAL", "BLOCKS", "VERDICT"):
            rows.add_column(name, overflow="fold")
        for one in (*found.effects, *found.dropped):
            rows.add_row(*_cells(one))
        parts.append(printed(rows, width=width, colour=colour).rstrip("\n"))
    parts += [wrapped(_decision(found), width, whole_words=True), *_kept(found, follow)]
    parts += [wrapped(text, width, whole_words=True) for text in _said(found)]
    return "\n".join(parts) + "\n"


def standing_text(block: Block, number: int, left_s: float) -> str:
    """'judging, block 12: best is malloc=x: gain 1.32 [1.25, 1.41]; at most 3.2 min left'."""
    if block.leader is None:
        leads = "nothing known yet"
    else:
        one, sure = block.leader, ", not judged yet"
        if one.interval:
            sure = f" [{one.interval.low:.2f}, {one.interval.high:.2f}]"
        leads = f"{words(one.setting)}: gain {one.gain:.2f}{sure}"
        leads = f"best is {leads}" if one.gain > 1 else f"nothing is better yet ({leads})"
    return f"{block.doing}, block {number + 1}: {leads}; at most {span(max(0.0, left_s))} left"


def _cells(one: Effect) -> list[str]:
    interval = ""
    if one.low is not None and one.high is not None:
        interval = f"{_ratio(one.low)} to {_ratio(one.high)}"
    verdict = one.verdict.value if one.verdict else "dropped early"
    return [setting_words(one.setting), f"{_ratio(one.gain)}x", interval, str(one.blocks), verdict]


def _ratio(value: float) -> str:
    """Close to 1 a third digit, since the margin is 2 %."""
    return f"{value:.3f}" if 0.95 < value < 1.05 else f"{value:.2f}"


def _kept(found: Tuning, follow: str) -> list[str]:
    if not found.needs_plan:
        if not found.prefix:
            return []
        engine = f"{shlex.join(found.command)} {found.prefix}"
        follow = engine if found.suite else line(found.command, found.prefix)
    return [f"To keep it: {follow}"]


def _said(found: Tuning) -> list[str]:
    said = []
    if found.knobs:
        asked = " ".join(f"{name}={value}" for name, value in found.knobs.items())
        said.append(f"For the whole system: atoll apply {asked} (undo: atoll undo --all)")
    if found.effects:
        said.append(
            f"A gain above 1 is better. The chance that any verdict is wrong is at most "
            f"{found.error:.0%}, over {plural(found.comparisons, 'comparison')}; 'same' means "
            f"within {found.margin:.0%}. Measured for {span(found.time_s)}."
        )
    said += [f"Left out: {one.what}: {one.why}" for one in found.left_out]
    said += [f"Caution: {text}" for text in found.cautions]
    return said


def _decision(found: Tuning) -> str:
    chosen = next((one for one in found.effects if one.setting == found.best), None)
    if chosen is not None and chosen.low is not None:
        gain = f"{chosen.gain:.2f}x [{chosen.low:.2f}, {chosen.high:.2f}]"
        return f"Best: {setting_words(found.best)}, {gain}."
    if not found.effects:
        return f"Leave it: {'no other value could be measured' if found.runs else _NOTHING}."
    if any(one.verdict is Verdict.CANNOT_TELL for one in found.effects):
        return "Leave it: no gain was shown; more --time may show one."
    return "Leave it: no setting is better."
