"""`atoll tune`: find the settings that make a command better, by running it."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click

from atoll.cli.options import Span, machine_for
from atoll.cli.terminal import has_colour, progress, width
from atoll.errors import UsageError
from atoll.schema.advice import Advice
from atoll.schema.span import span
from atoll.schema.tuning import LeftOut, Tuning
from atoll.store.files import write_atomic

_TIME_S = 600.0


@click.command(
    context_settings={"allow_interspersed_args": False},
    epilog="Examples: atoll tune -- ./prog --size 3; atoll tune --time 2m --factors malloc,thp "
    "-o plan.json -- ./prog; atoll tune --metric 'tps = ([0-9.]+)' -- ./bench",
)
@click.option(
    "--time", "time_s", type=Span(), metavar="SPAN", help="Stop after this time (default: 10m)."
)
@click.option(
    "--factors",
    metavar="NAME,...",
    help="Vary only these of malloc, placement, memory, thp, autonuma, smt, workers.",
)
@click.option(
    "--metric",
    default="time",
    show_default=True,
    metavar="METRIC",
    help="time, rss (peak memory), or a REGEX whose first group is a number in the output: more "
    "is better, and less with p99=REGEX or time=REGEX.",
)
@click.option("-o", "--output", metavar="FILE", help="Write a plan for 'atoll apply --plan'.")
@click.option("--json", "as_json", is_flag=True, help="Print an atoll/tuning document.")
@click.argument("command", nargs=-1, required=True, metavar="-- CMD...", type=click.UNPROCESSED)
def command(
    time_s: float | None,
    factors: str | None,
    metric: str,
    output: str | None,
    as_json: bool,
    command: tuple[str, ...],
) -> None:
    """Run CMD again and again with other mallocs, threads' places, huge pages, and find what pays.

    Each setting runs beside the command as it is now, in blocks. Values that seem worse are
    dropped; what is left is judged on fresh blocks. 'Leave it' is a result too. Switches of the
    whole system are turned only if --factors names them, and are always restored.

    Exit code 0: decided, also to leave it. 1: CMD failed on the way. 2: CMD cannot be measured.
    """
    from atoll.supervise.interrupts import terminate_is_interrupt

    if output is not None and not Path(output).absolute().parent.is_dir():  # before the work
        raise UsageError(f"{output}: its folder does not exist; create it first")
    with terminate_is_interrupt():
        found, plan = _tuned(
            command, _names(factors), metric, _TIME_S if time_s is None else time_s
        )
    if output is not None:
        write_atomic(output, plan.model_dump_json(indent=1) + "\n")
    if as_json:
        print(found.model_dump_json(indent=1))
        return
    from atoll.report.terminal.tuning import tuning_text

    print(tuning_text(found, width=min(width(), 100), colour=has_colour()), end="")
    if output is not None and found.best:
        print(f"Plan: atoll apply --plan {shlex.quote(output)}")


def _names(factors: str | None) -> list[str]:
    if factors is None:
        return []
    names = [name.strip() for name in factors.split(",")]
    if not all(names):
        raise UsageError("--factors: give names with commas between, such as malloc,thp")
    return names


def _tuned(
    command: tuple[str, ...], names: list[str], metric: str, time_s: float
) -> tuple[Tuning, Advice]:
    from atoll.advice.reading import loadable, read_command, read_limits, read_situation, release
    from atoll.host.local import LocalHost
    from atoll.knobs.journal import JournalFolder
    from atoll.report.terminal.tuning import standing_text
    from atoll.schema.advice import Workload
    from atoll.tune import documents, search
    from atoll.tune.conduct import Work, conduct
    from atoll.tune.factors import Recipe, factors, recipe
    from atoll.tune.metric import parse_metric
    from atoll.tune.runs import stdin_path

    host, read = LocalHost(), parse_metric(metric)
    machine = machine_for()
    mallocs = loadable(host)
    situation = read_situation(
        host,
        machine,
        read_command(host, command, mallocs),
        Workload.UNKNOWN,
        mallocs=mallocs,
        limits=read_limits(host, machine),
    )
    found = factors(names, situation)

    def made(setting: search.Setting) -> Recipe:
        return recipe(setting, found, situation)

    work = Work(command, read, found, made, time_s, stdin_path())
    with progress(f"tuning for at most {span(time_s)}") as say:
        last = ""

        def watch(block: search.Block, number: int, left_s: float) -> None:
            nonlocal last
            if sys.stderr.isatty() or block.doing != last:  # in a file: one line a stage
                say(standing_text(block, number, left_s))
            last = block.doing

        result = conduct(host, work, JournalFolder(), watch)
    without = [LeftOut(what=one.name, why=one.why_none) for one in found if one.why_none]
    document = documents.tuning(
        result.outcome,
        command=command,
        metric=read,
        situation=situation,
        kernel=release(host),
        best=made(result.outcome.best),
        seconds=result.seconds,
        left_out=[*without, *result.left_out],
        cautions=result.cautions,
        runs=result.runs,
    )
    return document, documents.plan(document, found, situation, recipe=made, mallocs=mallocs)
