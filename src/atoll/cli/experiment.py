"""`atoll experiment`: repeat a figure of the papers on this machine."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from atoll.bench.axes import Axis, Grid
from atoll.cli.bench_experiment import bench_cost, bench_text, over_network
from atoll.cli.experiment_engines import (
    named,
    ready,
    require_spanning,
    traits,
    uncounted,
)
from atoll.cli.measuring import RunOptions, SuiteOptions, measure_suite, prepare_output
from atoll.cli.oltp_experiment import run_transactions, transactions_text
from atoll.cli.operators_experiment import operators_text, run_operators
from atoll.cli.options import Span, machine_for
from atoll.cli.terminal import show
from atoll.cli.workload_experiment import run_workloads, what_can, workloads_here
from atoll.errors import AtollError, CheckFailed, EngineFailed, UsageError
from atoll.experiments.catalog import experiments, get
from atoll.experiments.here import choose_scale, possible, require_meaning, unmet
from atoll.experiments.ours import (
    Ours,
    failed,
    of_oltp,
    of_operators,
    of_profile,
    of_results,
    of_workloads,
    verdicts,
)
from atoll.experiments.outlook import Outlook, outlook
from atoll.experiments.planned import unjudged
from atoll.host.local import LocalHost
from atoll.report.experiment import tables
from atoll.report.experiment.text import (
    comparison_text,
    drawn,
    experiment_list,
    experiment_text,
    tables_by_machine,
    whys,
)
from atoll.schema.experiment import BenchRun, Experiment, MeasureRun
from atoll.schema.machine import Machine
from atoll.schema.oltp import OltpRuns
from atoll.schema.operator_runs import OperatorRuns
from atoll.schema.plan import EngineTraits
from atoll.schema.workload import WorkloadRuns
from atoll.store.document import read_document
from atoll.store.paths import new_results

if TYPE_CHECKING:
    from rich.console import RenderableType

    from atoll.bench.job import Job


@dataclass(frozen=True, slots=True)
class Target:
    """Where the results go, and how many blocks there will be."""

    output: Path | None
    within_s: float | None  # None: the scale's number of blocks
    resume: bool


@click.group(
    epilog="Example: atoll experiment list, then atoll experiment run olap-tab2 --scale smoke"
)
def command() -> None:
    """Repeat the figures and tables of five papers on this machine, and judge their claims.

    Each is a file: what the paper shows, its numbers with their sections, what it does not say,
    and its claim as a check that can fail.
    """


@command.command("list", epilog="Example: atoll experiment list --json | jq '.[].name'")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of the table.")
def list_experiments(as_json: bool) -> None:
    """List the experiments: which run here, and at what cost.

    The cost is our guess at the scales smoke, small and paper.
    """
    found = _outlooks(machine_for())
    if as_json:
        records = [
            {
                "name": one.name,
                "paper": one.paper,
                "figure": one.figure,
                "shows": one.shows,
                "here": each.here,
                "why": each.why,
                "cost_s": each.cost_s or {},
            }
            for one, each in found
        ]
        print(json.dumps(records, indent=1))
        return
    show(drawn(experiment_list(found)))
    print("COST: our guess for the scales smoke, small and paper; – is too large here")
    print("no, in part: 'atoll experiment show NAME' has the reasons")


@command.command("show", epilog="Example: atoll experiment show olap-fig12")
@click.argument("name")
def show_experiment(name: str) -> None:
    """Show an experiment: its file, what can vary here, the cost."""
    found = get(name)
    print(experiment_text(found, _here(found, machine_for())), end="")


@command.command(
    "run", epilog="Example: atoll experiment run olap-tab2 --scale smoke -o tab2.jsonl"
)
@click.argument("name")
@click.option(
    "--scale",
    "size",
    type=click.Choice(("smoke", "small", "paper")),
    default="small",
    show_default=True,
    help="How much data and how many blocks: smoke is for a try, paper is what the paper has.",
)
@click.option("--engines", metavar="E,E", help="Run these engines instead of those of the file.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Results file (default: a new one in Atoll's state folder).",
)
@click.option(
    "--within",
    "within_s",
    metavar="TIME",
    type=Span(),
    help="Measure as many whole blocks as fit into this time, such as 2h, instead of the scale's.",
)
@click.option("--resume", is_flag=True, help="Continue the file of -o after its last whole block.")
def run(
    name: str,
    size: str,
    engines: str | None,
    output: Path | None,
    within_s: float | None,
    resume: bool,
) -> None:
    """Run an experiment as far as possible here; judge the claim.

    Says what it could not vary. Ends with exit code 1 if the claim did not hold, and with 2, at
    once, where the figure means nothing on this machine; the scale smoke runs workloads even there.
    """
    found, machine = get(name), machine_for()
    missing = unmet(found.needs, machine)
    a_try = bool(missing) and found.workload is not None and size == "smoke"
    if not a_try:
        require_meaning(found, machine)
    for why in missing:
        print(f"atoll: a try only, since it means nothing here: {why}", file=sys.stderr)
    if found.bench is not None:
        target = Target(output, within_s, resume)
        _bench(found, found.bench, machine, size, engines, target)
    elif found.workload is not None:
        if engines:
            raise UsageError(f"{name} runs workloads; leave out --engines")
        if resume and output is None:
            raise UsageError("--resume continues a results file; name it with -o")
        run, scale = found.workload, choose_scale(found, found.workload.scales, size, machine)
        ours = run_workloads(
            found, run, scale, machine, output, within_s, resume=resume, a_try=a_try
        )
        _judge(found, ours)
    elif found.oltp is not None:
        if engines or resume or within_s is not None:
            raise UsageError(
                f"{name} runs transactions; leave out --engines, --within and --resume"
            )
        transactions = choose_scale(found, found.oltp.scales, size, machine)
        _judge(found, run_transactions(found, found.oltp, transactions, machine, output))
    elif found.operators is not None:
        if engines or resume or within_s is not None:
            raise UsageError(f"{name} compares placements; leave out --engines, --within, --resume")
        longer = choose_scale(found, found.operators.scales, size, machine)
        _judge(found, run_operators(found.operators, longer, machine, output))
    elif found.measure is not None:
        if engines or resume or within_s is not None:
            raise UsageError(
                f"{name} is measured without an engine; leave out --engines, --within and --resume"
            )
        _measure(found, found.measure, size, output)


@command.command(
    epilog="Example: atoll experiment report olap-fig8 milan.jsonl genoa.jsonl -o fig8.html"
)
@click.argument("name")
@click.argument(
    "files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a page (.html) with charts (default: text on standard output).",
)
def report(name: str, files: tuple[Path, ...], output: Path | None) -> None:
    """Put results of several machines beside the paper's numbers.

    FILE is what 'run' wrote, on any machine, or any results of the same suite.
    """
    experiment = get(name)
    if output is not None and output.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"{output}: is not a page; name a file that ends in .html")
    found = [_ours(experiment, path) for path in files]
    if output is None:
        _show(experiment, found, whys(found))
        return
    from atoll.report.experiment.page import experiment_page
    from atoll.store.files import write_atomic

    write_atomic(output, experiment_page(experiment, found))
    print(output)


def _ours(experiment: Experiment, path: Path) -> Ours:
    if experiment.measure is not None:
        from atoll.probing.profiles import read

        return of_profile(read(path), path.name)
    if experiment.workload is not None:
        return of_workloads(experiment, read_document(WorkloadRuns, path), path.name)
    if experiment.oltp is not None:
        return of_oltp(read_document(OltpRuns, path), path.name)
    if experiment.operators is not None:
        return of_operators(read_document(OperatorRuns, path), path.name)
    from atoll.bench.results import read_results

    return of_results(experiment, read_results(path), path.name)


def _show(
    experiment: Experiment, found: Sequence[Ours], explained: Sequence[RenderableType] = ()
) -> None:
    whole = tables.without_repeats(tables.side_by_side(experiment, found))
    for part in (*map(drawn, tables_by_machine(whole)), *explained):
        show(part)
    print(comparison_text(experiment, found))


def _bench(
    experiment: Experiment,
    run: BenchRun,
    machine: Machine,
    size: str,
    engines: str | None,
    target: Target,
) -> None:
    scale = choose_scale(experiment, run.scales, size, machine)
    asked = scale.engines or run.engines if engines is None else named(engines)
    blocks = None if target.within_s else scale.blocks
    options = RunOptions(
        blocks, target.within_s, 1, 300.0, target.output, target.resume, None, False
    )
    prepare_output(options, scale.sf)
    names, missing = ready(asked)
    can = possible(run, machine, traits(names), what_can(LocalHost()))
    lost = unjudged(experiment, run, scale, machine, can, uncounted())
    for line in (*missing, *can.cannot):
        print(f"atoll: not varied here: {line}", file=sys.stderr)
    for line in can.same:
        print(f"atoll: {line} here", file=sys.stderr)
    for line in lost:
        print(f"atoll: cannot be judged here: {line}", file=sys.stderr)
    guessed = set(names) <= set(scale.engines or run.engines)  # the guess is for those of the file
    if target.within_s is None and guessed:
        print(f"atoll: {bench_cost(len(can.entrants), scale)}", file=sys.stderr)
    path = target.output or new_results(experiment.name, ".jsonl")
    grid: Grid = can.grid
    change: Callable[[Job], Job] | None = None
    if run.network is not None:
        require_spanning(names)
        grid = Grid((Axis("policy", ("wim",)),))  # of the job whose deployments are replaced
        change = partial(
            over_network, network=run.network, can=can, machine=machine, engines=traits(names)
        )
    fault: AtollError | None = None
    try:
        measure_suite(
            SuiteOptions(None, run.suite, scale.sf, scale.queries or None, None),
            replace(options, output=path),
            tuple(names),
            grid=grid,
            machine=machine,
            change=change,
        )
    except EngineFailed as found:  # queries that were left out; the rest was measured
        fault = found
    if not path.exists():
        raise fault or UsageError(f"{path}: nothing was measured")
    try:
        _judge(experiment, _ours(experiment, path))
    except CheckFailed:
        if fault is not None:
            print(f"atoll: {fault}", file=sys.stderr)
        raise
    if fault is not None:
        raise fault


def _measure(experiment: Experiment, run: MeasureRun, size: str, output: Path | None) -> None:
    """As `atoll measure`: quick at the scale smoke, else full."""
    from atoll.cli.measure import keep, measure_here, refuse_unwritable, show_profile
    from atoll.schema.profile import Mode
    from atoll.supervise.interrupts import terminate_is_interrupt

    if output is not None:
        refuse_unwritable(str(output))
    mode = Mode.QUICK if size == "smoke" else Mode.FULL
    with terminate_is_interrupt():
        profile = measure_here(mode, ",".join(run.kinds), None)
        path, fault = keep(profile, None if output is None else str(output))
    show_profile(profile)
    print(f"atoll: profile: {path}", file=sys.stderr)
    _judge(experiment, of_profile(profile, path.name if path else "this run"))
    if fault is not None:
        raise fault


def _judge(experiment: Experiment, ours: Ours) -> None:
    """Print the paper's figure beside ours and the verdict. Raises CheckFailed."""
    print()
    _show(experiment, [ours])
    if wrong := failed(verdicts(experiment, ours)):
        whom = ", ".join(filter(None, wrong))
        raise CheckFailed(f"{experiment.name}: the claim did not hold{whom and f' for {whom}'}")


def _outlooks(machine: Machine) -> list[tuple[Experiment, Outlook]]:
    from atoll.engines import registry
    from atoll.probing.measure import chosen_cpus, estimate_s
    from atoll.schema.profile import Mode

    cpus = chosen_cpus(machine, LocalHost(), None)

    @cache
    def traits_of(name: str) -> EngineTraits:
        return registry.get(name).traits

    def measure_s(run: MeasureRun) -> dict[str, float]:
        modes = {"smoke": Mode.QUICK, "small": Mode.FULL, "paper": Mode.FULL}
        return {
            size: estimate_s(mode=mode, only=run.kinds, machine=machine, cpus=cpus)
            for size, mode in modes.items()
        }

    asked = machine, traits_of, uncounted(), measure_s, what_can(LocalHost())
    return [(one, outlook(one, *asked)) for one in experiments()]


def _here(experiment: Experiment, machine: Machine) -> list[str]:
    """What this machine can vary, cannot vary, and the cost of each scale."""
    if why := unmet(experiment.needs, machine):
        return [f"means nothing here: {'; '.join(why)}"]
    if experiment.workload is not None:
        return workloads_here(experiment, experiment.workload, machine)
    if experiment.oltp is not None:
        return transactions_text(experiment.oltp, machine)
    if experiment.operators is not None:
        return operators_text(experiment.operators, machine)
    if experiment.bench is None:
        return ["all of it; 'atoll measure' tells the time before it starts (smoke: 30 s at most)"]
    return bench_text(experiment, experiment.bench, machine)
