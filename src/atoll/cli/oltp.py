"""`atoll oltp`: transactional workloads, on few chiplets and on many."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

import click

from atoll.bench.results import require_new
from atoll.cli.measure import refuse_unwritable
from atoll.cli.options import chiplets_option, machine_for, profile_option
from atoll.cli.terminal import progress, show
from atoll.errors import UsageError
from atoll.host.local import LocalHost
from atoll.schema.machine import Machine
from atoll.schema.oltp import OltpRuns
from atoll.schema.span import span
from atoll.schema.text import plural
from atoll.store.document import read_document
from atoll.store.files import write_atomic
from atoll.store.paths import state_dir
from atoll.supervise.interrupts import terminate_is_interrupt

_WORKLOADS = ("tpcc", "ycsb", "ycsb-zipf")
_COUNT = click.IntRange(min=1)
WAREHOUSES, RECORDS = 50, 1_000_000


@click.group(epilog="Example: atoll oltp run tpcc --warehouses 2 --seconds 10")
def command() -> None:
    """Measure transactions on few chiplets and on many.

    What must hold of the data is checked after each run.
    """


@command.command(
    "run",
    epilog="Examples: atoll oltp run tpcc --warehouses 2; atoll oltp run ycsb ycsb-zipf --records "
    "100000 --cores 2,4,8 --blocks 8 -o ycsb.json",
)
@click.argument(
    "workloads", metavar="WORKLOAD...", nargs=-1, required=True, type=click.Choice(_WORKLOADS)
)
@click.option(
    "--warehouses",
    type=_COUNT,
    metavar="N",
    default=WAREHOUSES,
    show_default=True,
    help="Of tpcc; each takes about 100 MB.",
)
@click.option(
    "--records",
    type=click.IntRange(min=2),
    metavar="N",
    default=RECORDS,
    show_default=True,
    help="Of ycsb; a million take about 1.2 GB.",
)
@click.option(
    "--cores",
    metavar="N,N",
    help="How many cores the server gets, and as many clients (default: half of the machine's).",
)
@click.option(
    "--seconds",
    type=_COUNT,
    metavar="N",
    default=30,
    show_default=True,
    help="The measured time of a run.",
)
@click.option(
    "--warmup", type=_COUNT, metavar="N", default=5, show_default=True, help="Seconds before it."
)
@click.option(
    "--blocks",
    type=_COUNT,
    metavar="N",
    default=5,
    show_default=True,
    help="How often everything runs. Intervals need at least 5.",
)
@chiplets_option
@profile_option
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Results file (default: a new one in Atoll's state folder).",
)
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON.")
def run(
    workloads: tuple[str, ...],
    warehouses: int,
    records: int,
    cores: str | None,
    seconds: int,
    warmup: int,
    blocks: int,
    chiplets: str | None,
    profile: str | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Run TPC-C or YCSB on few chiplets and on many.

    The server has the same number of cores, on the fewest chiplets and spread over them. Prints
    commits a second, latencies, and whether the two placements are equivalent within 2 %. After
    each run the consistency conditions are checked; the exit code is 1 if one does not hold. If the
    server or the driver dies, the server is started again on its data, the same is checked, and the
    exit code is 5.
    """
    from atoll.oltp.seats import default_cores

    machine = machine_for(chiplets=chiplets, profile=profile)
    found, _ = run_oltp(
        sizes_of(workloads, warehouses, records),
        default_cores(machine) if cores is None else _numbers(cores),
        machine=machine,
        warmup_s=warmup,
        measured_s=seconds,
        blocks=blocks,
        output=output,
    )
    if as_json:
        print(found.model_dump_json(indent=1))
        return
    show_oltp(found)


@command.command("show", epilog="Example: atoll oltp show ycsb.json")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
def show_file(file: Path) -> None:
    """Show the results in FILE, which 'run' wrote.

    FILE may be of a run that was stopped or still runs: it has whole blocks.
    """
    show_oltp(read_document(OltpRuns, file))


def run_oltp(
    sizes: dict[str, int],
    cores: tuple[int, ...],
    *,
    machine: Machine,
    warmup_s: int,
    measured_s: int,
    blocks: int,
    output: Path | None,
    name: str = "oltp",
) -> tuple[OltpRuns, Path]:
    """Measure, and keep the whole blocks in a file. Raises as `atoll.oltp` does, and of a
    KeyboardInterrupt what is kept."""
    from atoll.bench.runner import WrongAnswer
    from atoll.oltp.measure import Measurement
    from atoll.oltp.prepare import engine_of, prepare
    from atoll.report.bench.progress import preparation

    stamp = time.strftime("%Y%m%d-%H%M%S")
    path = output or state_dir("results") / f"{name}-{stamp}.json"
    require_new(path, resumes=False)
    refuse_unwritable(str(path))
    host = LocalHost()
    with terminate_is_interrupt():
        with preparation() as tell:
            setup = prepare(
                host,
                machine,
                engine_of(),
                sizes,
                cores,
                warmup_s=warmup_s,
                measured_s=measured_s,
                blocks=blocks,
                progress=tell,
            )
        for note in setup.notes:
            print(f"atoll: {note}", file=sys.stderr)
        runs = blocks * len(setup.works) * len(setup.seats)
        least_s = runs * (warmup_s + measured_s)
        print(f"atoll: {plural(runs, 'run')}, at least {span(least_s)}", file=sys.stderr)

        def keep(found: OltpRuns) -> None:
            write_atomic(path, found.model_dump_json(indent=1) + "\n")

        try:
            with progress(name) as say:
                found = Measurement(host, machine, setup, say).run(keep)
        except WrongAnswer as fault:
            print(fault.detail, file=sys.stderr)
            raise
        finally:
            kept = f"results: {path}" if path.exists() else "no block was whole, so none is kept"
            print(f"atoll: {kept}", file=sys.stderr)
    return found, path


def sizes_of(workloads: Sequence[str], warehouses: int, records: int) -> dict[str, int]:
    return {name: warehouses if name == "tpcc" else records for name in dict.fromkeys(workloads)}


def show_oltp(found: OltpRuns) -> None:
    from atoll.report.terminal.oltp import oltp_table, oltp_text

    show(oltp_table(found))
    print(oltp_text(found))


def _numbers(text: str) -> tuple[int, ...]:
    """Raises UsageError."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise UsageError(f"--cores {text}: give numbers from 1 on, with commas between them")
    return tuple(map(int, parts))
