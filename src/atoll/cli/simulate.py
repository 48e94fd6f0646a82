"""`atoll simulate`: what a deployment or a command does to the caches of another machine."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from atoll.bench.analysis import summarise
from atoll.bench.results import read_results, require_output
from atoll.cli.bench import command as bench_command
from atoll.cli.measure import refuse_unwritable
from atoll.cli.measuring import is_named
from atoll.cli.options import FiniteRange, Span
from atoll.cli.terminal import show
from atoll.errors import UsageError
from atoll.guest import machines
from atoll.guest import topology as topologies
from atoll.guest.caches import describe
from atoll.guest.measured import with_latencies
from atoll.guest.simulated import QUANTUM_CYCLES
from atoll.guest.topology import Topology
from atoll.host.local import LocalHost
from atoll.probing.profiles import read
from atoll.report.bench.progress import preparation
from atoll.report.bench.text import bench_text
from atoll.simulate.prepare import prepare
from atoll.simulate.run import Booted, booted
from atoll.store.files import write_atomic
from atoll.store.paths import new_results
from atoll.supervise.interrupts import terminate_is_interrupt

# Of the guest's bench. The others are about files, and about intervals of measured times.
_OF_BENCH = [
    option
    for option in bench_command.params
    if isinstance(option, click.Option)
    and option.name
    not in {"output", "resume", "fail_if_slower", "as_json", "within_s", "blocks", "scale_factor"}
]
_NAMES = {option.name for option in _OF_BENCH}
_SCALE_FACTOR = 0.01


class _WithCommand(click.Command):
    """A command line whose words behind `--` are a command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            at = args.index("--")
            ctx.meta["command"] = args[at + 1 :]
            args = args[:at]
        return super().parse_args(ctx, args)


@click.command(
    cls=_WithCommand,
    epilog="Examples: atoll simulate duckdb --machine epyc-7713x2 --policies wim,wicp --sf 0.01 "
    "--queries 1,6,18 -o s.jsonl, then atoll report s.jsonl -o s.html; "
    "atoll simulate --machine epyc-7713x2 -- gzip -k FILE",
)
@click.argument("targets", metavar="[ENGINE|PLAN... | -- CMD...]", nargs=-1)
@click.option(
    "--machine",
    "source",
    metavar="NAME|FILE",
    default="epyc-7713x2",
    show_default=True,
    help=f"The simulated machine: {', '.join(machines.names())}, or a topology file.",
)
@click.option(
    "--cpus",
    metavar="N",
    type=click.IntRange(min=1),
    default=16,
    show_default=True,
    help="How many of its cores a machine of that NAME keeps.",
)
@click.option(
    "--cache-scale",
    metavar="SHARE",
    type=FiniteRange(min=0, min_open=True, max=1),
    default=1,
    show_default=True,
    help="Make its L2 and L3 smaller, for data smaller than on a real machine: 0.1 for a tenth.",
)
@click.option(
    "--profile",
    metavar="FILE",
    help="Give it the latencies that 'atoll measure' found on another machine.",
)
@click.option(
    "--quantum",
    metavar="CYCLES",
    type=click.IntRange(min=100, max=1_000_000),
    default=QUANTUM_CYCLES,
    show_default=True,
    help="How far a CPU may run ahead of the slowest. Locks and hand-overs need 200 to 1000.",
)
@click.option(
    "--sf",
    "scale_factor",
    metavar="F",
    type=float,
    help=f"Scale factor of the data (default: {_SCALE_FACTOR:g}).",
)
@click.option(
    "--blocks",
    metavar="N",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="How often each deployment is run and counted.",
)
@click.option(
    "--timeout",
    "timeout_s",
    metavar="TIME",
    type=Span(),
    default="1h",
    show_default=True,
    help="End the guest if the bench or CMD is not over by then.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Results file (default: a new one in Atoll's state folder); of CMD the counts, as JSON.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print the summary, or CMD's counts, as JSON."
)
@click.pass_context
def command(
    ctx: click.Context,
    /,
    targets: tuple[str, ...],
    source: str,
    cpus: int,
    cache_scale: float,
    profile: str | None,
    quantum: int,
    blocks: int,
    timeout_s: float,
    output: Path | None,
    as_json: bool,
    suite: str,
    scale_factor: float | None,
    **_: Any,
) -> int:
    """Show what a deployment or a command does to the caches of another machine.

    Boots an emulated guest that is this machine, with simulated caches, and runs 'atoll bench'
    or CMD in it. Each cache line that a core's L2 gets is counted by where it came from, in the
    measured pass only. All figures are simulated: they count lines, and predict no seconds.

    The options from --policies on are those of 'atoll bench'. CMD runs as root and sees this
    machine's files; what it writes goes to memory and is gone afterwards.
    """
    argv: list[str] = ctx.meta.get("command", [])
    if bool(argv) == bool(targets):
        raise UsageError("give either engines or plans to deploy, or a command behind --")
    if argv and (surplus := _typed(ctx, {*_NAMES, "blocks", "scale_factor"})):
        raise UsageError(f"{surplus[0].opts[0]}: is for an engine; leave it out, or name an engine")
    topology = _machine(ctx, source, cpus, cache_scale)
    if profile is not None:
        topology = with_latencies(topology, read(profile))
    describe(topology, quantum)  # refused now, not after minutes of making data
    if scale_factor is None and is_named(suite):
        scale_factor = _SCALE_FACTOR
    if targets and output is not None:
        require_output(output, resume=False, scale_factor=scale_factor)
    elif output is not None:
        refuse_unwritable(str(output))
    with terminate_is_interrupt():
        if targets:
            with preparation() as say:
                prepare(targets, suite, scale_factor, host=LocalHost(), progress=say)
        print(f"simulated machine: {topology.about}", file=sys.stderr)
        with booted(topology, quantum) as guest:
            if argv:
                return _count(guest, argv, output, timeout_s, as_json=as_json)
            path = output or new_results(f"simulated-{topology.name}", ".jsonl")
            size = [] if scale_factor is None else ["--sf", str(scale_factor)]
            bench = ["--blocks", str(blocks), *size, *_words(ctx)]
            try:
                status = guest.bench(
                    targets,
                    bench,
                    path,
                    about=topology.about,
                    command=shlex.join(["atoll", *sys.argv[1:]]),
                    timeout_s=timeout_s,
                )
            finally:
                if output is None and path.exists():
                    print(f"results: {path}", file=sys.stderr)
    if path.exists():  # else the guest's bench has said why
        summary = summarise(read_results(path))
        if as_json:
            print(summary.model_dump_json(indent=2))
        else:
            show(bench_text(summary))
    return status


command.params.extend(_OF_BENCH)


def _machine(ctx: click.Context, source: str, cpus: int, cache_scale: float) -> Topology:
    """A machine by its name, or a topology file. Raises UsageError."""
    is_file = source in topologies.names() or os.path.exists(source)
    if source in machines.names() or not is_file:
        return machines.load(source, cpus, cache_scale)
    if surplus := _typed(ctx, {"cpus", "cache_scale"}):
        raise UsageError(
            f"{surplus[0].opts[0]}: leave it out, or change the topology file {source}; it scales "
            "machines that have a name"
        )
    return topologies.load(source)


def _count(
    guest: Booted, argv: list[str], output: Path | None, timeout_s: float, *, as_json: bool
) -> int:
    """With JSON on stdout, what the command prints there goes to stderr."""
    out = sys.stderr.buffer if as_json else sys.stdout.buffer
    status, fills = guest.count(argv, out, timeout_s=timeout_s)
    if fills is not None:
        text = fills.model_dump_json(indent=1) + "\n"
        if output is not None:
            write_atomic(output, text)
        if as_json:
            print(text, end="")
    return status


def _typed(ctx: click.Context, names: Iterable[str | None]) -> list[click.Option]:
    """Those of these options that the user gave."""
    return [
        option
        for option in ctx.command.params
        if isinstance(option, click.Option)
        and option.name in names
        and ctx.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
    ]


def _words(ctx: click.Context) -> list[str]:
    """The options of the bench, as the user gave them."""
    words: list[str] = []
    for option in _typed(ctx, _NAMES):
        value = ctx.params[option.name or ""]
        if option.is_flag:
            words.append(option.opts[0])
        else:
            each = value if option.multiple else [value]
            words += [word for one in each for word in (option.opts[0], str(one))]
    return words
