"""Advice for a terminal: the table, and one rule in detail. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from atoll.advice.process_rules import spelled
from atoll.advice.rule import Rule, Tuner
from atoll.report.terminal.grid import grid, printed
from atoll.report.terminal.lines import wrapped
from atoll.schema.advice import Advice, Evidence, Line, PreloadEffect, SubjectKind, Supported

_LEAVE = "leave it"


def advice_text(advice: Advice, *, width: int, colour: bool) -> str:
    """The table, then how to follow it, then who else turns the same things."""
    heading = f"{_subject(advice)}, workload {advice.workload}, Linux {advice.kernel}"
    rows = grid(header="bold", gap=1)
    for name in ("TUNER", "CURRENT", "ADVISED", "SUPPORTED", "WHY"):
        rows.add_column(name, overflow="fold")
    for line in advice.lines:
        rows.add_row(
            line.tuner,
            spelled(line.current),
            _LEAVE if line.leaves else spelled(line.advised),
            "" if line.leaves else line.supported.value,
            line.why,
        )
    parts = [
        textwrap.fill(heading, width),
        printed(rows, width=width, colour=colour).rstrip("\n"),
        *([f"To follow it for this program: {_command(advice)}"] if advice.prefix else []),
        *(wrapped(text, width, whole_words=True) for text in _follow(advice)),
        wrapped(_preload(advice), width, whole_words=True),
        wrapped(_allocators(advice), width, whole_words=True),
    ]
    if advice.neighbours:
        parts.append("Who else turns these:")
        parts += [
            wrapped(f"  {one.name} ({', '.join(one.turns)}): {one.does}", width, whole_words=True)
            for one in advice.neighbours
        ]
    parts += [wrapped(f"Limit: {text}", width, whole_words=True) for text in advice.limits]
    return "\n".join(parts) + "\n"


def rule_text(tuner: Tuner, rule: Rule, line: Line | None, *, width: int) -> str:
    """Everything about one rule; `line`: what it decided here, if it did."""
    entries = [
        ("tuner", f"{tuner.name}: {tuner.title}"),
        ("holds", rule.condition),
        ("here", _here(line)),
        ("why", rule.why),
        *_cited(rule.evidence if line is None else line.evidence),
    ]
    if line is not None and not line.leaves:
        entries += [("apply", line.apply), ("undo", line.undo)]
    entries += [("risk", tuner.risk), ("check", line.check if line else tuner.check)]
    return "\n".join([rule.name, *(_entry(name, text, width) for name, text in entries)]) + "\n"


def _here(line: Line | None) -> str:
    if line is None:
        return "another rule decides"
    if line.leaves:
        return f"decides: {spelled(line.current)}, {_LEAVE}"
    obstacle = f" ({line.obstacle})" if line.obstacle else ""
    return (
        f"decides: {spelled(line.current)} -> {spelled(line.advised)}; supported: "
        f"{line.supported.value}{obstacle}"
    )


def _cited(evidence: Sequence[Evidence]) -> list[tuple[str, str]]:
    return [
        ("" if number else "evidence", f"{one.source}, {one.place}: {one.says}")
        for number, one in enumerate(evidence)
    ]


def _follow(advice: Advice) -> list[str]:
    advised = [line for line in advice.lines if not line.leaves]
    lines = [
        f"{line.tuner}: {line.apply} (undo: {line.undo})"
        for line in advised
        if line.supported in (Supported.ROOT, Supported.REBOOT)
        or (line.supported is Supported.YES and line.apply.startswith("atoll apply"))
    ]
    lines += [
        f"{line.tuner}: {line.advised} is not possible: {line.obstacle}"
        for line in advised
        if line.supported is Supported.NO
    ]
    if not advised:
        lines.append("Nothing to change.")
    return lines


def _command(advice: Advice) -> str:
    if advice.subject is SubjectKind.ENGINE:
        return f"atoll up {advice.name} {advice.prefix}"
    if advice.subject is SubjectKind.PROCESS:
        return f"start it again with {advice.prefix} before its command"
    if advice.name.startswith("atoll-exec "):  # the innermost one decides
        env = "env " if "=" in advice.prefix.split()[0] else ""
        return f"put {env}{advice.prefix} behind the options of its own atoll-exec"
    return f"{advice.prefix} {advice.name or 'CMD'}"


def _preload(advice: Advice) -> str:
    if advice.preload.effect is PreloadEffect.UNKNOWN:
        return f"A preloaded malloc: effect unknown ({advice.preload.why})."
    effect = {
        PreloadEffect.EFFECTIVE: "is effective",
        PreloadEffect.PARTIAL: "has a partial effect",
        PreloadEffect.NONE: "has no effect",
    }[advice.preload.effect]
    return f"A preloaded malloc {effect}: {advice.preload.why}."


def _allocators(advice: Advice) -> str:
    def named(state: str) -> str:
        return ", ".join(one.name for one in advice.allocators if one.state == state)

    parts = [
        f"{title}: {names}"
        for title, state in (
            ("Mallocs here", "loadable"),
            ("not installed", "not installed"),
            ("not available", "not available"),
        )
        if (names := named(state))
    ]
    return "; ".join(parts) + "."


def _subject(advice: Advice) -> str:
    return advice.name or "any program"


def _entry(name: str, text: str, width: int) -> str:
    return textwrap.fill(
        text,
        width,
        initial_indent=f"  {name:<9} ",
        subsequent_indent=" " * 12,
        break_on_hyphens=False,
        break_long_words=False,
    )
