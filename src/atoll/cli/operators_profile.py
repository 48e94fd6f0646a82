"""`atoll operators profile`: what each operator of a plan uses."""

from __future__ import annotations

import math

import click

from atoll.cli.options import FiniteRange
from atoll.cli.terminal import progress, show, width
from atoll.errors import UsageError
from atoll.store.document import write_document


class _NamedRate(click.ParamType[tuple[str, float]]):
    """NAME=QPS."""

    name = "NAME=QPS"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, float]:
        name, equals, text = str(value).rpartition("=")
        try:
            rate = float(text)
        except ValueError:
            rate = math.nan
        if not (equals and name and 0 < rate < math.inf):
            self.fail(f"{value!r} is not NAME=QPS, for example q18=3.5", param, ctx)
        return name, rate


@click.command(
    "profile",
    epilog="Examples: atoll operators profile duckdb q1.json q18.json --per-second 2 "
    "-o mix.json; atoll operators profile postgresql q5.json --rate q5=40",
)
@click.argument("source", metavar="SOURCE")
@click.argument("files", metavar="[FILE]...", nargs=-1)
@click.option(
    "--rate",
    "rates",
    metavar="NAME=QPS",
    type=_NamedRate(),
    multiple=True,
    help="Executions a second of the file of that name, without folder and suffix (repeatable).",
)
@click.option(
    "--per-second",
    metavar="QPS",
    type=FiniteRange(min=0, min_open=True),
    help="Executions a second of every other file (default: one after another).",
)
@click.option("--url", metavar="URL", help="Watch the program that listens there, without FILE.")
@click.option(
    "--seconds",
    metavar="N",
    type=FiniteRange(min=1),
    default=30.0,
    show_default=True,
    help="How long to watch it.",
)
@click.option("-o", "--output", metavar="FILE", help="Write the graph to this file.")
@click.option("--json", "as_json", is_flag=True, help="Print the graph as JSON.")
def command(
    source: str,
    files: tuple[str, ...],
    rates: tuple[tuple[str, float], ...],
    per_second: float | None,
    url: str | None,
    seconds: float,
    output: str | None,
    as_json: bool,
) -> None:
    """Find what each operator of a query mix uses.

    Then it says with how few cores the mix would do. Each FILE is the profile of one query that the
    engine SOURCE wrote; docs/operators.md shows the command for each engine. SOURCE may also be
    'runtime', for the profile of a program on Atoll's task runtime, or 'file', for graphs of your
    own. With --url, Atoll watches the threads of a program that runs.

    Figures that are estimated have a '~'. The lines below the table say how each is known.
    """
    from atoll.engines.registry import why_not_placeable
    from atoll.host.local import LocalHost
    from atoll.operators.place import HEADROOM
    from atoll.operators.profile import read_mix, watch_program
    from atoll.report.terminal.operator_sources import answer_text, graph_text
    from atoll.report.terminal.operators import graph_table

    if bool(files) == (url is not None):
        raise UsageError("give either files or the --url of a program that runs")
    if url is not None:
        if rates or per_second is not None:
            raise UsageError("a program that runs has its own rate; leave out --rate, --per-second")
        with progress(f"watching {source}") as say:
            graph = watch_program(LocalHost(), source, url, seconds, say)
    else:
        graph = read_mix(source, files, dict(rates), per_second)
    if output is not None:
        write_document(output, graph)
    if as_json:
        print(graph.model_dump_json(indent=1))
        return
    show(graph_table(graph))
    print(graph_text(graph, width()))
    print(answer_text(graph, HEADROOM, why_not_placeable(graph.engine), width()))
