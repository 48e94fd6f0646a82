"""`atoll oltp`: transactional workloads, on few chiplets and on many."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from atoll.cli.blocks import BlockOptions, Blocks, block_options, kept, new_file
from atoll.cli.terminal import progress, show, width
from atoll.errors import UsageError
from atoll.host.local import LocalHost
from atoll.schema.machine import Machine
from atoll.schema.oltp import OltpRuns
from atoll.store.document import read_document
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
@block_options(seconds=30, warmup=5)
def run(
    workloads: tuple[str, ...],
    warehouses: int,
    records: int,
    cores: str | None,
    options: BlockOptions,
) -> None:
    """Run TPC-C or YCSB on few chiplets and on many.

    The server has the same number of cores, on the fewest chiplets and spread over them. Prints
    commits a second, latencies, and whether the two placements are equivalent within 2 %. After
    each run the consistency conditions are checked; the exit code is 1 if one does not hold. If the
    server or the driver dies, the server is started again on its data, the same is checked, and the
    exit code is 5.
    """
    from atoll.oltp.seats import default_cores

    machine = options.machine()
    found, _ = run_oltp(
        sizes_of(workloads, warehouses, records),
        default_cores(machine) if cores is None else _numbers(cores),
        options,
        machine=machine,
    )
    if options.as_json:
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
    options: Blocks,
    *,
    machine: Machine,
    name: str = "oltp",
) -> tuple[OltpRuns, Path]:
    """Measure, and keep the whole blocks in a file. Raises as `atoll.oltp` does."""
    from atoll.bench.runner import WrongAnswer
    from atoll.oltp.measure import Measurement
    from atoll.oltp.prepare import engine_of, prepare
    from atoll.report.bench.progress import preparation

    path = new_file(options, name)
    host = LocalHost()
    with terminate_is_interrupt():
        with preparation() as tell:
            setup = prepare(
                host,
                machine,
                engine_of(),
                sizes,
                cores,
                warmup_s=options.warmup,
                measured_s=options.seconds,
                blocks=options.blocks,
                progress=tell,
            )
        for note in setup.notes:
            print(f"atoll: {note}", file=sys.stderr)
        a_block = len(setup.works) * len(setup.seats)
        with kept(path, options, a_block=a_block) as keep, progress(name) as say:
            try:
                return Measurement(host, machine, setup, say).run(keep), path
            except WrongAnswer as fault:
                print(fault.detail, file=sys.stderr)
                raise


def sizes_of(workloads: Sequence[str], warehouses: int, records: int) -> dict[str, int]:
    return {name: warehouses if name == "tpcc" else records for name in dict.fromkeys(workloads)}


def show_oltp(found: OltpRuns) -> None:
    from atoll.report.terminal.oltp import oltp_table, oltp_text

    show(oltp_table(found))
    print(oltp_text(found, width()))


def _numbers(text: str) -> tuple[int, ...]:
    """Raises UsageError."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise UsageError(f"--cores {text}: give numbers from 1 on, with commas between them")
    return tuple(map(int, parts))
