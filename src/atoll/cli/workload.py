"""`atoll workload`: run the native workloads of numa-query-tuning and of ARCAS."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

import click

from atoll.cli.options import machine_for
from atoll.cli.terminal import can_draw, show
from atoll.errors import UsageError
from atoll.host.local import LocalHost
from atoll.probing.workload import (
    MEMORY,
    kernels,
    launch_flags,
    run_kernel,
    run_workload,
    thread_places,
)
from atoll.report.terminal.workload import kernel_text, workload_list, workload_text
from atoll.schema.kernel import KernelParameter
from atoll.schema.plan import Malloc, Placement
from atoll.schema.workload import WORKLOADS

_DATASETS = ("moving-cluster", "sequential", "runs", "zipf", "heavy-hitter")
_INDEXES = ("art", "masstree", "btree", "skiplist")
_COUNT = click.IntRange(min=1)
_NOTE_AFTER_S = 1.0


@click.group(epilog="Example: atoll workload run w1, then atoll workload run bfs --scheduler os")
def command() -> None:
    """Run a small, known program, to see what a setting or a scheduler changes.

    W1 to W4 of numa-query-tuning aggregate and join. The workloads of ARCAS are graphs, random
    access, clustering and learning.
    """


@command.command("list", epilog="Example: atoll workload list --json | jq -r '.[].name'")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of the table.")
def list_workloads(as_json: bool) -> None:
    """List the workloads: what each does, and the unit of its rate."""
    found: list[tuple[str, str, str]] = [
        (name, what, "records") for name, what in WORKLOADS.items()
    ]
    found += [(one.name, one.what, one.unit) for one in kernels(LocalHost()).workloads]
    if as_json:
        print(json.dumps([dict(zip(("name", "what", "unit"), one, strict=True)) for one in found]))
        return
    show(workload_list(found))


class _Runs(click.Group):
    """W1 to W4, and the workloads whose flags only atoll-kernels knows: it is asked for the flags
    when one of their names is given."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return _query if cmd_name in WORKLOADS else _kernel(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Workloads"):
            formatter.write_dl([*WORKLOADS.items(), ("...", "see 'atoll workload list'")])


@command.group(
    "run",
    cls=_Runs,
    subcommand_metavar="WORKLOAD [OPTIONS]",
    epilog="Examples: atoll workload run w1 --threads 8 --memory interleave; "
    "atoll workload run bfs --scheduler os --json",
)
def run() -> None:
    """Make the data, run WORKLOAD on them, and check its answer.

    'atoll workload run WORKLOAD --help' has the options of each. Memory policy, malloc and huge
    pages are set by atoll-exec. The exit code is 1 if the answer was wrong.
    """


_LAUNCHED: list[click.Parameter] = [  # flags of atoll-exec, and how the result is printed
    click.Option(["--cpus"], metavar="LIST", help="Run on these CPUs, such as 0-7."),
    click.Option(
        ["--memory"],
        type=click.Choice(tuple(MEMORY)),
        default="first-touch",
        show_default=True,
        help="The memory policy.",
    ),
    click.Option(
        ["--malloc"],
        type=click.Choice([one.value for one in Malloc]),
        help="The malloc to preload.",
    ),
    click.Option(["--no-thp"], is_flag=True, help="No transparent huge pages."),
    click.Option(["--json", "as_json"], is_flag=True, help="Print a JSON document instead."),
]


@click.command(epilog="Example: atoll workload run w3 --variant fast --scheduler atoll --json")
@click.option(
    "--scheduler",
    type=click.Choice(("plain", "atoll")),
    default="plain",
    show_default=True,
    help="Threads of its own, or Atoll's task runtime.",
)
@click.option(
    "--variant",
    type=click.Choice(("paper", "fast")),
    default="paper",
    show_default=True,
    help="One shared table as in the paper, or the fastest way that we know.",
)
@click.option("--index", type=click.Choice(_INDEXES), help="The index of w4 (default: art).")
@click.option(
    "--dataset",
    type=click.Choice(_DATASETS),
    help="How keys are distributed (default: moving-cluster for w1, zipf for w2, sequential for "
    "w3 and w4).",
)
@click.option(
    "--records",
    type=_COUNT,
    metavar="N",
    help="Rows; for w3 and w4 of the larger table (default: 10 million; w3, w4: 16 million).",
)
@click.option(
    "--groups",
    type=_COUNT,
    metavar="N",
    help="Keys; for w3 and w4 rows of the smaller table (default: one for 100 records; w3, w4: for "
    "16).",
)
@click.option("--threads", type=_COUNT, metavar="N", help="Default: the CPUs that it may use.")
@click.option(
    "--key-step",
    type=_COUNT,
    metavar="N",
    help="Keys are N apart, so that no array has a place for each (default: 1).",
)
@click.option("--seed", type=click.IntRange(min=0), metavar="N", help="Of the data (default: 1).")
@click.option("--runs", type=_COUNT, metavar="N", help="How often, on the same data (default: 3).")
@click.option("--keep", is_flag=True, help="w3, w4: keep the joined rows, by malloc.")
@click.option("--no-check", is_flag=True, help="Do not check the answer by sorting.")
@click.option(
    "--save",
    metavar="DIR",
    type=click.Path(file_okay=False),
    help="Write the input and the answer as pairs of 64-bit integers, for another program.",
)
@click.option(
    "--placement",
    type=click.Choice([one.value for one in Placement]),
    default=Placement.NONE.value,
    show_default=True,
    help="Threads far apart, close together, or where the system puts them.",
)
@click.pass_context
def _query(
    ctx: click.Context,
    /,
    *,
    scheduler: str,
    variant: str,
    index: str | None,
    dataset: str | None,
    records: int | None,
    groups: int | None,
    threads: int | None,
    key_step: int | None,
    seed: int | None,
    runs: int | None,
    keep: bool,
    no_check: bool,
    save: str | None,
    placement: str,
    cpus: str | None,
    memory: str,
    malloc: str | None,
    no_thp: bool,
    as_json: bool,
) -> None:
    """Aggregate or join, as numa-query-tuning does, and check the answer.

    Prints the time of each run, the rate, the peak memory with its overhead, the threads' moves
    between CPUs, and the local share of its memory, estimated from pages.
    """
    workload = ctx.info_name or ""
    places: tuple[str, ...] = ()
    if placement != Placement.NONE:
        if cpus is not None:
            raise UsageError("--cpus and --placement both choose CPUs; give one of them")
        places, cpus = thread_places(machine_for(), placement, threads=threads, scheduler=scheduler)
    values = {
        "--index": index,
        "--dataset": dataset,
        "--records": records,
        "--groups": groups,
        "--threads": threads,
        "--key-step": key_step,
        "--seed": seed,
        "--runs": runs,
        "--save": save,
    }
    flags = [workload, "--scheduler", scheduler, "--variant", variant]
    flags += [
        word for name, value in values.items() if value is not None for word in (name, str(value))
    ]
    flags += places
    flags += [name for name, is_set in (("--keep", keep), ("--no-check", no_check)) if is_set]
    launch = launch_flags(cpus=cpus, memory=memory, malloc=malloc, no_thp=no_thp)
    found = run_workload(LocalHost(), flags, launch, tick=_note(workload))
    print(found.model_dump_json(indent=1) if as_json else workload_text(found).rstrip("\n"))


_query.params.extend(_LAUNCHED)


def _kernel(ctx: click.Context, name: str) -> click.Command:
    """The command of a workload of atoll-kernels, which checks the values. Raises UsageError."""
    known = kernels(LocalHost())
    kernel = {one.name: one for one in known.workloads}.get(name)
    if kernel is None:
        names = ", ".join([*WORKLOADS, *(one.name for one in known.workloads)])
        raise click.UsageError(f"{name}: not a workload; there are {names}", ctx)
    parameters = (*kernel.parameters, *known.parameters)

    def run_one(
        cpus: str | None,
        memory: str,
        malloc: str | None,
        no_thp: bool,
        as_json: bool,
        **values: str | None,
    ) -> None:
        flags = [name]
        for one in parameters:
            value = values[one.name.replace("-", "_")]
            flags += [] if value is None else [f"--{one.name}", value]
        launch = launch_flags(cpus=cpus, memory=memory, malloc=malloc, no_thp=no_thp)
        found = run_kernel(LocalHost(), flags, launch, tick=_note(name))
        print(
            found.model_dump_json(indent=1)
            if as_json
            else kernel_text(found, draws=can_draw()).rstrip("\n")
        )

    what = f"{kernel.what[0].upper()}{kernel.what[1:]}. Schedulers here: {known.schedulers}."
    return click.Command(
        name,
        callback=run_one,
        params=[*map(_option, parameters), *_LAUNCHED],
        help=what,
        epilog=f"Example: atoll workload run {name} --workers 2 --json",
    )


def _option(one: KernelParameter) -> click.Option:
    """Its value is text: atoll-kernels says what is wrong with it."""
    choices = f"[{'|'.join(one.choices)}]" if one.choices else ""
    otherwise = f"  [default: {one.default}]" if one.default else ""
    return click.Option(
        [f"--{one.name}"],
        metavar=choices or ("VALUE" if one.most is None else "N"),
        help=f"{one.help[0].upper()}{one.help[1:]}.{otherwise}",
    )


def _note(name: str) -> Callable[[], None]:
    """Says once on a terminal that a run takes its time."""
    started_s: float | None = time.monotonic()

    def tick() -> None:
        nonlocal started_s
        if started_s is not None and time.monotonic() - started_s >= _NOTE_AFTER_S:
            started_s = None
            if sys.stderr.isatty():
                print(f"atoll: {name} makes its data and runs; Ctrl-C ends it", file=sys.stderr)

    return tick
