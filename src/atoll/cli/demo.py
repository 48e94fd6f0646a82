"""`atoll demo`: the whole way on this machine, ending in a report."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console

from atoll.bench.analysis import summarise
from atoll.bench.job import Job, Wish, make_job
from atoll.bench.results import Results, read_results
from atoll.bench.runner import WrongAnswer
from atoll.cli.machine import machine_for
from atoll.engines import registry
from atoll.engines.facts import facts_of
from atoll.errors import EngineFailed, UsageError
from atoll.host.local import LocalHost
from atoll.plan import make_plan
from atoll.report.bench.progress import bench_progress, preparation
from atoll.report.bench.render import render
from atoll.report.bench.text import bench_text
from atoll.report.machine.text import machine_picture
from atoll.report.terminal.plan import plan_text
from atoll.schema.machine import Machine
from atoll.schema.results import VerifyResult
from atoll.schema.text import plural
from atoll.store.files import write_atomic
from atoll.store.paths import state_dir
from atoll.supervise.interrupts import terminate_is_interrupt

TIME_BOX_S = 360.0
SCALE_FACTOR = 0.1
QUERIES = "1,6,18"
RESULTS = "results.jsonl"


@click.command(epilog="Example: atoll demo -o demo, then open demo/report.html")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the files (default: a new one in Atoll's state folder).",
)
def command(output: Path | None) -> None:
    """Show the whole way on this machine: topology, plan, bench, verify, report.

    It compares policies of the installed engines that suit a demonstration, with Q1, Q6 and Q18
    of TPC-H at scale factor 0.1. It runs as many blocks as fit into 6 minutes, at least one.
    """
    host = LocalHost()
    with terminate_is_interrupt():
        _step(1, "This machine")
        machine = machine_for()
        _show_machine(machine)
        _step(2, "Engines that can run here")
        policies = {name: facts_of(registry.get(name)).demo for name in registry.names()}
        engines = _usable(host, [name for name, chosen in policies.items() if chosen])
        _step(3, f"What Atoll would choose for {engines[0]}")
        plan = make_plan(machine, registry.get(engines[0]).traits, "auto")
        print(plan_text(plan, explain=False, colour=sys.stdout.isatty()), end="")
        _step(4, f"Measuring for up to {TIME_BOX_S / 60:.0f} minutes, one deployment at a time")
        wish = Wish(
            targets=engines,
            suite="tpch",
            scale_factor=SCALE_FACTOR,
            policies=policies.get,
            queries=QUERIES,
            blocks=None,
            query_limit_s=300.0,
            command="atoll demo",
        )
        with preparation() as progress:
            job = make_job(wish, host=host, machine=machine, progress=progress)
        folder = _folder(output, job)
        write_atomic(folder / "machine.json", machine.model_dump_json(indent=2) + "\n")
        for entrant in job.header.entrants:
            assert entrant.plan is not None
            name = f"plan-{entrant.label.replace('/', '-')}.json"
            write_atomic(folder / name, entrant.plan.model_dump_json(indent=2) + "\n")
        results = folder / RESULTS
        _measure(job, results, host)
        found = read_results(results)
        _step(5, "Where the threads were, looked at while each deployment was up")
        _show_verify(found)
        _step(6, "What came out")
        Console(highlight=False).print(bench_text(summarise(found)))
        report = folder / "report.html"
        write_atomic(report, render(found, "html"))
        if not any(entrant.blocks_done for entrant in summarise(found).entrants):
            raise EngineFailed(f"no deployment finished a block; the errors are in {report}")
        print(f"\nThe report: {report}")


def _step(number: int, title: str) -> None:
    print()
    Console(highlight=False).print(f"[bold]{number}/6 {title}[/bold]")


def _show_machine(machine: Machine) -> None:
    width = max(40, min(shutil.get_terminal_size((80, 50)).columns, 120))
    for line in machine_picture(machine, width=width, height=40, ascii_only=False):
        print("".join(span.text for span in line).rstrip())
    for warning in machine.warnings:
        print(f"Warning: {warning.message}")


def _usable(host: LocalHost, names: Sequence[str]) -> tuple[str, ...]:
    """Engines that are installed; what is missing is said. Raises EngineFailed if none is."""
    usable: list[str] = []
    missing: list[str] = []
    for name in names:
        try:
            found = registry.get(name).locate(host)
        except EngineFailed as fault:
            missing.append(str(fault))
            print(f"{name}: left out: {fault}")
            continue
        java = f", Java {found.java_version}" if found.java_version else ""
        print(f"{name} {found.version}{java}")
        usable.append(name)
    if not usable:
        raise EngineFailed(f"no engine can run here: {'; '.join(missing)}")
    return tuple(usable)


def _folder(output: Path | None, job: Job) -> Path:
    if output is None:
        return state_dir("demo", job.header.run_id)
    if (output / RESULTS).exists():
        raise UsageError(f"{output}: holds an earlier demo; name another folder with -o")
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise UsageError(f"{output}: cannot be made ({fault.strerror})") from None
    return output


def _measure(job: Job, path: Path, host: LocalHost) -> None:
    with bench_progress(len(job.header.entrants), None) as progress:
        for note in job.header.notes:
            progress.note(note)
        try:
            job.run(
                path,
                host=host,
                resume=False,
                tick=progress.tick,
                say=progress.say,
                time_box_s=TIME_BOX_S,
            )
        except WrongAnswer as fault:
            progress.note(fault.detail)
            raise
        except EngineFailed as fault:
            progress.note(str(fault))  # what was measured before is worth its report


def _show_verify(results: Results) -> None:
    for entrant in results.header.entrants:
        looks = [
            line
            for line in results.lines
            if isinstance(line, VerifyResult) and line.label == entrant.label
        ]
        threads = sum(line.threads for line in looks)
        drifted = sum(line.drifted for line in looks)
        where = "all where the plan puts them" if not drifted else f"{drifted} NOT in their place"
        print(
            f"{entrant.label}: {plural(threads, 'thread')} in {plural(len(looks), 'look')}, {where}"
            if looks
            else f"{entrant.label}: never up"
        )
