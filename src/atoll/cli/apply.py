"""`atoll apply`: follow advice, or set knobs, all or none, with a journal."""

from __future__ import annotations

import sys

import click

from atoll.advice.process_rules import spelled
from atoll.cli import turning
from atoll.errors import UsageError
from atoll.schema.advice import Advice, Line, Reach, Supported
from atoll.schema.text import one_line


@click.command(
    epilog="Examples: atoll apply numa-balancing; atoll apply swappiness=10 thp-enabled=madvise; "
    "atoll advise --engine spark --json > advice.json; atoll apply --plan advice.json --dry-run"
)
@click.argument("what", nargs=-1, metavar="[RULE|KNOB=VALUE]...")
@click.option("--plan", "plan", metavar="FILE", help="Take the advice of 'atoll advise --json'.")
@click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")
@click.option("--script", is_flag=True, help="Print a script for root, and do nothing.")
def command(what: tuple[str, ...], plan: str | None, dry_run: bool, script: bool) -> None:
    """Follow the advice of each RULE (or TUNER), and set each KNOB to its VALUE.

    Knobs affect every process. Atoll sets all of them or none, and saves each old value on disk
    before it writes, so 'atoll undo' restores it, even after a crash. For advice on one program,
    Atoll prints the prefix of its command. Without RULE, --plan FILE applies all of its advice;
    without --plan, a RULE is that of 'atoll advise' here, for any program.

    Exit code 1: another program has changed a knob since Atoll set it. 2: no such value, or a
    rule that does not hold here. 4: not permitted; without root, a script for root is printed.
    """
    if not what and plan is None:
        raise UsageError("name a RULE of 'atoll advise', KNOB=VALUE, or --plan FILE")
    knobs = [_setting(word) for word in what if "=" in word]
    lines = _lines([word for word in what if "=" not in word], plan)
    knobs += [(line.tuner, line.advised) for line in lines if line.reach is Reach.SYSTEM]
    for line in lines:
        if line.reach is not Reach.SYSTEM and not script:
            print(one_line(f"{line.tuner}: {line.apply}"))
    if not knobs:
        return
    outcome = turning.control().set(knobs, on_paper=dry_run or script)
    if dry_run or script:
        turning.rehearse(outcome, script=script)
    else:
        turning.finish(outcome)


def _setting(word: str) -> tuple[str, str]:
    name, _, value = word.partition("=")
    return name, value


def _lines(rules: list[str], plan: str | None) -> list[Line]:
    """The lines to follow. Raises UsageError for a rule that does not hold or cannot be
    followed."""
    for name in rules:
        _check_name(name)
    if plan is not None:
        advice = _advice(plan)
    elif rules:
        from atoll.cli.advise import advice_here

        advice = advice_here()
    else:
        return []
    if not rules:
        return _all_of(advice)
    from atoll.advice.advise import line_named

    return [one for name in rules if _followed(one := line_named(advice, name))]


def _check_name(name: str) -> None:
    """Raises UsageError unless it is a rule or a tuner."""
    from atoll.advice.advise import tuner_named
    from atoll.knobs.catalog import KNOBS

    try:
        tuner_named(name)
    except UsageError:
        if name in KNOBS:
            raise UsageError(
                f"no rule decides about {name!r}; give a value: {name}=VALUE"
            ) from None
        raise


def _followed(line: Line) -> bool:
    if line.supported is Supported.NO:
        raise UsageError(_impossible(line))
    if line.leaves:
        print(f"{line.tuner}: leave it at {spelled(line.current)}: {line.why}")
    return not line.leaves


def _all_of(advice: Advice) -> list[Line]:
    advised = [one for one in advice.lines if not one.leaves]
    for one in advised:
        if one.supported is Supported.NO:
            print(f"atoll: {one_line(_impossible(one))}", file=sys.stderr)
    if not advised:
        print("atoll: nothing to change", file=sys.stderr)
    return [one for one in advised if one.supported is not Supported.NO]


def _impossible(line: Line) -> str:
    return f"{line.tuner}: {line.advised} is not possible here: {line.obstacle}"


def _advice(path: str) -> Advice:
    from atoll.host.topology import read_machine
    from atoll.store.advice_file import read_advice

    advice = read_advice(path)
    if advice.machine_id != read_machine().machine_id:
        raise UsageError(f"{path}: is for another machine; run 'atoll advise --json' on this one")
    return advice
