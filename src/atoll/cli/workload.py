"""`atoll workload`: run the native workloads of numa-query-tuning."""

from __future__ import annotations

import click

from atoll.cli.options import machine_for
from atoll.errors import UsageError
from atoll.host.local import LocalHost
from atoll.probing.workload import MEMORY, launch_flags, run_workload, thread_places
from atoll.report.terminal.workload import workload_text
from atoll.schema.plan import Malloc, Placement

_DATASETS = ("moving-cluster", "sequential", "runs", "zipf", "heavy-hitter")
_INDEXES = ("art", "masstree", "btree", "skiplist")
_COUNT = click.IntRange(min=1)


@click.group(epilog="Example: atoll workload run w1, then atoll workload run w1 --malloc tbbmalloc")
def command() -> None:
    """Run a small, known program that aggregates or joins, to see what a setting changes.

    The workloads are W1 to W4 of numa-query-tuning: W1 is the median and W2 the count of each
    group, W3 is a hash join, W4 a join by an index.
    """


@command.command(
    "run",
    epilog="Examples: atoll workload run w1 --threads 8 --memory interleave; "
    "atoll workload run w3 --variant fast --scheduler atoll --json",
)
@click.argument("workload", type=click.Choice(("w1", "w2", "w3", "w4")))
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
@click.option("--cpus", metavar="LIST", help="Run on these CPUs, such as 0-7.")
@click.option(
    "--memory",
    type=click.Choice(tuple(MEMORY)),
    default="first-touch",
    show_default=True,
    help="The memory policy.",
)
@click.option(
    "--malloc", type=click.Choice([one.value for one in Malloc]), help="The malloc to preload."
)
@click.option("--no-thp", is_flag=True, help="No transparent huge pages.")
@click.option("--json", "as_json", is_flag=True, help="Print an atoll/workload document.")
def run(
    workload: str,
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
    """Make the data, run WORKLOAD on them, and check its answer.

    Prints the time of each run, the rate, the peak memory with its overhead, the threads' moves
    between CPUs, and the local share of its memory, estimated from pages. Memory policy, malloc and
    huge pages are set by atoll-exec. The exit code is 1 if the answer was wrong.
    """
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
    found = run_workload(LocalHost(), flags, launch)
    print(found.model_dump_json(indent=1) if as_json else workload_text(found).rstrip("\n"))
